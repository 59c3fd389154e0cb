import { levelUnitsMax } from "../../core/bucket.js";
import type { StoreScript } from "../connection.js";
import { exactText } from "./exact-text.js";
import { lawText } from "./law-text.js";

/** How much longer than it needs a key is kept: this part of the need, and `keptLongerMs`. */
const keptLongerRatio = 0.25;

/** Milliseconds; a key that is asked for at least this often is seldom given a new expiry. */
const keptLongerMs = 1_000;

/** What a bucket takes to drain counts as at most this, about 35 years; as in `core/gcra`. */
const drainTimeMsMax = 2 ** 50 / 1_000;

/**
 * Reading and keeping buckets. `values` holds them by position of their key, as they are packed,
 * and `expiresAt` what becomes of those that were changed.
 */
const bucketsText = `
local values, expiresAt, badCount = call('MGET', unpack(keys)), {}, 0

local function packEmpty() return pack('<ddd', 0, nowUs, 0) end

-- Keeps a bucket as it is now until it has drained, or its window has ended, and says how it is
-- packed, and until when. One that does not drain is left as others stored it.

local function keep(k, level, expiresMs, hits, period, untilUs)
  if hits == 0 then return pack('<ddd', level, nowUs, 0), expiresMs end
  if level == 0 then
    values[k], expiresAt[k] = false, forgotten
    return packEmpty(), 0
  end
  local spanMs
  if untilUs then
    spanMs = (untilUs - nowUs) / 1000
  else
    spanMs = level / (hits * unitsPerHit) * period / 1000
    if spanMs > ${drainTimeMsMax} then spanMs = ${drainTimeMsMax} end
  end
  if nowMs + spanMs + 1 > expiresMs then
    expiresMs = nowMs + spanMs * ${1 + keptLongerRatio} + ${keptLongerMs}
    expiresMs = expiresMs - expiresMs % 1
    expiresAt[k] = expiresMs
  elseif not expiresAt[k] then
    expiresAt[k] = unchanged
  end
  local value = pack('<ddd', level, nowUs, expiresMs)
  values[k] = value
  return value, expiresMs
end

-- A key's level now, until when it is kept, and its bucket as packed, if it has any. A time in the
-- future, where the clock stepped back, becomes now, and that is kept whatever is decided.

local floorMulDiv

local function read(k, hits, period, fromUs, untilUs)
  local value = values[k]
  if not value then return 0, 0 end
  local level, tUs, expiresMs
  if #value == 24 then level, tUs, expiresMs = unpackStruct('<ddd', value) end
  if not (level and level >= 0 and level <= ${levelUnitsMax} and level % 1 == 0
    and tUs >= 0 and tUs <= 9007199254740991 and tUs % 1 == 0) then
    values[k], badCount = false, badCount + 1
    return 0, 0
  end
  if tUs > nowUs then
    value, expiresMs = keep(k, level, 0, hits, period, untilUs)
    return level, expiresMs, value
  end
  if fromUs then return tUs < fromUs and 0 or level, expiresMs, value end
  local elapsed, drain = nowUs - tUs, hits * unitsPerHit
  local product = elapsed * drain
  local drained = product / period
  if drained >= level + 4 then return 0, expiresMs, value end
  if product <= 9007199254740991 then
    drained = drained - drained % 1
    if drained > level then drained = level end
  else
    floorMulDiv = floorMulDiv or (function()
${exactText}
      return floorMulDiv
    end)()
    drained = floorMulDiv(elapsed, drain, period, level)
  end
  return level - drained, expiresMs, value
end
`;

/**
 * Decides a plain request of one charge, as `decideRepeated` does: the charge enforces, costs
 * something and gives nothing back. Nearly every request is such a one, so these do without a call
 * and without the law's tables.
 */
const plainText = `
    local level, expiresMs, value = read(k, hits, period)
    local free = burst * unitsPerHit - level
    cost = cost * unitsPerHit
    local head = '\\0\\0\\0\\0\\1'
    if free >= cost then
      local granted = 1
      head = '\\1\\0\\0\\0\\0'
      if multiplicity > 1 then
        granted = free / cost
        granted = min(multiplicity, granted - granted % 1)
        head = pack('<I4B', granted, granted < multiplicity and 1 or 0)
      end
      value = keep(k, level + granted * cost, expiresMs, hits, period)
    end
    reply[replyCount + 1], reply[replyCount + 2] = head, value or packEmpty()
    replyCount = replyCount + 2
`;

