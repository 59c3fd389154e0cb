import { levelUnitsMax } from "../../../core/limits/bucket.js";
import { bucketsText, drainTimeMsMax, keptLongerMs, keptLongerRatio } from "./bucket-text.js";
import type { StoreScript } from "./connection.js";
import { lawText, windowText } from "./law-text.js";

/**
 * Decides a plain request, all of whose charges are on keys of their own, as `decideRepeated`,
 * whatever its buckets and its limits are like.
 */
const severalText = `
local function decideSeveral(count, multiplicity)
  local granted, bases, times = multiplicity, {}, {}
  for i = 1, count do
    levels[i], bases[i], times[i] = read(keyOf[i], i)
    local fitting = math.max(0, (burstOf[i] - levels[i]) / costOf[i])
    granted = math.min(granted, fitting - fitting % 1)
  end
  out[outCount + 1] = granted
  for i = 1, count do
    local level, shown, tUs = levels[i] + granted * costOf[i], bases[i], times[i]
    if granted > 0 then
      keep(keyOf[i], i, level)
      shown, tUs = level, nowUs
    end
    local isOver = granted < multiplicity and burstOf[i] - level < costOf[i]
    out[outCount + 2 * i], out[outCount + 2 * i + 1] = isOver and -1 - shown or shown, tUs
  end
  outCount = outCount + 2 * count + 1
end
`;

/**
 * Makes the functions of the long way, once in a run. It stands wherever one is needed: a function
 * that did it would have to be made itself, with all that the others use.
 */
const longWayText = `if not decideAny then
      decideAny, decideSeveral = (function()
${bucketsText}${severalText}
        local decide
        local function decideAny(count)
          decide = decide or (function()${lawText}          end)()
          return decide(count)
        end
        return decideAny, decideSeveral
      end)()
    end`;

/** Makes room for the charges of a request, once in a run that needs it. */
const roomText = `if not keyOf then
      keyOf, flagsOf, drainOf, burstOf = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
      periodOf, costOf, levels = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
      fromOf, untilOf, lastOf, areOver, afters = {}, {}, {}, {}, {}
    end`;

/** Reads the windows of a charge, and says which one holds now. */
const windowsText = `
      windowAt = windowAt or (function()
${windowText}
        return windowAt
      end)()
      local startUs, endUs, nextEndUs
      startUs, endUs, nextEndUs, nextAt = unpackStruct('<ddd', batch, nextAt)
      fromUs, untilUs = windowAt(startUs, endUs, nextEndUs)
`;

/**
 * `floorMulDiv` without a function: how much has drained where the product is not exact, as it is
 * for 1,000 hits an hour after 8.6 s. Each factor is split in two halves, whose products are.
 */
const exactDrainText = `
              local elapsed = nowUs - tUs
              local right = drained * period
              local scaled = 134217729 * elapsed
              local a = scaled - (scaled - elapsed)
              local aLow = elapsed - a
              scaled = 134217729 * drain
              local b = scaled - (scaled - drain)
              local bLow = drain - b
              scaled = 134217729 * drained
              local c = scaled - (scaled - drained)
              local cLow = drained - c
              scaled = 134217729 * period
              local d = scaled - (scaled - period)
              local dLow = period - d
              local leftError = aLow * bLow - (product - a * b - aLow * b - a * bLow)
              local rightError = cLow * dLow - (right - c * d - cLow * d - c * dLow)
              local rest = product - right + (leftError - rightError)
              while rest < 0 do drained, rest = drained - 1, rest + period end
              while rest >= period do drained, rest = drained + 1, rest - period end
`;

/**
 * The level of a bucket now, as `read` has it, but for what is unusual: then `isOrdinary` is false.
 * Nearly every bucket is as it was left by a charge of the same limit.
 */
const levelText = `
      local level, tUs = stored[j - 2], stored[j - 1]
      local isOrdinary = tUs <= nowUs and drain > 0
      if isOrdinary and level > 0 then
        if fromUs then
          if tUs < fromUs then level = 0 end
        else
          local product = (nowUs - tUs) * drain
          local drained = product / period
          if drained >= level + 4 then
            level = 0
          else
            drained = drained - drained % 1
            if product > 9007199254740991 then${exactDrainText}            end
            level = drained < level and level - drained or 0
          end
        end
      end
`;

/** Keeps the level of an ordinary charge, as `keep` does where something is left. */
const keepText = `
          local spanMs = windowMs or level / drain * period / 1000
          if spanMs > ${drainTimeMsMax} then spanMs = ${drainTimeMsMax} end
          if nowMs + spanMs + 1 > stored[j] then
            local expiresMs = nowMs + spanMs * ${1 + keptLongerRatio} + ${keptLongerMs}
            expiresMs = expiresMs - expiresMs % 1
            stored[j], expiresAt[k] = expiresMs, expiresMs
          elseif not expiresAt[k] then
            expiresAt[k] = unchanged
          end
          stored[j - 2], stored[j - 1] = level, nowUs
`;

