import { levelUnitsMax } from "../../../core/limits/bucket.js";
import { bucketsText, drainTimeMsMax, keptLongerMs, keptLongerRatio } from "./bucket-text.js";
import type { StoreScript } from "./connection.js";
import { lawText } from "./law-text.js";

/** Decides a plain request of one charge, whatever its bucket and its limit are like. */
const oneText = `
local function decideOne(k, multiplicity, hits, burst, period, cost)
  local level, expiresMs, value = read(k, hits, period)
  local free = burst * unitsPerHit - level
  cost = cost * unitsPerHit
  local granted, isOver = 0, 1
  if free >= cost then
    granted = free / cost
    granted = math.min(multiplicity, granted - granted % 1)
    isOver = granted < multiplicity and 1 or 0
    value = keep(k, level + granted * cost, expiresMs, hits, period)
  end
  reply[replyCount + 1], reply[replyCount + 2] = pack('<I4B', granted, isOver), value or packEmpty()
  replyCount = replyCount + 2
end
`;

/**
 * Decides a plain request of several charges, all on keys of their own, as `decideRepeated`,
 * whatever its buckets and its limits are like.
 */
const severalText = `
local function decideSeveral(count, multiplicity)
  local granted, bases = multiplicity, {}
  for i = 1, count do
    levels[i], expiries[i], bases[i] = read(keyOf[i], hitsOf[i], periodOf[i])
    local fitting = math.max(0, (burstOf[i] - levels[i]) / costOf[i])
    granted = math.min(granted, fitting - fitting % 1)
  end
  reply[replyCount + 1] = pack('<I4', granted)
  for i = 1, count do
    local level, value = levels[i] + granted * costOf[i], bases[i] or packEmpty()
    if granted > 0 then value = keep(keyOf[i], level, expiries[i], hitsOf[i], periodOf[i]) end
    local isOver = granted < multiplicity and burstOf[i] - level < costOf[i]
    reply[replyCount + 2 * i], reply[replyCount + 2 * i + 1] = isOver and '\\1' or '\\0', value
  end
  replyCount = replyCount + 2 * count + 1
end
`;

/**
 * Makes the functions of the long way, once in a run. It stands wherever one is needed: a function
 * that did it would have to be made itself, with all that the others use.
 */
const longWayText = `if not decideOne then
      decideAny, decideSeveral, decideOne = (function()
${bucketsText}${oneText}${severalText}
        local decide
        local function decideAny(at)
          decide = decide or (function()${lawText}          end)()
          return decide(at)
        end
        return decideAny, decideSeveral, decideOne
      end)()
    end`;

/**
 * The level of a bucket now, as `read` has it, but for what is unusual: then `isOrdinary` is false.
 * Nearly every bucket is as it was left by a plain request.
 */
const levelText = `
      local value = values[k]
      local level, expiresMs, isOrdinary = 0, 0, drain > 0
      if value and isOrdinary then
        isOrdinary = false
        if #value == 24 then
          local tUs
          level, tUs, expiresMs = unpackStruct('<ddd', value)
          if level >= 0 and level <= ${levelUnitsMax} and level % 1 == 0
            and tUs >= 0 and tUs <= nowUs and tUs % 1 == 0 then
            local product = (nowUs - tUs) * drain
            local drained = product / period
            if drained >= level + 4 then
              level, isOrdinary = 0, true
            elseif product <= 9007199254740991 then
              drained = drained - drained % 1
              level, isOrdinary = drained < level and level - drained or 0, true
            end
          end
        end
      end
`;

/** Keeps the bucket of an ordinary charge, as `keep` does. */
const keepText = `
          local spanMs = level / drain * period / 1000
          if spanMs > ${drainTimeMsMax} then spanMs = ${drainTimeMsMax} end
          if nowMs + spanMs + 1 > expiresMs then
            expiresMs = nowMs + spanMs * ${1 + keptLongerRatio} + ${keptLongerMs}
            expiresMs = expiresMs - expiresMs % 1
            expiresAt[k] = expiresMs
          elseif not expiresAt[k] then
            expiresAt[k] = unchanged
          end
          value = pack('<ddd', level, nowUs, expiresMs)
          values[k] = value
`;

/**
 * Decides plain requests of one charge each, on keys that follow each other, as `decideRepeated`
 * does: the charge enforces, costs something and gives nothing back. Nearly every request is such a
 * one, so these do without a call of a function and without one being made.
 */
