import { levelUnitsMax } from "../../../core/limits/bucket.js";
import { exactText } from "./exact-text.js";

/** How much longer than it needs a key is kept: this part of the need, and `keptLongerMs`. */
export const keptLongerRatio = 0.25;

/** Milliseconds; a key that is asked for at least this often is seldom given a new expiry. */
export const keptLongerMs = 1_000;

/** A drain time counts as at most this, about 35 years; as in `core/limits/gcra`. */
export const drainTimeMsMax = 2 ** 50 / 1_000;

/**
 * Reading and keeping buckets of any kind, in Lua: a part of the take script, whose `values` hold
 * them by position of their key, as they are packed, and `expiresAt` what becomes of those that
 * were changed.
 */
export const bucketsText = `
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