/** Decides a plain request of several charges, all on keys of their own, as `decideRepeated`. */
const severalText = `
local function decideSeveral(at, count, multiplicity)
  local k, hits, burst, period, cost
  local granted, chargeAt, levels, expiries, bases = multiplicity, at, {}, {}, {}
  for i = 1, count do
    k, hits, burst, period, cost, chargeAt = unpackStruct('<I2xI4I4dd', batch, chargeAt)
    levels[i], expiries[i], bases[i] = read(k, hits, period)
    local free = burst * unitsPerHit - levels[i]
    local fitting = max(0, free / (cost * unitsPerHit))
    granted = min(granted, fitting - fitting % 1)
  end
  reply[replyCount + 1] = pack('<I4', granted)
  for i = 1, count do
    k, hits, burst, period, cost, at = unpackStruct('<I2xI4I4dd', batch, at)
    burst, cost = burst * unitsPerHit, cost * unitsPerHit
    local level, value = levels[i] + granted * cost, bases[i] or packEmpty()
    if granted > 0 then value = keep(k, level, expiries[i], hits, period) end
    local isOver = granted < multiplicity and burst - level < cost
    reply[replyCount + 2 * i], reply[replyCount + 2 * i + 1] = isOver and '\\1' or '\\0', value
  end
  replyCount = replyCount + 2 * count + 1
  return at
end
`;

/**
 * The law of `core/gcra` and the arithmetic of `core/exact` a second time, in Lua 5.1, for a batch
 * of requests. Both are kept equal, step by step, by a differential test on random histories.
 *
 * KEYS: each distinct key of the batch once. ARGV[1]: the batch as `encodeBatch` packs it. Replies
 * one string that `decodeReply` reads. Everything crosses as packed binary numbers: Lua turns
 * numbers into text with 14 digits, and replies cut fractions off.
 *
 * A script that fails half way is not rolled back, so all reading and deciding comes first and the
 * writes come last; the first of them meets whatever refuses writes (OOM, READONLY, MISCONF).
 *
 * A stored value that is not one of ours (wrong length, not whole, negative, too large) counts as
 * absent and is overwritten by the next charge: it must not fail the neighbours in the batch.
 *
 * A value is level, time in us and expiry in ms, so that the script sees when the expiry that the
 * key has still suffices: SET with KEEPTTL takes 0.5 us of Redis, with an expiry of its own 1.2.
 * Therefore a new one reaches further than is needed. With it, buckets that are read when they are
 * asked for and answered as they are packed, and functions made only where they are needed, took a
 * run of 16 charges from 4.8 to 3.4 us a charge, and one of a single hot key from 16 to 12 us, of
 * which Redis itself takes 6 for a script that does nothing.
 */
export const takeScript: StoreScript = {
  name: "take",
  text: `
local min, max = math.min, math.max
local pack, unpackStruct, call = struct.pack, struct.unpack, redis.call
local unitsPerHit, unchanged, forgotten = 1048576, 0, -1
local keys, batch = KEYS, ARGV[1]

local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = nowUs / 1000

${bucketsText}
local reply, replyCount = { '' }, 1

-- Each request of the batch in turn. The first charge of a plain one is marked. Functions are made
-- where they are needed first: Lua makes them anew in every run.

local decideAny, decideSeveral
local at, batchEnd = 1, #batch
while at <= batchEnd do
  local count, multiplicity, k, flags, hits, burst, period, cost, nextAt =
    unpackStruct('<I2I4I2BI4I4dd', batch, at)
  if flags % 32 < 16 then
    decideAny = decideAny or (function()${lawText}    end)()
    at = decideAny(at)
  elseif count > 1 then
    decideSeveral = decideSeveral or (function()${severalText}      return decideSeveral
    end)()
    at = decideSeveral(at + 6, count, multiplicity)
  else${plainText}    at = nextAt
  end
end

for k = 1, #keys do
  local expires = expiresAt[k]
  if expires == unchanged then
    call('SET', keys[k], values[k], 'KEEPTTL')
  elseif expires == forgotten then
    call('DEL', keys[k])
  elseif expires then
    call('SET', keys[k], values[k], 'PXAT', expires)
  end
end

reply[1] = pack('<dI4', nowUs, badCount)
return table.concat(reply)
`,
};
