import { calledBit } from "../../../core/waiting-room/room-line.js";
import { lineChunkSize, numbersMax, roomKeptMs } from "../../coordination/room-store.js";
import type { StoreScript } from "../scripts/connection.js";
import { commonText, silenceMsMax, wordsText } from "./room-texts.js";

/**
 * ARGV: the line of the numbers; the next number that the replica knows; how many visitors join;
 * the maximum span; the seconds after which a place is lost; and two packed lists. The first has
 * the visits, by chunk: the chunk, how many follow, and the offset of each in BITFIELD's format.
 * The second has how many renewals follow (session, number), how many `letIns` (number), and how
 * many leaves (number; session or -1).
 *
 * Returns numbers: the line; the time in ms of the line; the first number given out, how many were
 * given out, and how many sessions follow; how many visits of visitors who do not wait follow
 * (index; session or -1; second); for each of `letIns` the session, -1 (gone) or -2 (waits), and
 * the second; how many lapsed renewals follow (index).
 *
 * A visit costs one BITFIELD operation, which sets the word as for a waiting visitor and returns
 * the old word. Words that should not have been set are restored. That takes half of Redis's time
 * for reading and writing bytes. If a number occurs twice, the second operation finds the word of
 * the first, so the caller applies an answer to all visits of that number.
 */
