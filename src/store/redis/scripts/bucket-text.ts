import { exactText } from "./exact-text.js";

/** A new key is kept longer than needed, by this part of the need plus `keptLongerMs`. */
const keptLongerRatio = 0.25;

/** The same for a key that is charged again. Many keys never are, and would waste room. */
const usedKeptLongerRatio = 0.5;

/** In milliseconds. A key that is used at least this often seldom needs a new expiry. */
const keptLongerMs = 1_000;

/** Maximum drain time, about 35 years, as in `core/limits/gcra`. Longer ones count as this. */
const drainTimeMsMax = 2 ** 50 / 1_000;

/**
 * Reads and keeps any bucket, in Lua, as part of the take script. Its `stored` has three numbers
 * for each key: level, time and expiry. `keptBy` determines the expiry from the level.
 */
export const bucketsText = `
local floorMulDiv

-- Keeps a level as of now. One that does not drain is left as others stored it.

local function keep(k, i, level)
  if drainOf[i] == 0 then return end
  stored[3 * k - 2], stored[3 * k - 1], keptBy[k] = level, nowUs, keptByOf[i]
end

-- The level of a key now, by the limit of a charge; and its bucket, as level and time. A time in
-- the future, where the clock stepped back, becomes now, and that is kept whatever is decided.

local function read(k, i)
  local level, tUs, drain, fromUs = stored[3 * k - 2], stored[3 * k - 1], drainOf[i], fromOf[i]
  if tUs > nowUs then
    -- Its expiry is as much too late.
    stored[3 * k] = 0
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

/**
 * Writes the changed keys. Each is kept until it has drained or its window has ended. Empty ones
 * are deleted.
 */
export const writeBucketsText = `
for k = 1, keyCount do
  local by = keptBy[k]
  if by then
    local level, expiresMs = stored[3 * k - 2], stored[3 * k]
    if level == 0 then
      call('DEL', keys[k])
    else
      local spanMs = by < 0 and -by or level * by
      if spanMs > ${drainTimeMsMax} then spanMs = ${drainTimeMsMax} end
      if nowMs + spanMs + 1 <= expiresMs then
        call('SETRANGE', keys[k], '0', pack('<ddd', level, nowUs, expiresMs))
      else
        local ratio = expiresMs > 0 and ${1 + usedKeptLongerRatio} or ${1 + keptLongerRatio}
        expiresMs = nowMs + spanMs * ratio + ${keptLongerMs}
        expiresMs = expiresMs - expiresMs % 1
        local value = pack('<ddd', level, nowUs, expiresMs)
        call('SET', keys[k], value, 'PXAT', string.format('%d', expiresMs))
      end
    end
  end
end
`;