/**
 * Decides plain requests of one charge each, on keys that follow each other, as `decideRepeated`
 * does: the charge enforces, costs something and gives nothing back. Nearly every request is such a
 * one, so these do without a call of a function and without one being made.
 */
const plainText = `
    local burstUnits, costUnits, drain = burst * unitsPerHit, cost * unitsPerHit, hits * unitsPerHit
    local fromUs, untilUs, windowMs
    if flags % 64 >= 32 then${windowsText}      windowMs = (untilUs - nowUs) / 1000
    end
    for k = first, first + run - 1 do
      local j = 3 * k${levelText}
      if isOrdinary then
        local free, granted = burstUnits - level, 0
        if free >= costUnits then
          granted = 1
          if multiplicity > 1 then
            granted = free / costUnits
            granted = granted - granted % 1
            if granted >= multiplicity then granted = multiplicity end
          end
          level = level + granted * costUnits${keepText}        end
        level = stored[j - 2]
        out[outCount + 1] = granted
        out[outCount + 2] = granted < multiplicity and -1 - level or level
        out[outCount + 3] = stored[j - 1]
        outCount = outCount + 3
      else
        ${longWayText}
        ${roomText}
        keyOf[1], drainOf[1], burstOf[1], periodOf[1], costOf[1] =
          k, drain, burstUnits, period, costUnits
        fromOf[1], untilOf[1] = fromUs, untilUs
        decideSeveral(1, multiplicity)
      end
    end
`;

/** Reads the charges of a request, and says whether all are plain. */
const chargesText = `
    ${roomText}
    nextAt = at + 8
    local arePlain = true
    for i = 1, count do
      keyOf[i], flags, hits, burst, period, cost, nextAt =
        unpackStruct('<I2BI4ddd', batch, nextAt)
      flagsOf[i], drainOf[i], burstOf[i] = flags, hits * unitsPerHit, burst * unitsPerHit
      periodOf[i], costOf[i] = period, cost * unitsPerHit
      local fromUs, untilUs
      if flags % 64 >= 32 then${windowsText}      end
      fromOf[i], untilOf[i], lastOf[i] = fromUs, untilUs, nil
      if flags >= 128 then lastOf[i], nextAt = unpackStruct('<I2', batch, nextAt) end
      if flags % 8 ~= 0 or flags >= 64 or cost == 0 then arePlain = false end
    end
`;

/** The granted requests of plain ones: as many as fit everywhere. */
const grantText = `
        out[outCount + 1] = granted
        for i = 1, count do
          local k, level = keyOf[i], levels[i] + granted * costOf[i]
          local isOver, j = granted < multiplicity and burstOf[i] - level < costOf[i], 3 * k
          if granted > 0 then
            local drain, period, untilUs = drainOf[i], periodOf[i], untilOf[i]
            local windowMs = untilUs and (untilUs - nowUs) / 1000${keepText}          end
          level = stored[j - 2]
          out[outCount + 2], out[outCount + 3] = isOver and -1 - level or level, stored[j - 1]
          outCount = outCount + 2
        end
        outCount = outCount + 1
`;

/** A request with charges that are not plain: a peek, a refund, one that is stored in any case. */
const mixedText = `
        local isDenied, quotaCount, quotaOverCount = false, 0, 0
        for i = 1, count do
          local flags, level, burst, cost = flagsOf[i], levels[i], burstOf[i], costOf[i]
          local isOver, after = false, level
          if flags % 8 >= 4 then
            after = level > cost and level - cost or 0
          elseif cost == 0 then
            isOver = (flags % 16 >= 8 and level + unitsPerHit or level) > burst
          else
            isOver = level + cost > burst
            if flags % 128 < 64 then
              after = isOver and level or level + cost
            else
              after = level + cost < 2 * burst and level + cost or 2 * burst
              if after < level then after = level end
            end
          end
          areOver[i], afters[i] = isOver, after
          if flags % 4 == 2 then
            quotaCount = quotaCount + 1
            if isOver then quotaOverCount = quotaOverCount + 1 end
          elseif isOver and flags % 4 == 0 then
            isDenied = true
          end
        end
        if quotaCount > 0 and quotaOverCount == quotaCount then isDenied = true end
        out[outCount + 1] = isDenied and 0 or 1
        for i = 1, count do
          local k, level, flags = keyOf[i], afters[i], flagsOf[i]
          local j = 3 * k
          if isDenied and flags % 8 < 4 and flags % 128 < 64 then level = levels[i] end
          if level ~= levels[i] then
            if level > 0 then
              local drain, period, untilUs = drainOf[i], periodOf[i], untilOf[i]
              local windowMs = untilUs and (untilUs - nowUs) / 1000${keepText}            else
              stored[j - 2], stored[j - 1], stored[j], expiresAt[k] = 0, nowUs, 0, forgotten
            end
          end
          level = stored[j - 2]
          out[outCount + 2], out[outCount + 3] = areOver[i] and -1 - level or level, stored[j - 1]
          outCount = outCount + 2
        end
        outCount = outCount + 1
`;

