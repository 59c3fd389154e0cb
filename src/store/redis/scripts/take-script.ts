import { levelUnitsMax } from "../../../core/limits/bucket.js";
import { bucketsText, writeBucketsText } from "./bucket-text.js";
import type { StoreScript } from "./connection.js";
import { lawText, windowText } from "./law-text.js";

/**
 * Decides a plain request whose charges all have different keys, as `decideRepeated` does, for any
 * buckets and limits.
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
 * `floorMulDiv` inlined: computes how much has drained if the product is not exact, for example for
 * 1,000 hits per hour after 8.6 s. Splits each factor into two halves whose products are exact.
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
 * Computes the current level of a bucket, like `read`, if no stored time is in the future. A bucket
 * that was charged in this batch already has its current level.
 */
function levelText(drain = ""): string {
  return `
      local level, tUs = stored[j - 2], stored[j - 1]
      if level > 0 and tUs < nowUs then${drain}
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
}

/** Reads the drain settings of a charge. */
const drainText = `
        local drain, period, fromUs = drainOf[i], periodOf[i], fromOf[i]`;

/** Reads the windows of a charge, finds the current one, and computes how long it is kept. */
const windowsText = `
      windowAt = windowAt or (function()
${windowText}
        return windowAt
      end)()
      local startUs, endUs, nextEndUs, untilUs
      startUs, endUs, nextEndUs, nextAt = unpackStruct('<ddd', batch, nextAt)
      fromUs, untilUs = windowAt(startUs, endUs, nextEndUs)
      by = (nowUs - untilUs) / 1000
`;

/**
 * Decides plain requests with one charge each, on consecutive keys, as `decideRepeated` does. The
 * charge enforces, has a cost and is no refund. Nearly every request is like this, so this path
 * neither calls nor creates functions.
 */
const plainText = `
    local burstUnits, costUnits, drain = burst * unitsPerHit, cost * unitsPerHit, hits * unitsPerHit
    local by, fromUs = period / drain / 1000
    if flags % 64 >= 32 then${windowsText}    end
    for j = 3 * first, 3 * (first + run - 1), 3 do${levelText()}
      local free, granted = burstUnits - level, 0
      if free >= costUnits then
        granted = 1
        if multiplicity > 1 then
          granted = free / costUnits
          granted = granted - granted % 1
          if granted >= multiplicity then granted = multiplicity end
        end
        level = level + granted * costUnits
        stored[j - 2], stored[j - 1], keptBy[j / 3] = level, nowUs, by
      end
      level = stored[j - 2]
      out[outCount + 1] = granted
      out[outCount + 2] = granted < multiplicity and -1 - level or level
      out[outCount + 3] = stored[j - 1]
      outCount = outCount + 3
    end
`;

/** Reads the charges of a request. Determines whether it takes the short path and all are plain. */
const chargesText = `
    if not keyOf then
      keyOf, flagsOf, drainOf = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
      burstOf, periodOf, costOf = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
      levels, keptByOf = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
      fromOf, lastOf, areOver, afters = {}, {}, {}, {}
    end
    nextAt = at + 8
    local arePlain = true
    for i = 1, count do
      keyOf[i], flags, hits, burst, period, cost, nextAt =
        unpackStruct('<I2BI4ddd', batch, nextAt)
      flagsOf[i], drainOf[i], burstOf[i] = flags, hits * unitsPerHit, burst * unitsPerHit
      periodOf[i], costOf[i] = period, cost * unitsPerHit
      local by, fromUs = period / drainOf[i] / 1000
      if flags % 64 >= 32 then${windowsText}      end
      keptByOf[i], fromOf[i], lastOf[i] = by, fromUs, nil
      if flags >= 128 then lastOf[i], nextAt = unpackStruct('<I2', batch, nextAt) end
      if flags % 8 ~= 0 or flags >= 64 or cost == 0 then arePlain = false end
      if hits == 0 then isShort = false end
    end
    arePlain = arePlain and isShort
    local places, place, positions = keyOf, 0, nil
    if run > 1 and count > 1 then
      local length = count * (run - 1)
      positions = { unpackStruct('<' .. string.rep('I2', length), batch, nextAt) }
      nextAt = positions[length + 1]
    end
`;

/** Finds the keys of the next request of a run, in `places` from `place` on. */
const nextKeysText = `
      if r == 2 and positions then
        places = positions
      elseif r > 1 and positions then
        place = place + count
      elseif r > 1 then
        keyOf[1] = first + r - 1
      end
`;

/**
 * Decides plain requests with several charges each. A request is granted as often as it fits all
 * its buckets. Values that a run has in common are in local variables, since reading them from
 * tables takes as long as the decision.
 */
function grantText(count: number): string {
  const each = (text: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => text(i + 1)).join("");
  return `${each(
    (i) => `
      local burst${i}, cost${i}, drain${i} = burstOf[${i}], costOf[${i}], drainOf[${i}]
      local period${i}, from${i}, by${i} = periodOf[${i}], fromOf[${i}], keptByOf[${i}]`,
  )}
      for r = 1, run do${nextKeysText}
        local granted, free = multiplicity, 0${each(
          (i) => `
        local k${i} = places[place + ${i}]
        local j, level${i} = 3 * k${i}, 0
        do${levelText(`
          local drain, period, fromUs = drain${i}, period${i}, from${i}`)}
          level${i} = level
        end
        free = burst${i} - level${i}
        if free < granted * cost${i} then
          granted = free / cost${i}
          granted = granted > 0 and granted - granted % 1 or 0
        end`,
        )}
        out[outCount + 1] = granted
        if granted > 0 then${each(
          (i) => `
          level${i} = level${i} + granted * cost${i}
          stored[3 * k${i} - 2], stored[3 * k${i} - 1], keptBy[k${i}] = level${i}, nowUs, by${i}`,
        )}
        end
        if granted == multiplicity then${each(
          (i) => `
          out[outCount + ${2 * i}], out[outCount + ${2 * i + 1}] = level${i}, nowUs`,
        )}
        else${each(
          (i) => `
          local shown = stored[3 * k${i} - 2]
          if burst${i} - level${i} < cost${i} then shown = -1 - shown end
          out[outCount + ${2 * i}], out[outCount + ${2 * i + 1}] = shown, stored[3 * k${i} - 1]`,
        )}
        end
        outCount = outCount + ${2 * count + 1}
      end`;
}

/** Decides a request with charges that are not plain: peeks, refunds, settle charges. */
const mixedText = `
      local isDenied, quotaCount, quotaOverCount = false, 0, 0
      for i = 1, count do
        local j = 3 * places[place + i]${levelText(drainText)}
        local flags, burst, cost, isOver, after = flagsOf[i], burstOf[i], costOf[i], false, level
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
        levels[i], areOver[i], afters[i] = level, isOver, after
        if flags % 4 == 2 then
          quotaCount = quotaCount + 1
          if isOver then quotaOverCount = quotaOverCount + 1 end
        elseif isOver and flags % 4 == 0 then
          isDenied = true
        end
      end
      if quotaCount > 0 and quotaOverCount == quotaCount then isDenied = true end
      out[outCount + 1] = isDenied and 0 or 1
      outCount = outCount + 2
      for i = 1, count do
        local k, flags = places[place + i], flagsOf[i]
        local j, isTaken = 3 * k, not isDenied or flags % 8 >= 4 or flags % 128 >= 64
        if isTaken and afters[i] ~= levels[i] then
          stored[j - 2], stored[j - 1], keptBy[k] = afters[i], nowUs, keptByOf[i]
        end
        local level = stored[j - 2]
        out[outCount], out[outCount + 1] = areOver[i] and -1 - level or level, stored[j - 1]
        outCount = outCount + 2
      end
      outCount = outCount - 1
`;

/** Decides requests without exactly one plain charge. Most have two to four plain charges. */
const otherText = `${chargesText}
    ${[2, 3, 4].map((n) => `if arePlain and count == ${n} then${grantText(n)} else`).join("")}
      for r = 1, run do${nextKeysText}
        if isShort and multiplicity == 1 then${mixedText}        else
          if not decideAny then
            decideAny, decideSeveral = (function()
${bucketsText}${severalText}
              local decide
              local function decideAny(count)
                decide = decide or (function()${lawText}                end)()
                return decide(count)
              end
              return decideAny, decideSeveral
            end)()
          end
          for i = 1, count do keyOf[i] = places[place + i] end
          if multiplicity > 1 then decideSeveral(count, multiplicity) else decideAny(count) end
        end
      end
    end
`;

/**
 * A second implementation of the algorithm of `core/limits/gcra` and of the arithmetic of
 * `core/base/safe-integer-math`, in Lua 5.1, for a batch of requests. A differential test on random
 * histories keeps both equal, step by step.
 *
 * KEYS: each distinct key of the batch once. ARGV[1]: the batch as packed by `encodeBatch`. Returns
 * one string for `decodeReply`. All numbers are passed in packed binary form, since Lua converts
 * numbers to text with 14 digits, and replies cut fractions off.
 *
 * A script that fails halfway is not rolled back. So it reads and decides everything first and
 * writes last. If the server refuses writes (OOM, READONLY, MISCONF), the first one fails.
 *
 * A stored value not written by Headgate (wrong length, not an integer, negative, too large) counts
 * as absent and is overwritten by the next charge: it must not fail the neighbours in the batch.
 *
 * A value contains level, time in us and expiry in ms, so that the script sees if the key's expiry
 * still suffices: SETRANGE takes 0.35 us of Redis, SET with an expiry 1 us. Numbers are passed as
 * text, since Redis would take 0.2 us to convert them. A new expiry is later than needed.
 *
 * Lua creates functions again in every run, and a call costs as much as ten lines. So the short
 * path has no functions, and those of the long path are created on demand. One call unpacks all
 * buckets into numbers, and one call packs all results.
 */
export const takeScript: StoreScript = {
  name: "take",
  text: `
local pack, unpackStruct, call = struct.pack, struct.unpack, redis.call
local unitsPerHit = 1048576
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

-- Of each key its level, the time of that, and when it expires. And of one that was changed, how
-- long it takes to drain: in ms a unit, or in all as a negative number. A table that grows costs
-- much, so one is used again.

local bytes, keptBy, isSteppedBack = table.concat(values), values, false
local stored = { unpackStruct('<' .. string.rep('ddd', keyCount), bytes) }
for j = 3, 3 * keyCount, 3 do
  keptBy[j / 3] = false
  local level, tUs = stored[j - 2], stored[j - 1]
  if not (level >= 0 and level <= ${levelUnitsMax} and level % 1 == 0
    and tUs >= 0 and tUs <= 9007199254740991 and tUs % 1 == 0) then
    stored[j - 2], stored[j - 1], stored[j], badCount = 0, nowUs, 0, badCount + 1
  elseif tUs > nowUs then
    isSteppedBack = true
  end
end

-- What is replied: of a request how many were granted; of a charge its bucket as level and time,
-- where one that is over has -1 - level. It begins with as much room as it mostly needs.

local out, outCount = { string.byte(bytes, 1, 3 * keyCount + 2) }, 2

-- The charges of the request in hand, by position in it, in units; and what was found for them.

local keyOf, flagsOf, drainOf, burstOf, periodOf, costOf, keptByOf, fromOf, lastOf
local levels, areOver, afters
local decideAny, decideSeveral, windowAt

-- Each request of the batch in turn. The first charge of one on keys of its own is marked; the
-- request stands for as many as follow it in all but the keys.

local at, batchEnd = 1, #batch
while at <= batchEnd do
  local count, multiplicity, run, first, flags, hits, burst, period, cost, nextAt =
    unpackStruct('<I2I4I2I2BI4ddd', batch, at)
  local isShort = flags % 32 >= 16 and not isSteppedBack
  local isOne = isShort and count == 1 and hits > 0
  if isOne and flags % 8 == 0 and flags < 64 and cost > 0 then${plainText}  else${otherText}  end
  at = nextAt
end
${writeBucketsText}
out[1], out[2] = nowUs, badCount
return pack('<' .. string.rep('d', outCount), unpack(out, 1, outCount))
`,
};
