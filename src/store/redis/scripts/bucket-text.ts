import { exactText } from "./exact-text.js";

/** How much longer than it needs a key is kept: this part of the need, and `keptLongerMs`. */
export const keptLongerRatio = 0.25;

/** Milliseconds; a key that is asked for at least this often is seldom given a new expiry. */
export const keptLongerMs = 1_000;

/** A drain time counts as at most this, about 35 years; as in `core/limits/gcra`. */
export const drainTimeMsMax = 2 ** 50 / 1_000;

/**
 * Reading and keeping any bucket, in Lua: a part of the take script, whose `stored` holds three
 * numbers of each key: level, time and expiry. `expiresAt` says what becomes of those that were
 * changed.
 */
export const bucketsText = `
local floorMulDiv

-- Keeps a level as of now until it has drained, or its window has ended. One that does not drain is
-- left as others stored it.

local function keep(k, i, level)
  local drain, untilUs, j = drainOf[i], untilOf[i], 3 * k
  if drain == 0 then return end
  if level == 0 then
    stored[j - 2], stored[j - 1], stored[j], expiresAt[k] = 0, nowUs, 0, forgotten
    return
  end
  local spanMs
  if untilUs then
    spanMs = (untilUs - nowUs) / 1000
  else
    spanMs = level / drain * periodOf[i] / 1000
    if spanMs > ${drainTimeMsMax} then spanMs = ${drainTimeMsMax} end
  end
  if nowMs + spanMs + 1 > stored[j] then
    local expiresMs = nowMs + spanMs * ${1 + keptLongerRatio} + ${keptLongerMs}
    stored[j] = expiresMs - expiresMs % 1
    expiresAt[k] = stored[j]
  elseif not expiresAt[k] then
    expiresAt[k] = unchanged
  end
  stored[j - 2], stored[j - 1] = level, nowUs
end

-- The level of a key now, by the limit of a charge; and its bucket, as level and time. A time in
-- the future, where the clock stepped back, becomes now, and that is kept whatever is decided.

local function read(k, i)
  local level, tUs, drain, fromUs = stored[3 * k - 2], stored[3 * k - 1], drainOf[i], fromOf[i]
  if tUs > nowUs then
    keep(k, i, level)
    return level, level, nowUs
  end
  if fromUs then return tUs < fromUs and 0 or level, level, tUs end
  local elapsed, period = nowUs - tUs, periodOf[i]
  local product = elapsed * drain
  local drained = product / period
  if drained >= level + 4 then return 0, level, tUs end
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
  return level - drained, level, tUs
end
`;