/** Decides requests of several charges each, all on keys of their own; or of one that is not plain. */
const ownKeysText = `
    local positions, place
    if run > 1 and count > 1 then
      local length = count * (run - 1)
      positions, place = { unpackStruct('<' .. string.rep('I2', length), batch, nextAt) }, 0
      nextAt = positions[length + 1]
    end
    for r = 1, run do
      local granted, areOrdinary = multiplicity, true
      for i = 1, count do
        if r > 1 then
          if positions then
            place = place + 1
            keyOf[i] = positions[place]
          else
            keyOf[i] = first + r - 1
          end
        end
        local j, drain, period, fromUs = 3 * keyOf[i], drainOf[i], periodOf[i], fromOf[i]${levelText}
        if not isOrdinary then areOrdinary = false end
        levels[i] = level
        if arePlain then
          local fitting = (burstOf[i] - level) / costOf[i]
          if fitting < granted then
            granted = fitting - fitting % 1
            if granted < 0 then granted = 0 end
          end
        end
      end
      if not areOrdinary then
        ${longWayText}
        if arePlain then decideSeveral(count, multiplicity) else decideAny(count) end
      elseif arePlain then${grantText}      else${mixedText}      end
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
 * short way has none, and those of the long way are made when something needs them. Buckets and
 * results are numbers between one call that unpacks all of them and one that packs all.
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
local values, badCount = call('MGET', unpack(keys)), 0
local keyCount, absent = #keys, pack('<ddd', 0, nowUs, 0)

for k = 1, keyCount do
  local value = values[k]
  if not value then
    values[k] = absent
  elseif #value ~= 24 then
    values[k], badCount = absent, badCount + 1
  end
end

-- Of each key its level, the time of that, and when it expires; and what becomes of the expiry, by
-- which a key that was changed is known. A table that grows costs much, so one is used again.

local bytes, expiresAt = table.concat(values), values
local stored = { unpackStruct('<' .. string.rep('ddd', keyCount), bytes) }
for j = 3, 3 * keyCount, 3 do
  expiresAt[j / 3] = false
  local level, tUs = stored[j - 2], stored[j - 1]
  if not (level >= 0 and level <= ${levelUnitsMax} and level % 1 == 0
    and tUs >= 0 and tUs <= 9007199254740991 and tUs % 1 == 0) then
    stored[j - 2], stored[j - 1], stored[j], badCount = 0, nowUs, 0, badCount + 1
  end
end

-- What is replied: of a request how many were granted; of a charge its bucket as level and time,
-- where one that is over has -1 - level. It begins with as much room as it mostly needs.

local out, outCount = { string.byte(bytes, 1, 3 * keyCount + 2) }, 2

-- The charges of the request in hand, by position in it, in units; and what was found for them.

local keyOf, flagsOf, drainOf, burstOf, periodOf, costOf
local fromOf, untilOf, lastOf, levels, areOver, afters
local decideAny, decideSeveral, windowAt

-- Each request of the batch in turn. The first charge of one on keys of its own is marked; the
-- request stands for as many as follow it in all but the keys.

local at, batchEnd = 1, #batch
while at <= batchEnd do
  local count, multiplicity, run, first, flags, hits, burst, period, cost, nextAt =
    unpackStruct('<I2I4I2I2BI4ddd', batch, at)
  local hasOwnKeys = flags % 32 >= 16
  if hasOwnKeys and count == 1 and flags % 8 == 0 and flags < 64 and cost > 0 then${plainText}  else${chargesText}
    if hasOwnKeys then${ownKeysText}    else
      ${longWayText}
      decideAny(count)
    end
  end
  at = nextAt
end

for k = 1, keyCount do
  local expires = expiresAt[k]
  if expires == forgotten then
    call('DEL', keys[k])
  elseif expires then
    local value = pack('<ddd', stored[3 * k - 2], nowUs, stored[3 * k])
    if expires == unchanged then
      call('SET', keys[k], value, 'KEEPTTL')
    else
      call('SET', keys[k], value, 'PXAT', expires)
    end
  end
end

out[1], out[2] = nowUs, badCount
return pack('<' .. string.rep('d', outCount), unpack(out, 1, outCount))
`,
};
