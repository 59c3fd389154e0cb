import type { StoreScript } from "../connection.js";

/**
 * `floorMulDiv` and `ceilMulDiv` of `core/exact` as a part of a script; open to the tests alone.
 */
export const exactText = `
local floor, min = math.floor, math.min
local exactMax, splitFactor = 9007199254740991, 134217729

local function productError(a, b, product)
  local aScaled = splitFactor * a
  local aHigh = aScaled - (aScaled - a)
  local aLow = a - aHigh
  local bScaled = splitFactor * b
  local bHigh = bScaled - (bScaled - b)
  local bLow = b - bHigh
  return aLow * bLow - (product - aHigh * bHigh - aLow * bHigh - aHigh * bLow)
end

local function exactDifference(a, b, c, d)
  local left, right = a * b, c * d
  return left - right + (productError(a, b, left) - productError(c, d, right))
end

local function floorMulDiv(a, b, c, cap)
  local product = a * b
  if product <= exactMax then return min(floor(product / c), cap) end
  local quotient = floor(product / c)
  if quotient >= cap + 4 then return cap end
  local remainder = exactDifference(a, b, quotient, c)
  while remainder < 0 do quotient = quotient - 1; remainder = remainder + c end
  while remainder >= c do quotient = quotient + 1; remainder = remainder - c end
  return min(quotient, cap)
end

local function ceilMulDiv(a, b, c, cap)
  local quotient = floorMulDiv(a, b, c, cap)
  if quotient >= cap then return cap end
  if exactDifference(a, b, quotient, c) > 0 then return quotient + 1 end
  return quotient
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
local max = math.max
local pack, unpackStruct = struct.pack, struct.unpack
local unitsPerHit, drainTimeCapUs = 1048576, 1125899906842624

${exactText}
-- The buckets of KEYS, by position; no entry is an empty bucket.

local time = redis.call('TIME')
local nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
local storedLevel, storedTUs, ttlMs, badCount = {}, {}, {}, 0

local function isWhole(value)
  return value >= 0 and value <= exactMax and floor(value) == value
end

for k, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  if value then
    local level, tUs
    if #value == 16 then level, tUs = unpackStruct('<dd', value) end
    if level and isWhole(level) and isWhole(tUs) then
      storedLevel[k], storedTUs[k] = level, tUs
    else
      badCount = badCount + 1
    end
  end
end

-- The charges of the request in hand, by position in it, and what was found for them.

local keyOf, flagsOf, hitsOf, burstOf, periodOf, costOf = {}, {}, {}, {}, {}, {}
local isOver, resultLevel, resultTUs = {}, {}, {}

-- The drafts of the request in hand, by position of their key.

local openedFor, baseLevel, baseTUs, isClamped, levelNow = {}, {}, {}, {}, {}
local level, isTouched = {}, {}

local function openDraft(i, request)
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

-- As many of the same request as fit every bucket, at once; all of its keys differ.

local function fittingCount(i)
  local free = burstOf[i] * unitsPerHit - level[keyOf[i]]
  return floor(free / (costOf[i] * unitsPerHit))
end

local function grant(count, multiplicity)
  local granted = multiplicity
  for i = 1, count do granted = min(granted, fittingCount(i)) end
  for i = 1, count do
    local k = keyOf[i]
    touch(k, level[k] + granted * costOf[i] * unitsPerHit)
    isOver[i] = granted < multiplicity and fittingCount(i) == 0
    noteBucket(i)
  end
  return granted
end

local function decide(count)
  for i = 1, count do isOver[i] = evaluate(i) end
  if not isDenied(count) then return 1 end
  withdraw(count)
  return 0
end

-- Expiry counts whole milliseconds from the start of the script, which is before nowUs. So it gets
-- one more, or a bucket could be forgotten just before it has drained.

local function commit(i)
  local k = keyOf[i]
  if not isTouched[k] and not isClamped[k] then return end
  local newLevel, tUs, timeToFullUs = baseLevel[k], baseTUs[k], 0
  if isTouched[k] then newLevel, tUs = level[k], nowUs end
  if newLevel > 0 and hitsOf[i] > 0 then
    timeToFullUs = ceilMulDiv(newLevel, periodOf[i], hitsOf[i] * unitsPerHit, drainTimeCapUs)
    timeToFullUs = max(0, timeToFullUs - (nowUs - tUs))
  end
  if timeToFullUs > 0 then
    storedLevel[k], storedTUs[k], ttlMs[k] = newLevel, tUs, math.ceil(timeToFullUs / 1000) + 1
  else
    storedLevel[k], storedTUs[k], ttlMs[k] = nil, nil, 0
  end
end

-- Each request of the batch in turn.

local batch, at, request = ARGV[1], 1, 0
local reply = { '' }
while at <= #batch do
  request = request + 1
  local count, multiplicity
  count, multiplicity, at = unpackStruct('<I2I4', batch, at)
  local firsts = {}
  for i = 1, count do
    keyOf[i], flagsOf[i], hitsOf[i], burstOf[i], periodOf[i], costOf[i], at =
      unpackStruct('<I2BI4I4dd', batch, at)
    if openDraft(i, request) then firsts[#firsts + 1] = i end
  end
  local granted
  if multiplicity > 1 then granted = grant(count, multiplicity) else granted = decide(count) end
  for _, i in ipairs(firsts) do commit(i) end
  reply[#reply + 1] = pack('<I4', granted)
  for i = 1, count do
    reply[#reply + 1] = pack('<Bdd', isOver[i] and 1 or 0, resultLevel[i], resultTUs[i])
  end
end

for k, ttl in pairs(ttlMs) do
  if ttl > 0 then
    redis.call('SET', KEYS[k], pack('<dd', storedLevel[k], storedTUs[k]),
      'PX', string.format('%.0f', ttl))
  else
    redis.call('DEL', KEYS[k])
  end
end

reply[1] = pack('<dI4', nowUs, badCount)
return table.concat(reply)
`,
};