const plainText = `
    local burstUnits, costUnits, drain = burst * unitsPerHit, cost * unitsPerHit, hits * unitsPerHit
    for k = first, first + run - 1 do${levelText}
      if isOrdinary then
        local free = burstUnits - level
        local head = '\\0\\0\\0\\0\\1'
        if free >= costUnits then
          local granted = 1
          head = '\\1\\0\\0\\0\\0'
          if multiplicity > 1 then
            granted = free / costUnits
            granted = granted - granted % 1
            if granted >= multiplicity then granted = multiplicity end
            head = pack('<I4B', granted, granted < multiplicity and 1 or 0)
          end
          level = level + granted * costUnits${keepText}        end
        reply[replyCount + 1], reply[replyCount + 2] = head, value or pack('<ddd', 0, nowUs, 0)
        replyCount = replyCount + 2
      else
        ${longWayText}
        decideOne(k, multiplicity, hits, burst, period, cost)
      end
    end
`;

/** The same for plain requests of several charges each, all on keys of their own. */
const plainSeveralText = `
    nextAt = at + 8
    for i = 1, count do
      keyOf[i], hits, burst, periodOf[i], cost, nextAt = unpackStruct('<I2xI4ddd', batch, nextAt)
      hitsOf[i], burstOf[i], costOf[i] = hits, burst * unitsPerHit, cost * unitsPerHit
    end
    local positions, place
    if run > 1 then
      local length = count * (run - 1)
      positions, place = { unpackStruct('<' .. string.rep('I2', length), batch, nextAt) }, 0
      nextAt = positions[length + 1]
    end
    for r = 1, run do
      local granted, areOrdinary = multiplicity, true
      for i = 1, count do
        if r > 1 then
          place = place + 1
          keyOf[i] = positions[place]
        end
        local k, drain, period = keyOf[i], hitsOf[i] * unitsPerHit, periodOf[i]${levelText}
        if not isOrdinary then areOrdinary = false end
        levels[i], expiries[i] = level, expiresMs
        local fitting = (burstOf[i] - level) / costOf[i]
        if fitting < granted then
          granted = fitting - fitting % 1
          if granted < 0 then granted = 0 end
        end
      end
      if areOrdinary then
        reply[replyCount + 1] = granted == 1 and '\\1\\0\\0\\0' or pack('<I4', granted)
        for i = 1, count do
          local k, level, flag = keyOf[i], levels[i] + granted * costOf[i], '\\0'
          local value = values[k]
          if granted < multiplicity and burstOf[i] - level < costOf[i] then flag = '\\1' end
          if granted > 0 then
            local drain, period = hitsOf[i] * unitsPerHit, periodOf[i]
            local expiresMs = expiries[i]${keepText}          end
          reply[replyCount + 2], reply[replyCount + 3] = flag, value or pack('<ddd', 0, nowUs, 0)
          replyCount = replyCount + 2
        end
        replyCount = replyCount + 1
      else
        ${longWayText}
        decideSeveral(count, multiplicity)
      end
    end
`;

/**
 * The law of `core/limits/gcra` and the arithmetic of `core/base/safe-integer-math` a second time,
 * in Lua 5.1, for a batch of requests. Both are kept equal, step by step, by a differential test on
 * random histories.
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
 * Therefore a new one reaches further than is needed.
 *
 * Lua makes functions anew in every run, and a call of one costs as much as ten lines of it. So the
 * short way has none, and those of the long way are made when something needs them.
 */
export const takeScript: StoreScript = {
  name: "take",
  text: `
local pack, unpackStruct, call = struct.pack, struct.unpack, redis.call
local unitsPerHit, unchanged, forgotten = 1048576, 0, -1
local keys, batch = KEYS, ARGV[1]

local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = nowUs / 1000
local values, expiresAt, badCount = call('MGET', unpack(keys)), {}, 0
local reply, replyCount = { '' }, 1

local decideAny, decideSeveral, decideOne

-- The charges of a plain request with several, by position in it, and what was found for them.

local keyOf, hitsOf, burstOf, periodOf, costOf, levels, expiries = {}, {}, {}, {}, {}, {}, {}

-- Each request of the batch in turn. The first charge of a plain one is marked; of those with one
-- charge the first stands for as many as follow it in all but the key.

local at, batchEnd = 1, #batch
while at <= batchEnd do
  local count, multiplicity, run, first, flags, hits, burst, period, cost, nextAt =
    unpackStruct('<I2I4I2I2BI4ddd', batch, at)
  if flags % 32 < 16 then
    ${longWayText}
    at = decideAny(at)
  elseif count > 1 then${plainSeveralText}    at = nextAt
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
