import { toServiceError } from "../../../core/base/errors.js";
import {
  leaseAsksPerCallMax,
  type QuotaLeaseAnswer,
  type QuotaLeaseAsk,
} from "../../../core/quota/quota.js";
import type { QuotaClaims, QuotaStore } from "../../coordination/quota-store.js";
import type { StoreScript } from "../scripts/connection.js";
import { type FleetStore, parseNumbers } from "./fleet-script.js";

/** Maximum wait of a claim for its answer, in milliseconds. The next claim is more recent. */
const leaseCallMsMax = 750;

/**
 * Number of hash tags for pools. With many pools, this is the minimum number of calls per second,
 * and the maximum number of cluster nodes that share the work.
 */
const leaseTagCount = 16;

/** Divides pools in Redis, with a hash for each pool. */
export class RedisQuotas implements QuotaStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async exchange(claims: QuotaClaims): Promise<readonly QuotaLeaseAnswer[]> {
    const { asks } = claims;
    const byTag = new Map<string, number[]>();
    asks.forEach(({ pool }, i) => {
      const tag = tagOf(pool);
      const places = byTag.get(tag);
      if (places === undefined) byTag.set(tag, [i]);
      else places.push(i);
    });
    const answers: QuotaLeaseAnswer[] = asks.map(() => unanswered);
    const exchanges = [...byTag].map(async ([tag, places]) => {
      for (let at = 0; at < places.length; at += leaseAsksPerCallMax) {
        const part = places.slice(at, at + leaseAsksPerCallMax);
        const reported = await this.#claim(tag, {
          ...claims,
          asks: part.flatMap((place) => asks[place] ?? []),
        });
        part.forEach((place, i) => {
          answers[place] = reported[i] ?? unanswered;
        });
      }
    });
    await Promise.all(exchanges);
    return answers;
  }

  async #claim(
    tag: string,
    { replicaId, number, asks }: QuotaClaims,
  ): Promise<readonly QuotaLeaseAnswer[]> {
    const { connection, clock, keyPrefix } = this.#store;
    const sentMs = clock.monotonicMs();
    const call = {
      script: quotaLeaseScript,
      keys: asks.map(({ pool }) => `${keyPrefix}{quota-${tag}}:${pool}`),
      args: [replicaId, String(number), ...asks.flatMap(argsOf)],
      deadlineMs: sentMs + leaseCallMsMax,
    };
    try {
      const crowdCount = asks.reduce((sum, { claim }) => sum + claim.crowds.length, 0);
      const reported = parseNumbers(await connection.run(call), asks.length + crowdCount);
      let at = 0;
      return asks.map(({ claim: { crowds }, leaseMs }): QuotaLeaseAnswer => {
        const [rateMicroHz = overtaken, ...counts] = reported.slice(at, at + 1 + crowds.length);
        at += 1 + crowds.length;
        if (rateMicroHz === overtaken) return { kind: "overtaken" };
        const elsewhere = crowds.map(({ identity }, i) => ({ identity, count: counts[i] ?? 0 }));
        return { kind: "leased", lease: { rateMicroHz, untilMs: sentMs + leaseMs, elsewhere } };
      });
    } catch (thrown) {
      const { code } = toServiceError(thrown);
      return asks.map((): QuotaLeaseAnswer => ({ kind: "failed", code }));
    }
  }
}

/** The script's answer to a claim that was overtaken by a later one. */
const overtaken = -1;

const unanswered: QuotaLeaseAnswer = { kind: "failed", code: "STORE_PROTOCOL" };

function argsOf({ claim, leaseMs }: QuotaLeaseAsk): readonly string[] {
  const { metMicroHz, hungryMicroHz, hungryWeight, weight, heldMicroHz, ceilingMicroHz } = claim;
  const metWeight = Math.max(0, weight - hungryWeight);
  const numbers = [leaseMs, metMicroHz, metWeight, hungryMicroHz, hungryWeight];
  const crowds = claim.crowds.map(({ identity, count }) => `${identity}:${count}`);
  return [...[...numbers, heldMicroHz, ceilingMicroHz].map(String), crowds.join(" ")];
}

/** Returns one of `leaseTagCount` tags, by the first two hexadecimal digits of a pool's name. */
function tagOf(pool: string): string {
  return String(Number.parseInt(pool.slice(0, 2), 16) % leaseTagCount || 0);
}

/** Number of ARGV words before those of the first pool, and for each pool. */
const leadingArgCount = 2;
/** See `leadingArgCount`. */
const poolArgCount = 8;

