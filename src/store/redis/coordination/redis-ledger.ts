import { ServiceError } from "../../../core/base/errors.js";
import {
  type LedgerAuthor,
  type LedgerEntry,
  type LedgerStore,
  type LedgerSums,
  ledgerKeptSeconds,
  ledgerNamesMax,
} from "../../coordination/ledger-store.js";
import type { StoreScript } from "../scripts/connection.js";
import { type FleetStore, replyBytes, runFleetScript } from "./fleet-script.js";

/** Sums in Redis, with a hash for each run. */
export class RedisLedger implements LedgerStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async add(entry: LedgerEntry, author: LedgerAuthor): Promise<LedgerSums | undefined> {
    const { run, counts, begins, isLookedAt } = entry;
    const args = [
      author.replicaId,
      String(author.number),
      begins ? "1" : "0",
      isLookedAt ? "1" : "0",
      String(1_000 * ledgerKeptSeconds),
      String(ledgerNamesMax),
    ];
    for (const [name, count] of counts) args.push(name, String(count));
    const call = { script: ledgerScript, keys: [`shadow:${run}`], args };
    const reply = await runFleetScript(this.#store, call);
    return reply === undefined ? undefined : parseSums(replyBytes(reply));
  }
}

/**
 * Adds an entry. KEYS: the ledger of the run, a hash. ARGV: the replica, the number of its entry,
 * "1" if the run may begin, "1" if the sums have been read, how long to keep the ledger in ms, the
 * maximum number of names, then alternating names and counts. Returns alternating names and sums, a
 * line each; nothing if the run is over.
 */
const ledgerScript: StoreScript = {
  name: "shadow-add",
  text: `
local ledger, replica, number = KEYS[1], 's:' .. ARGV[1], tonumber(ARGV[2])
local exists = redis.call('HLEN', ledger) > 0
if not exists and ARGV[3] ~= '1' then return false end
local last = tonumber(redis.call('HGET', ledger, replica) or '0')
if number > last then
  redis.call('HSET', ledger, replica, ARGV[2])
  local most = tonumber(ARGV[6])
  for i = 7, #ARGV, 2 do
    local name = 'n:' .. ARGV[i]
    if redis.call('HGET', ledger, name) or redis.call('HLEN', ledger) < most then
      redis.call('HINCRBY', ledger, name, ARGV[i + 1])
    end
  end
end
if not exists or ARGV[4] == '1' then redis.call('PEXPIRE', ledger, ARGV[5]) end
local parts = {}
local all = redis.call('HGETALL', ledger)
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 2) == 'n:' then
    parts[#parts + 1] = string.sub(all[i], 3)
    parts[#parts + 1] = all[i + 1]
  end
end
return table.concat(parts, '\\n')
`,
};

function parseSums(reply: Buffer): LedgerSums {
  const sums = new Map<string, number>();
  if (reply.length === 0) return sums;
  const lines = reply.toString("utf8").split("\n");
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i];
    const count = Number(lines[i + 1]);
    if (name === undefined || !Number.isSafeInteger(count))
      throw new ServiceError("STORE_PROTOCOL");
    sums.set(name, count);
  }
  return sums;
}
