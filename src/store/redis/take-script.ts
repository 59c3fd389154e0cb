import type { StoreScript } from "../connection.js";
import { exactText } from "./exact-text.js";

/**
 * Decides requests of any kind, each asked once, as `decideRequest` does. It is made when the first
 * one comes that is not plain: most batches need none of this.
 */
const lawText = `
local function createLaw()
  -- The charges of the request in hand, by position in it, and what was found for them.

  local keyOf, flagsOf, hitsOf, burstOf, periodOf, costOf = {}, {}, {}, {}, {}, {}
  local isOver, resultLevel, resultTUs = {}, {}, {}

  -- The drafts of the request in hand, by position of their key.

  local openedFor, baseLevel, baseTUs, isClamped, levelNow = {}, {}, {}, {}, {}
  local level, isTouched = {}, {}
  local request = 0

  local function openDraft(i)
    local k = keyOf[i]
    if openedFor[k] == request then return false end
    openedFor[k] = request
    local base, tUs = storedLevel[k], storedTUs[k]
    isClamped[k] = false
    if base then
      local levelMax = burstOf[i] * unitsPerHit
      if flagsOf[i] % 4 == 3 then levelMax = 2 * levelMax end
      if tUs > nowUs or base > levelMax then
        base, tUs, isClamped[k] = min(base, levelMax), min(tUs, nowUs), true
      end
    else
      base, tUs = 0, nowUs
    end
    baseLevel[k], baseTUs[k] = base, tUs
    if base > 0 then
      base = base - floorMulDiv(nowUs - tUs, hitsOf[i] * unitsPerHit, periodOf[i], base)
    end
    levelNow[k], level[k], isTouched[k] = base, base, false
    return true
  end

  local function touch(k, to)
    if level[k] ~= to then level[k], isTouched[k] = to, true end
  end

  local function noteBucket(i)
    local k = keyOf[i]
    if isTouched[k] then
      resultLevel[i], resultTUs[i] = level[k], nowUs
    else
      resultLevel[i], resultTUs[i] = baseLevel[k], baseTUs[k]
    end
  end

  local function evaluate(i)
    local k, flags = keyOf[i], flagsOf[i]
    local burst, cost = burstOf[i] * unitsPerHit, costOf[i] * unitsPerHit
    local over = false
    if flags % 8 >= 4 then
      touch(k, max(0, level[k] - cost))
    elseif cost == 0 then
      local wanted = level[k]
      if flags >= 8 then wanted = wanted + unitsPerHit end
      over = wanted > burst
    else
      over = level[k] + cost > burst
      if flags % 4 == 3 then
        touch(k, min(level[k] + cost, 2 * burst))
      elseif not over then
        touch(k, level[k] + cost)
      end
    end
    noteBucket(i)
    return over
  end

  local function isDenied(count)
    local quotaCount, quotaOverCount = 0, 0
    for i = 1, count do
      local role = flagsOf[i] % 4
      if isOver[i] and (role == 0 or role == 3) then return true end
      if role == 2 then
        quotaCount = quotaCount + 1
        if isOver[i] then quotaOverCount = quotaOverCount + 1 end
      end
    end
    return quotaCount > 0 and quotaOverCount == quotaCount
  end

  local function withdraw(count)
    for i = 1, count do
      local k = keyOf[i]
      level[k], isTouched[k] = levelNow[k], false
    end
    for i = 1, count do
      if flagsOf[i] % 8 >= 4 or flagsOf[i] % 4 == 3 then
        evaluate(i)
      elseif not isOver[i] then
        noteBucket(i)
      end
    end
  end

  local function decide(count)
    for i = 1, count do isOver[i] = evaluate(i) end
    if not isDenied(count) then return 1 end
    withdraw(count)
    return 0
  end

  local function commit(i)
    local k = keyOf[i]
    if isTouched[k] then
      keep(k, level[k], nowUs, hitsOf[i], periodOf[i])
    elseif isClamped[k] then
      keep(k, baseLevel[k], baseTUs[k], hitsOf[i], periodOf[i])
    end
  end

  -- Decides the request at this place of the batch, and says where the next one begins.

  return function(at)
    request = request + 1
    local count
    count, at = unpackStruct('<I2xxxx', batch, at)
    local firsts = {}
    for i = 1, count do
      keyOf[i], flagsOf[i], hitsOf[i], burstOf[i], periodOf[i], costOf[i], at =
        unpackStruct('<I2BI4I4dd', batch, at)
      if openDraft(i) then firsts[#firsts + 1] = i end
    end
    local granted = decide(count)
    for _, i in ipairs(firsts) do commit(i) end
    reply[replyCount + 1] = pack('<I4', granted)
    replyCount = replyCount + 1
    for i = 1, count do
      reply[replyCount + i] = pack('<Bdd', isOver[i] and 1 or 0, resultLevel[i], resultTUs[i])
    end
    replyCount = replyCount + count
    return at
  end
end
`;

/**
 * Decides plain requests, as `decideRepeated` does: all charges enforce, cost something, give
 * nothing back, and are on keys of their own. Nearly every request is, most of one charge, so these
 * do without the law's tables. Measured at batches of 16: 4.5 us a charge where the law took 7.0,
 * of which about 3 are what Redis takes for each key of any script that reads and sets it.
 */