/**
 * Divides pools among the replicas that claim them: runs `takeClaim` for each key.
 *
 * KEYS: a hash for each pool, with a record for each replica: beat, held, met, weight of the met,
 * hungry, weight of the hungry, lease in ms, end of the lease in ms of the store's clock; after a
 * bar its crowds, such as `00c0ffee:20`, separated by spaces. All keys of a call have the same hash
 * tag. ARGV: this replica, the number of this claim; then for each key lease, met, weight of the
 * met, hungry, weight of the hungry, held, ceiling, crowds. Returns for each key the rate that the
 * replica may assign from now on, or -1 for a claim that was overtaken; then the count of each of
 * its crowds at the other replicas.
 */
const quotaLeaseScript: StoreScript = {
  name: "quota-leases",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local me, beat = ARGV[1], tonumber(ARGV[2])

local fields = { 'beat', 'held', 'met', 'metWeight', 'hungry', 'hungryWeight', 'lease', 'until' }

local function write(key, r)
  local words = {}
  for i, name in ipairs(fields) do words[i] = string.format('%.0f', r[name]) end
  redis.call('HSET', key, r.id, table.concat(words, ' ') .. '|' .. r.crowds)
end

local function parse(id, text)
  local numbers, crowds = string.match(text, '^([%d ]+)|([%w: ]*)$')
  if not numbers then return nil end
  local r, i = { id = id, crowds = crowds }, 0
  for word in string.gmatch(numbers, '%S+') do
    i = i + 1
    local number = string.match(word, '^%d+$') and tonumber(word)
    if not fields[i] or not number then return nil end
    r[fields[i]] = number
  end
  return i == #fields and r or nil
end

local function readOthers(key)
  local flat, others, mine = redis.call('HGETALL', key), {}, nil
  for i = 1, #flat, 2 do
    local r = parse(flat[i], flat[i + 1])
    if not r or r['until'] <= nowMs then
      redis.call('HDEL', key, flat[i])
    else
      if r['until'] > nowMs + r.lease then
        r['until'] = nowMs + r.lease
        write(key, r)
      end
      if r.id == me then mine = r else others[#others + 1] = r end
    end
  end
  return others, mine
end

local function before(a, b)
  local first, second = a.demand / a.weight, b.demand / b.weight
  if first ~= second then return first < second end
  if a.id ~= b.id then return a.id < b.id end
  return a.demand < b.demand
end

local function target(records, ceiling, mine)
  local parts, weight, allWeight = {}, 0, 0
  for _, r in ipairs(records) do
    allWeight = allWeight + r.metWeight + r.hungryWeight
    local both = { { r.met, r.metWeight }, { r.hungry, r.hungryWeight } }
    for _, part in ipairs(both) do
      if part[1] > 0 and part[2] > 0 then
        parts[#parts + 1] = { id = r.id, demand = part[1], weight = part[2] }
        weight = weight + part[2]
      end
    end
  end
  table.sort(parts, before)
  local left, own = ceiling, 0
  for _, part in ipairs(parts) do
    local given = math.min(part.demand, math.floor(left * part.weight / weight))
    left = left - given
    weight = weight - part.weight
    if part.id == me then own = own + given end
  end
  if allWeight == 0 then return own end
  return own + math.floor(left * (mine.metWeight + mine.hungryWeight) / allWeight)
end

local function countElsewhere(records, crowds, into)
  local counts = {}
  if crowds ~= '' then
    for _, r in ipairs(records) do
      for identity, count in string.gmatch(r.id == me and '' or r.crowds, '(%w+):(%d+)') do
        counts[identity] = (counts[identity] or 0) + tonumber(count)
      end
    end
  end
  for identity in string.gmatch(crowds, '(%w+):%d+') do
    into[#into + 1] = string.format('%.0f', counts[identity] or 0)
  end
end

local function exchange(key, at)
  local records, was = readOthers(key)
  if was and was.beat > beat then return -1, records end
  local function number(i) return tonumber(ARGV[at + i]) end
  local mine = { id = me, beat = beat, lease = number(1), met = number(2), metWeight = number(3),
    hungry = number(4), hungryWeight = number(5), held = number(6), crowds = ARGV[at + 8] }
  local ceiling, othersHeld = number(7), 0
  mine['until'] = nowMs + mine.lease
  local last = mine['until']
  for _, r in ipairs(records) do
    othersHeld = othersHeld + r.held
    last = math.max(last, r['until'])
  end
  records[#records + 1] = mine
  local granted = target(records, ceiling, mine)
  if granted > mine.held then
    granted = math.max(mine.held, math.min(granted, ceiling - othersHeld))
    mine.held = granted
  end
  write(key, mine)
  redis.call('PEXPIRE', key, string.format('%.0f', last - nowMs))
  return granted, records
end

local answers = {}
for i, key in ipairs(KEYS) do
  local at = ${leadingArgCount} + (i - 1) * ${poolArgCount}
  local granted, records = exchange(key, at)
  answers[#answers + 1] = string.format('%.0f', granted)
  countElsewhere(records, ARGV[at + 8], answers)
end
return table.concat(answers, ' ')
`,
};
