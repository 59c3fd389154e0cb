/**
 * `windowAt` of `core/limits/window` a second time, in Lua, for scripts that know `nowUs`: from
 * when on, and until when, the window counts that holds now.
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
 * Decides requests of any kind, each asked once, as `decideRequest` of `core/limits/gcra` does: a
 * part of the take script. It is made when the first one comes that is not plain: most batches
 * need none of this.
 */
export const lawText = `
  -- The charges of the request in hand, by position in it, and what was found for them.

  local keyOf, flagsOf, hitsOf, burstOf, periodOf, costOf = {}, {}, {}, {}, {}, {}
  local isOver, result = {}, {}

  -- The drafts of the request in hand, by position of their key.

  local openedFor, base, expiresMs, levelNow, level, isTouched = {}, {}, {}, {}, {}, {}
  local request = 0

  -- The window that a charge counts in, where it does: from when on, and until when.

  local fromOf, untilOf = {}, {}

  -- Of a carried limit, the position of the key of the one that was carried last, and its expiry.

  local lastOf, lastExpiresMs, readFor = {}, {}, {}
  ${windowText}
  local function openDraft(i)
    local k = keyOf[i]
    if openedFor[k] == request then return false end
    openedFor[k] = request
    levelNow[k], expiresMs[k], base[k] = read(k, hitsOf[i], periodOf[i], fromOf[i], untilOf[i])
    local last = lastOf[i]
    if last and readFor[last] == request then
      lastOf[i] = nil
    elseif last then
      local lastLevel
      readFor[last] = request
      lastLevel, lastExpiresMs[i] = read(last, hitsOf[i], periodOf[i], fromOf[i], untilOf[i])
      lastLevel = math.min(lastLevel, burstOf[i] * unitsPerHit)
      if levelNow[k] == 0 and lastLevel > 0 then
        levelNow[k] = lastLevel
        base[k], expiresMs[k] =
          keep(k, lastLevel, expiresMs[k], hitsOf[i], periodOf[i], untilOf[i])
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
    result[i] = isTouched[k] and pack('<ddd', level[k], nowUs, 0) or base[k] or packEmpty()
  end

  local function evaluate(i)
    local k, flags = keyOf[i], flagsOf[i]
    local burst, cost = burstOf[i] * unitsPerHit, costOf[i] * unitsPerHit
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

  -- Decides the request at this place of the batch, and says where the next one begins.

  return function(at)
    request = request + 1
    local count
    count, at = unpackStruct('<I2xxxxxx', batch, at)
    local firsts = {}
    for i = 1, count do
      keyOf[i], flagsOf[i], hitsOf[i], burstOf[i], periodOf[i], costOf[i], at =
        unpackStruct('<I2BI4ddd', batch, at)
      fromOf[i], untilOf[i], lastOf[i] = nil, nil, nil
      if flagsOf[i] % 64 >= 32 then
        local startUs, endUs, nextEndUs
        startUs, endUs, nextEndUs, at = unpackStruct('<ddd', batch, at)
        fromOf[i], untilOf[i] = windowAt(startUs, endUs, nextEndUs)
      end
      if flagsOf[i] >= 128 then lastOf[i], at = unpackStruct('<I2', batch, at) end
      if openDraft(i) then firsts[#firsts + 1] = i end
    end
    local granted = decide(count)
    for _, i in ipairs(firsts) do
      local k = keyOf[i]
      if isTouched[k] then
        keep(k, level[k], expiresMs[k], hitsOf[i], periodOf[i], untilOf[i])
        local last = lastOf[i]
        if last then keep(last, level[k], lastExpiresMs[i], hitsOf[i], periodOf[i], untilOf[i]) end
      end
    end
    reply[replyCount + 1] = pack('<I4', granted)
    replyCount = replyCount + 1
    for i = 1, count do
      reply[replyCount + 2 * i - 1] = isOver[i] and '\\1' or '\\0'
      reply[replyCount + 2 * i] = result[i]
    end
    replyCount = replyCount + 2 * count
    return at
  end
`;
