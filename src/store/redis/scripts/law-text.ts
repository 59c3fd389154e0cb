/**
 * A second implementation of `windowAt` of `core/limits/window`, in Lua, for scripts that define
 * `nowUs`. Returns the start and the end of the current window.
 */
export const windowText = `
local function windowAt(startUs, endUs, nextEndUs)
  if nowUs < startUs then return 0, startUs end
  if nowUs < endUs then return startUs, endUs end
  if nowUs < nextEndUs then return endUs, nextEndUs end
  local lengthUs = nextEndUs - endUs
  local passed = (nowUs - nextEndUs) / lengthUs
  local laterUs = nextEndUs + (passed - passed % 1) * lengthUs
  return laterUs, laterUs + lengthUs
end
`;

/**
 * Decides requests of any kind with multiplicity 1, as `decideRequest` of `core/limits/gcra` does.
 * It is a part of the take script, which has read the charges before. It is created for the first
 * request that needs it, since most batches do not.
 */
export const lawText = `
  local isOver, resultLevel, resultUs = {}, {}, {}

  -- The drafts of the request in hand, by position of their key.

  local openedFor, baseLevel, baseUs, levelNow, level, isTouched = {}, {}, {}, {}, {}, {}
  local request = 0

  -- For which request the key of the limit that was carried last has been read.

  local readFor = {}

  local function openDraft(i)
    local k = keyOf[i]
    if openedFor[k] == request then return false end
    openedFor[k] = request
    levelNow[k], baseLevel[k], baseUs[k] = read(k, i)
    local last = lastOf[i]
    if last and readFor[last] == request then
      lastOf[i] = nil
    elseif last then
      readFor[last] = request
      local lastLevel = math.min(read(last, i), burstOf[i])
      if levelNow[k] == 0 and lastLevel > 0 then
        levelNow[k], baseLevel[k], baseUs[k] = lastLevel, lastLevel, nowUs
        keep(k, i, lastLevel)
      end
    end
    level[k], isTouched[k] = levelNow[k], false
    return true
  end

  local function touch(k, to)
    if level[k] ~= to then level[k], isTouched[k] = to, true end
  end

  local function noteBucket(i)
    local k = keyOf[i]
    if isTouched[k] then
      resultLevel[i], resultUs[i] = level[k], nowUs
    else
      resultLevel[i], resultUs[i] = baseLevel[k], baseUs[k]
    end
  end

  local function evaluate(i)
    local k, flags, burst, cost = keyOf[i], flagsOf[i], burstOf[i], costOf[i]
    local over = false
    if flags % 8 >= 4 then
      touch(k, math.max(0, level[k] - cost))
    elseif cost == 0 then
      local wanted = level[k]
      if flags % 16 >= 8 then wanted = wanted + unitsPerHit end
      over = wanted > burst
    else
      over = level[k] + cost > burst
      if flags % 128 >= 64 then
        touch(k, math.max(level[k], math.min(level[k] + cost, 2 * burst)))
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
      if isOver[i] and role == 0 then return true end
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
      if flagsOf[i] % 8 >= 4 or flagsOf[i] % 128 >= 64 then
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

  return function(count)
    request = request + 1
    local firsts = {}
    for i = 1, count do
      if openDraft(i) then firsts[#firsts + 1] = i end
    end
    out[outCount + 1] = decide(count)
    for _, i in ipairs(firsts) do
      local k = keyOf[i]
      if isTouched[k] then
        keep(k, i, level[k])
        if lastOf[i] then keep(lastOf[i], i, level[k]) end
      end
    end
    for i = 1, count do
      out[outCount + 2 * i] = isOver[i] and -1 - resultLevel[i] or resultLevel[i]
      out[outCount + 2 * i + 1] = resultUs[i]
    end
    outCount = outCount + 2 * count + 1
  end
`;