const plainText = `
local function levelNow(k, hits, burst, period)
  local base, tUs = storedLevel[k], storedTUs[k]
  if not base then return 0 end
  if tUs > nowUs then tUs = nowUs end
  if base > burst then base = burst end
  return base - floorMulDiv(nowUs - tUs, hits * unitsPerHit, period, base)
end

-- The bucket that a refused charge met; one that had to be clamped is written back.

local function refusedValue(k, hits, burst, period)
  local base, tUs = storedLevel[k], storedTUs[k]
  if not base then return pack('<dd', 0, nowUs) end
  if tUs <= nowUs and base <= burst then return storedValue[k] end
  return keep(k, min(base, burst), min(tUs, nowUs), hits, period)
end

local grantedOne, grantedNone = pack('<I4B', 1, 0), pack('<I4B', 0, 1)

local function decideOne(multiplicity, k, hits, burst, period, cost)
  burst, cost = burst * unitsPerHit, cost * unitsPerHit
  local level = levelNow(k, hits, burst, period)
  local granted = (burst - level) / cost
  granted = granted - granted % 1
  if granted > multiplicity then granted = multiplicity end
  local head, value = grantedNone, nil
  if granted > 0 then
    head, value = grantedOne, keep(k, level + granted * cost, nowUs, hits, period)
    if multiplicity > 1 then head = pack('<I4B', granted, granted < multiplicity and 1 or 0) end
  else
    value = refusedValue(k, hits, burst, period)
  end
  reply[replyCount + 1], reply[replyCount + 2] = head, value
  replyCount = replyCount + 2
end

local levels = {}

local function decideSeveral(at, count, multiplicity)
  local k, hits, burst, period, cost
  local granted, chargeAt = multiplicity, at
  for i = 1, count do
    k, hits, burst, period, cost, chargeAt = unpackStruct('<I2xI4I4dd', batch, chargeAt)
    local level = levelNow(k, hits, burst * unitsPerHit, period)
    local fitting = (burst * unitsPerHit - level) / (cost * unitsPerHit)
    levels[i] = level
    granted = min(granted, fitting - fitting % 1)
  end
  reply[replyCount + 1] = pack('<I4', granted)
  for i = 1, count do
    k, hits, burst, period, cost, at = unpackStruct('<I2xI4I4dd', batch, at)
    burst, cost = burst * unitsPerHit, cost * unitsPerHit
    local level, value = levels[i] + granted * cost, nil
    if granted > 0 then
      value = keep(k, level, nowUs, hits, period)
    else
      value = refusedValue(k, hits, burst, period)
    end
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
 */
export const takeScript: StoreScript = {
  name: "take",
  text: `
local min, max, floor, ceil = math.min, math.max, math.floor, math.ceil
local pack, unpackStruct, call = struct.pack, struct.unpack, redis.call
local unitsPerHit, drainTimeCapUs = 1048576, 1125899906842624
local keys, batch = KEYS, ARGV[1]
${exactText}
-- The buckets of the keys, by position, also as they are packed; no entry is an empty bucket.

local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local storedLevel, storedTUs, storedValue, ttlMs, badCount = {}, {}, {}, {}, 0

local values = call('MGET', unpack(keys))
for k = 1, #keys do
  local value = values[k]
  if value then
    local level, tUs
    if #value == 16 then level, tUs = unpackStruct('<dd', value) end
    if level and level >= 0 and level <= exactMax and level % 1 == 0
      and tUs >= 0 and tUs <= exactMax and tUs % 1 == 0 then
      storedLevel[k], storedTUs[k], storedValue[k] = level, tUs, value
    else
      badCount = badCount + 1
    end
  end
end

-- Keeps a bucket until it has drained, and says how it is packed.
--
-- Expiry counts whole milliseconds from the start of the script, which is before nowUs. So it gets
-- one more, or a bucket could be forgotten just before it has drained.

local function keep(k, level, tUs, hits, period)
  local value, timeToFullUs = pack('<dd', level, tUs), 0
  if level > 0 and hits > 0 then
    timeToFullUs = ceilMulDiv(level, period, hits * unitsPerHit, drainTimeCapUs) - (nowUs - tUs)
  end
  if timeToFullUs > 0 then
    storedLevel[k], storedTUs[k], storedValue[k] = level, tUs, value
    ttlMs[k] = ceil(timeToFullUs / 1000) + 1
  else
    storedLevel[k], storedTUs[k], storedValue[k] = nil, nil, nil
    ttlMs[k] = 0
  end
  return value
end

local reply, replyCount = { '' }, 1
${lawText}${plainText}
-- Each request of the batch in turn. The first charge of a plain one is marked.

local decideAny
local at = 1
while at <= #batch do
  local count, multiplicity, k, flags, hits, burst, period, cost, nextAt =
    unpackStruct('<I2I4I2BI4I4dd', batch, at)
  if flags < 16 then
    decideAny = decideAny or createLaw()
    at = decideAny(at)
  elseif count > 1 then
    at = decideSeveral(at + 6, count, multiplicity)
  else
    decideOne(multiplicity, k, hits, burst, period, cost)
    at = nextAt
  end
end

for k = 1, #keys do
  local ttl = ttlMs[k]
  if ttl and ttl > 0 then
    call('SET', keys[k], storedValue[k], 'PX', ttl)
  elseif ttl then
    call('DEL', keys[k])
  end
end

reply[1] = pack('<dI4', nowUs, badCount)
return table.concat(reply)
`,
};