export const turnScript: StoreScript = {
  name: "room-turn",
  text: `
local call, floor = redis.call, math.floor
local head = KEYS[1]
local fields = call('HMGET', head, 'line', 'began', 'last', 'next', 'called', 'forgotten', 'spare',
  'spares')
local line, nextText = fields[1], fields[4]
if not line then return 0 end
local called, chunkSize = ${calledBit}, ${lineChunkSize}
local room = { next = tonumber(nextText), forgotten = tonumber(fields[6]),
  base = string.sub(head, 1, -5) .. line .. ':' }

local time = call('TIME')
local nowMs = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
local ms = nowMs - fields[2]
if ms < tonumber(fields[3]) or ms - fields[3] > ${silenceMsMax} then
  ${commonText}
  ms = lineMs(readHead())
end
local present = floor(ms / 1000) + 1
local presentText = present .. ''
local lowest = math.max(1, present - ARGV[5])
local isCurrent = ARGV[1] == line
local isMended = isCurrent and room.next < tonumber(ARGV[2])
if isMended then room.next, nextText = tonumber(ARGV[2]), ARGV[2] end
local odd, letIn, lapsed

-- What most turns need nothing of.
local function rare()
  room.sessions = room.base .. 'sessions'
  ${wordsText}

  -- The session of one who does not wait, or -1, which is so from now on.
  function room.look(number, word, enters)
    local used = word >= called and getSession(room, word - called, number)
    if not used then
      setWord(room, number, 0)
      return -1, 0
    end
    if used >= called then
      used = used - called
      if enters then
        used = present
        setSession(room, word - called, number, present)
      end
    end
    setWord(room, number, word)
    return word - called, used - 1
  end

  -- The first sessions of a list of the leader's that are free.
  local function takeFree(name, at, count)
    local taken = {}
    while #taken < count do
      local missing = count - #taken
      local bytes = call('GETRANGE', room.base .. name, 4 * at, 4 * (at + missing) - 1)
      if #bytes == 0 then break end
      for i = 1, #bytes, 4 do
        local session = struct.unpack('>I4', bytes, i)
        at = at + 1
        if isFree(room, session) then taken[#taken + 1] = session end
      end
    end
    call('HSET', head, name, at)
    return taken
  end

  local function letOneIn(number)
    local word = isCurrent and getWord(room, number) or 0
    if word == 0 then return -1, 0 end
    if word >= called or word < lowest then return room.look(number, word, false) end
    local session = takeFree('extra', tonumber(call('HGET', head, 'extra')), 1)[1]
    if not session then return -2, 0 end
    reserve(room, number, session, called + present)
    return session, present - 1
  end

  local function leave(number, session)
    local word = getWord(room, number)
    if word > 0 then setWord(room, number, 0) end
    for _, one in ipairs({ word - called, session }) do
      if getSession(room, one, number) then setSession(room, one, 0, 0) end
    end
  end

  function room.takeOthers(list)
    for i = 1, list[1] do
      local session, number = list[2 * i], list[2 * i + 1]
      if isCurrent and getSession(room, session, number) then
        setSession(room, session, number, present)
      else
        lapsed[#lapsed + 1] = i - 1
      end
    end
    local at = 2 + 2 * list[1]
    for i = 1, list[at] do letIn[2 * i - 1], letIn[2 * i] = letOneIn(list[at + i]) end
    at = at + 1 + list[at]
    if not isCurrent then return end
    for i = 1, list[at] do leave(list[at + 2 * i - 1], list[at + 2 * i]) end
  end

  function room.enter(first, count)
    local entered = takeFree('spare', tonumber(fields[7]), count)
    for i, session in ipairs(entered) do reserve(room, first + i - 1, session, present) end
    return entered
  end
end

local function addOdd(index, session, used)
  odd = odd or {}
  local at = #odd
  odd[at + 1], odd[at + 2], odd[at + 3] = index, session, used
end

local function visit(list, from, first)
  local chunk, count = list[from], list[from + 1]
  if not isCurrent or chunk < room.forgotten or chunk * chunkSize >= room.next then
    for i = 1, count do addOdd(first + i - 1, -1, 0) end
    return
  end
  local ops = {}
  for i = 1, count do
    local at = 4 * i
    ops[at - 3], ops[at - 2], ops[at - 1], ops[at] = 'SET', 'u32', list[from + 1 + i], presentText
  end
  local was = call('BITFIELD', room.base .. 'line:' .. chunk, unpack(ops))
  for i = 1, count do
    local word = was[i]
    if word >= called or word < lowest then
      if not room.look then rare() end
      local number = chunk * chunkSize + tonumber(string.sub(list[from + 1 + i], 2))
      addOdd(first + i - 1, room.look(number, word, true))
    end
  end
end

local function join(count, span)
  local first = room.next
  local at, place, entered = first, tonumber(fields[5]), nil
  count = math.min(count, ${numbersMax} - first)
  if place == first and fields[7] ~= fields[8] then
    if not room.look then rare() end
    entered = room.enter(first, count)
    at = first + #entered
    place = at
  end
  room.next = at + math.min(first + count - at, math.max(0, span - (at - place)))
  local chunk = floor(first / chunkSize)
  local key = room.base .. 'line:' .. chunk
  while at < room.next do
    chunk = floor(at / chunkSize)
    key = room.base .. 'line:' .. chunk
    local to = math.min(room.next, (chunk + 1) * chunkSize)
    local bytes = string.rep(struct.pack('>I4', present), to - at)
    call('SETRANGE', key, 4 * (at - chunk * chunkSize), bytes)
    at = to
  end
  if entered then call('HSET', head, 'called', string.format('%.0f', place)) end
  if at > first or isMended then call('HSET', head, 'next', string.format('%.0f', at)) end
  if isMended or first <= chunk * chunkSize then call('PEXPIRE', key, ${roomKeptMs}) end
  return at - first, entered
end

if ARGV[6] ~= '' then
  local visits, at, index = cmsgpack.unpack(ARGV[6]), 1, 0
  while at <= #visits do
    visit(visits, at, index)
    at, index = at + 2 + visits[at + 1], index + visits[at + 1]
  end
end
if ARGV[7] ~= '' then
  letIn, lapsed = {}, {}
  if not room.look then rare() end
  room.takeOthers(cmsgpack.unpack(ARGV[7]))
end
local joined, entered = 0, nil
if ARGV[3] ~= '0' or isMended then
  joined, entered = join(tonumber(ARGV[3]), tonumber(ARGV[4]))
end

local start = line .. ' ' .. ms .. ' ' .. nextText .. ' ' .. joined
if not (entered or odd or letIn) then return start .. ' 0 0 0' end
local answer = { start, entered and #entered or 0 }
local lists = { entered or {}, { odd and #odd / 3 or 0 }, odd or {}, letIn or {},
  { lapsed and #lapsed or 0 }, lapsed or {} }
for _, list in ipairs(lists) do
  for i = 1, #list do answer[#answer + 1] = list[i] end
end
return table.concat(answer, ' ')
`,
};
