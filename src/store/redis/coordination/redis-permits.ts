import type { PermitAnswer, PermitBeat, PermitStore } from "../../coordination/permit-store.js";
import type { StoreScript } from "../scripts/connection.js";
import { type FleetStore, parseNumbers } from "./fleet-script.js";

/** The script's answer to a heartbeat that was overtaken by a later one. */
const overtaken = -1;

/** Divides limits in Redis, with a hash for each limit, all with the same hash tag. */
export class RedisPermits implements PermitStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async claim(
    beat: PermitBeat,
    deadlineMs: number,
  ): Promise<readonly (PermitAnswer | undefined)[]> {
    const { replicaId, number, leaseMs, claims } = beat;
    const numbers = claims.flatMap(({ limit, heldCount, neededCount, isLearned }) => {
      return [limit, heldCount, neededCount, isLearned ? 1 : 0];
    });
    const reply = await this.#store.connection.run({
      script: shareScript,
      keys: this.#keys(claims.map(({ name }) => name)),
      args: [replicaId, ...[number, leaseMs, ...numbers].map(String)],
      deadlineMs,
    });
    const answers = parseNumbers(reply, 3 * claims.length);
    return claims.map((claim, i) => {
      const own = answers.slice(3 * i, 3 * i + 3);
      const [grantedCount = overtaken, othersInUseCount = 0, limit = claim.limit] = own;
      return grantedCount === overtaken ? undefined : { grantedCount, othersInUseCount, limit };
    });
  }

  async leave(
    { replicaId, names }: Parameters<PermitStore["leave"]>[0],
    deadlineMs: number,
  ): Promise<void> {
    const call = { script: leaveSharesScript, keys: this.#keys(names), args: [replicaId] };
    await this.#store.connection.run({ ...call, deadlineMs });
  }

  #keys(names: readonly string[]): readonly string[] {
    return names.map((name) => `${this.#store.keyPrefix}{permits}:${name}`);
  }
}

/** Number of ARGV words before those of the first limit. */
const leadingArgCount = 3;

/**
 * Divides limits among the replicas that need permits.
 *
 * KEYS: a hash for each limit, with a record for each replica: the number of its heartbeat (which
 * increases), the permits that it holds, those that it could use, and the end of the lease in ms of
 * the store's clock. All keys have the same hash tag. ARGV: this replica, the number of this
 * heartbeat, the lease in ms; then for each key the limit, the permits held and needed, and 1 if
 * each replica learns the limit. Returns three numbers for each key: the permits that the replica
 * may hold from now on, or -1 for a heartbeat that was overtaken by a later one; the permits that
 * others hold and can use; and the limit that was divided. If a limit is learned, each record ends
 * with the limit that its replica has learned, and the lowest is divided.
 *
 * Grants follow the rules of `PermitStore`. Shares are computed like `fairShares`, with the
 * replicas that need most first.
 *
 * A lease that ends later than its duration from now results from a clock that stepped back. It is
 * shortened, or the permits of a dead replica would be missing until the clock has caught up.
 */
export const shareScript: StoreScript = {
  name: "permit-shares",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local me, beat, leaseMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local function write(key, id, r)
  local learned = r.learned and string.format(' %.0f', r.learned) or ''
  redis.call('HSET', key, id,
    string.format('%.0f %.0f %.0f %.0f', r.beat, r.held, r.need, r.untilMs) .. learned)
end

local function readAll(key)
  local flat, records = redis.call('HGETALL', key), {}
  for i = 1, #flat, 2 do
    local id = flat[i]
    local a, b, c, d, e = string.match(flat[i + 1], '^(%d+) (%d+) (%d+) (%d+) ?(%d*)$')
    local r = a and { id = id, beat = tonumber(a), held = tonumber(b), need = tonumber(c),
      untilMs = tonumber(d), learned = tonumber(e) }
    if not r or r.untilMs <= nowMs then
      redis.call('HDEL', key, id)
    else
      if r.untilMs > nowMs + leaseMs then
        r.untilMs = nowMs + leaseMs
        write(key, id, r)
      end
      records[#records + 1] = r
    end
  end
  return records
end

local function target(records, limit)
  table.sort(records, function(a, b)
    if a.need ~= b.need then return a.need < b.need end
    return a.id < b.id
  end)
  local left, count, mine, place = limit, #records, 0, 0
  for i, r in ipairs(records) do
    local given = math.min(math.max(r.need, 1), math.floor(left / (count - i + 1)))
    left = left - given
    if r.id == me then mine, place = given, i end
  end
  local each = math.floor(left / count)
  if count - place < left - each * count then each = each + 1 end
  return mine + each
end

local function share(key, limit, held, need, isLearned)
  local records = readAll(key)
  local mine, othersHeld, othersInUse, least = nil, 0, 0, limit
  for _, r in ipairs(records) do
    if r.id == me then
      mine = r
    else
      othersHeld = othersHeld + r.held
      othersInUse = othersInUse + math.min(r.held, r.need)
      least = math.min(least, r.learned or least)
    end
  end
  if mine and mine.beat > beat then return -1, 0, limit end
  if not mine then
    mine = { id = me }
    records[#records + 1] = mine
  end
  mine.beat, mine.held, mine.need, mine.untilMs = beat, held, need, nowMs + leaseMs
  mine.learned = isLearned == '1' and limit or nil
  local wanted = target(records, least)
  local room = least - othersHeld
  if wanted > held and room > held then
    wanted = math.min(wanted, room)
    mine.held = wanted
  elseif wanted > held then
    wanted = held
  end
  write(key, me, mine)
  redis.call('PEXPIRE', key, leaseMs)
  return wanted, othersInUse, least
end

local answers = {}
for i, key in ipairs(KEYS) do
  local at = ${leadingArgCount} + (i - 1) * 4
  local granted, othersInUse, least = share(key, tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
    tonumber(ARGV[at + 3]), ARGV[at + 4])
  answers[i] = string.format('%.0f %.0f %.0f', granted, othersInUse, least)
end
return table.concat(answers, ' ')
`,
};

/** Frees at once what a replica holds. KEYS: as above. ARGV: the replica. */
const leaveSharesScript: StoreScript = {
  name: "permit-shares-leave",
  text: `
for _, key in ipairs(KEYS) do redis.call('HDEL', key, ARGV[1]) end
return #KEYS
`,
};
