import type { Clock, Random } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { StoreConnection, StoreScript } from "../../store/connection.js";
import { replyBytes, runFleetScript } from "../records/fleet-script.js";

/** Counts by name, each a whole number from 0. */
export type LedgerSums = ReadonlyMap<string, number>;

/** What a replica has to say about a run. */
export interface LedgerEntry {
  /** Which run: letters and digits. */
  readonly run: string;
  /** What is added to the sums. */
  readonly counts: LedgerSums;
  /** Whether the run begins with this, where it is not known. */
  readonly begins: boolean;
  /** Whether somebody has looked at the sums since the last entry. */
  readonly isLookedAt: boolean;
}

/**
 * The registries of something that runs in all replicas for a while: what they count, summed. A run
 * ends when nobody has looked for `ledgerKeptSeconds`.
 */
export interface ShadowLedger {
  /**
   * Adds counts, once whatever the network does. Answers the sums of all replicas; undefined: the
   * run is over.
   *
   * @throws ServiceError STORE_ codes; the same entry is to be added again then, before any other
   */
  add(entry: LedgerEntry): Promise<LedgerSums | undefined>;
}

/** How long the registries of a run are kept that nobody looks at: an hour. */
export const ledgerKeptSeconds = 3_600;

/** The most names of one run; what comes under further ones is left out. */
export const ledgerNamesMax = 4_096;

/** What a `RedisLedger` is made of. */
export interface RedisLedgerParts {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly keyPrefix: string;
}

/** Books in Redis: a hash for each run. */
export class RedisLedger implements ShadowLedger {
  readonly #parts: RedisLedgerParts;
  readonly #replica: string;
  #number = 0;
  /** The entry that was added last, and whether it is known to be in. */
  #last: LedgerEntry | undefined;

  constructor(parts: RedisLedgerParts) {
    this.#parts = parts;
    this.#replica = parts.random.id();
  }

  async add(entry: LedgerEntry): Promise<LedgerSums | undefined> {
    // The same entry again keeps its number, so that it counts once.
    if (entry !== this.#last) this.#number += 1;
    this.#last = entry;
    const { run, counts, begins, isLookedAt } = entry;
    const args = [
      this.#replica,
      String(this.#number),
      begins ? "1" : "0",
      isLookedAt ? "1" : "0",
      String(1_000 * ledgerKeptSeconds),
      String(ledgerNamesMax),
    ];
    for (const [name, count] of counts) args.push(name, String(count));
    const reply = await runFleetScript(this.#parts, {
      script: ledgerScript,
      keys: [`shadow:${run}`],
      args,
    });
    return reply === undefined ? undefined : parseSums(replyBytes(reply));
  }
}

/**
 * Adds an entry. KEYS: the registries of the run, a hash. ARGV: the replica, the number of its
 * entry, "1" where the run begins, "1" where somebody has looked, for how many ms to keep the
 * registries, the most names, then names and counts by turns. Answers names and sums by turns, a
 * line each; nothing where the run is over.
 */
const ledgerScript: StoreScript = {
  name: "shadow-add",
  text: `
local registries, replica, number = KEYS[1], 's:' .. ARGV[1], tonumber(ARGV[2])
local exists = redis.call('HLEN', registries) > 0
if not exists and ARGV[3] ~= '1' then return false end
local last = tonumber(redis.call('HGET', registries, replica) or '0')
if number > last then
  redis.call('HSET', registries, replica, ARGV[2])
  local most = tonumber(ARGV[6])
  for i = 7, #ARGV, 2 do
    local name = 'n:' .. ARGV[i]
    if redis.call('HGET', registries, name) or redis.call('HLEN', registries) < most then
      redis.call('HINCRBY', registries, name, ARGV[i + 1])
    end
  end
end
if not exists or ARGV[4] == '1' then redis.call('PEXPIRE', registries, ARGV[5]) end
local parts = {}
local all = redis.call('HGETALL', registries)
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

/** Books of a process that shares its store with nobody. */
export class InProcessLedger implements ShadowLedger {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #registries:
    | { readonly run: string; readonly sums: Map<string, number>; endsMs: number }
    | undefined;
  #last: LedgerEntry | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async add(entry: LedgerEntry): Promise<LedgerSums | undefined> {
    const { run, counts, begins, isLookedAt } = entry;
    const nowMs = this.#clock.monotonicMs();
    let registries =
      this.#registries?.run === run && nowMs < this.#registries.endsMs
        ? this.#registries
        : undefined;
    if (registries === undefined && !begins) return undefined;
    const endsMs = nowMs + 1_000 * ledgerKeptSeconds;
    registries ??= { run, sums: new Map(), endsMs };
    this.#registries = registries;
    if (isLookedAt) registries.endsMs = endsMs;
    if (entry !== this.#last) {
      this.#last = entry;
      for (const [name, count] of counts) {
        if (!registries.sums.has(name) && registries.sums.size >= ledgerNamesMax) continue;
        registries.sums.set(name, (registries.sums.get(name) ?? 0) + count);
      }
    }
    return new Map(registries.sums);
  }
}
