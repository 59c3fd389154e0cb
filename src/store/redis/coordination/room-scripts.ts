import { calledBit } from "../../../core/waiting-room/room-line.js";
import {
  lineChunkSize,
  numbersMax,
  roomKeptMs,
  silenceSecondsMax,
} from "../../coordination/room-store.js";
import type { StoreScript } from "../scripts/connection.js";

const silenceMsMax = 1_000 * silenceSecondsMax;

/**
 * The scripts of waiting rooms; `MemoryRooms` does the same.
 *
 * KEYS: the head of a room, a hash, whose key ends with `head`. The others have the same key with
 * another ending, so they are under the same hash tag and in the same slot, and a script may use
 * them without naming them. Which these are, only the head tells. They carry the id of the line,
 * so that a line which begins anew never finds words of the last one:
 *
 * - `ID:line:N`: chunk N of the line. Words are big-endian, as BITFIELD has them.
 * - `ID:sessions`: two words a session.
 * - `ID:spare`, `ID:extra`: the leader's lists of sessions, a word each.
 *
 * Fields of the head: `line`, `began`, `last` (the last beat, in ms of the line), `next`, `called`,
 * `forgotten` (the first chunk that there is), `term`, `leader`, `until` (of the lease, in ms of
 * the line), `secret`, `status` and `statusMs`, `override`, `spare` and `extra` (how many
 * of the leader's lists were taken), `spares` (how many there were), `kept` (when keys were last
 * kept from expiring, in ms of the line), `ended` and `held` (counts of waits).
 *
 * Scripts but `beat` and `forget` answer 0 where the room has no line.
 */
const commonText = `
local call, floor = redis.call, math.floor
local head = KEYS[1]
local called, chunkSize = ${calledBit}, ${lineChunkSize}

local function text(number) return string.format('%.0f', number) end

-- Reads these fields of the head; false where the room has no line.
local function readHead(...)
  local names, head = { 'line', 'began', 'last', 'next', 'called', 'forgotten', ... }, KEYS[1]
  local values, fields = call('HMGET', head, unpack(names)), {}
  if not values[1] then return false end
  for i, name in ipairs(names) do fields[name] = values[i] end
  for _, name in ipairs({ 'began', 'last', 'next', 'called', 'forgotten' }) do
    fields[name] = tonumber(fields[name])
  end
  fields.base = string.sub(head, 1, -5) .. fields.line .. ':'
  fields.sessions = fields.base .. 'sessions'
  return fields
end

-- Milliseconds of the line. What the clock has lost since the last beat, or gained beyond a
-- silence, moves the beginning of the line.
local function lineMs(room)
  local time = call('TIME')
  local nowMs = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
  local passed = nowMs - room.began - room.last
  local counted = math.min(math.max(passed, 0), ${silenceMsMax})
  if counted ~= passed then
    room.last = room.last + counted
    room.began = nowMs - room.last
    call('HSET', head, 'began', text(room.began), 'last', text(room.last))
    return room.last
  end
  return room.last + passed
end
`;

/** What `turn` and `apply` do with words. */
const wordsText = `
local zeros = string.rep('\\0', 8)

local function chunkKey(room, chunk) return room.base .. 'line:' .. chunk end

local function getWord(room, number)
  local chunk = floor(number / chunkSize)
  if number >= room.next or chunk < room.forgotten then return 0 end
  local at = 4 * (number - chunk * chunkSize)
  local bytes = call('GETRANGE', chunkKey(room, chunk), at, at + 3)
  return #bytes == 4 and struct.unpack('>I4', bytes) or 0
end

local function setWord(room, number, word)
  local chunk = floor(number / chunkSize)
  local at = 4 * (number - chunk * chunkSize)
  call('SETRANGE', chunkKey(room, chunk), at, struct.pack('>I4', word))
end

local function setSession(room, session, number, word)
  local bytes = word == 0 and zeros or struct.pack('>I4I4', number % 4294967296, word)
  call('SETRANGE', room.sessions, 8 * session, bytes)
end

-- When a session was used, if it is that number's; false otherwise.
local function getSession(room, session, number)
  if session < 0 then return false end
  local bytes = call('GETRANGE', room.sessions, 8 * session, 8 * session + 7)
  if #bytes < 8 or bytes == zeros then return false end
  local low, word = struct.unpack('>I4I4', bytes)
  return word > 0 and low == number % 4294967296 and word
end

local function isFree(room, session)
  local bytes = call('GETRANGE', room.sessions, 8 * session + 4, 8 * session + 7)
  return bytes == '' or bytes == '\\0\\0\\0\\0'
end

local function reserve(room, number, session, word)
  setWord(room, number, called + session)
  setSession(room, session, number, word)
end
`;

/**
 * ARGV: the replica, its lease in ms, the id of a line and a secret where there are none; the line
 * whose numbers it knows, and the next one of them as far as it knows; waits that ended, and those
 * of them in their ranges. Answers a line of numbers (the fields of a `RoomHead`, and the lengths
 * of what follows), and the texts behind it.
 */
export const beatScript: StoreScript = {
  name: "room-beat",
  text: `
${commonText}
local me, leaseMs = ARGV[1], tonumber(ARGV[2])
local more = { 'term', 'leader', 'until', 'secret', 'status', 'statusMs', 'override', 'kept' }
local room = readHead(unpack(more))
if not room then
  local time = call('TIME')
  local nowMs = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
  call('HSET', head, 'line', ARGV[3], 'began', text(nowMs), 'last', 0, 'next', 0, 'called', 0,
    'forgotten', 0, 'term', 0, 'leader', '', 'until', 0, 'secret', ARGV[4], 'spare', 0,
    'spares', 0, 'extra', 0)
  room = readHead(unpack(more))
end
local ms = lineMs(room)
if ARGV[5] == room.line and room.next < tonumber(ARGV[6]) then
  room.next = tonumber(ARGV[6])
  call('HSET', head, 'next', ARGV[6])
end

local term, leader, untilMs = tonumber(room.term), room.leader, tonumber(room['until'])
local isHeld = untilMs > ms
local isMine = isHeld and leader == me
if isMine or (not isHeld and leaseMs > 0) then
  if not isMine then term = term + 1 end
  leader, untilMs = me, ms + leaseMs
end
call('HSET', head, 'last', text(ms), 'term', text(term), 'leader', leader, 'until', text(untilMs))

local kept = tonumber(room.kept or '')
if not kept or ms - kept > 3600000 then
  call('HSET', head, 'kept', text(ms))
  for _, key in ipairs({ head, room.sessions, room.base .. 'spare', room.base .. 'extra' }) do
    call('PEXPIRE', key, ${roomKeptMs})
  end
  for chunk = room.forgotten, floor(room.next / chunkSize) do
    call('PEXPIRE', room.base .. 'line:' .. chunk, ${roomKeptMs})
  end
end

local mine = leaseMs > 0 and leader == me and term or 0
local status, override = room.status or '', room.override or ''
local ended = call('HINCRBY', head, 'ended', ARGV[7])
local held = call('HINCRBY', head, 'held', ARGV[8])
local numbers = { room.line, text(room.began), text(ms), text(room.next), text(room.called),
  text(mine), text(ended), text(held), room.statusMs or '-1', #leader, #room.secret, #override,
  #status }
return table.concat(numbers, ' ') .. '\\n' .. leader .. room.secret .. override .. status
`,
};

/**
 * ARGV: the line of the numbers; the next one of them as far as the replica knows; how many join;
 * the span; after how many seconds a place is lost; and packed lists. The visits, by chunk: the
 * chunk, how many follow, and the offset of each as BITFIELD has it. Then: how many renewals follow
 * (session, number), how many `letIns` (number), and how many leaves (number; session or -1).
 *
 * Answers numbers: the line; ms of the line; the first number given out, how many were, and how
 * many sessions follow; how many visits follow that do not wait (index; session or -1; second); of
 * each of `letIns` the session, -1 (gone) or -2 (waits), and the second; how many renewals follow
 * that are none (index).
 *
 * A visit costs one operation of BITFIELD, which sets the word of one who waits and answers what it
 * was; what should not have been set is put back. That takes half of Redis's time for a read and a
 * write of bytes. Of one number that stands there twice the second operation finds the word of the
 * first, so the caller takes what is answered for all visits of that number.
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

/**
 * A part of a step. ARGV: the term, the replica, the line, after how many seconds a place is lost,
 * the called place, the number below which chunks are forgotten; a packed list: how many frees
 * follow (session, number, word), and how many calls (number, place, session); 1 with the last
 * part, and with that one alone: the spare sessions and the extra ones, a word each; what is
 * published. Answers three numbers, of calls, of frees, and 1 where the calls ended at a session
 * that is not free; nothing to one who does not lead.
 */
export const applyScript: StoreScript = {
  name: "room-apply",
  text: `
${commonText}
${wordsText}
local room = readHead('term', 'leader', 'until')
if not room then return 0 end
local ms = lineMs(room)
local isLeader = room.term == ARGV[1] and room.leader == ARGV[2] and room.line == ARGV[3]
if not isLeader or tonumber(room['until']) <= ms then return false end
local present = floor(ms / 1000) + 1
local lowest = math.max(1, present - tonumber(ARGV[4]))

local list, at = cmsgpack.unpack(ARGV[7]), 2
local freedCount, calledCount, stopped, place = 0, 0, 0, tonumber(ARGV[5])
for i = 1, list[1] do
  local session, number, word = list[at], list[at + 1], list[at + 2]
  if word > 0 and getSession(room, session, number) == word then
    setSession(room, session, 0, 0)
    freedCount = freedCount + 1
  end
  at = at + 3
end
for i = 1, list[at] do
  local number, session = list[at + 1], list[at + 3]
  local word = getWord(room, number)
  if word < called and word >= lowest then
    if not isFree(room, session) then
      place, stopped = list[at + 2], 1
      break
    end
    reserve(room, number, session, called + present)
    calledCount = calledCount + 1
  end
  at = at + 3
end

place = math.max(room.called, math.min(place, room.next))
local answer = calledCount .. ' ' .. freedCount .. ' ' .. stopped
call('HSET', head, 'called', text(place))
call('PEXPIRE', room.sessions, ${roomKeptMs})
if ARGV[8] == '0' then return answer end
local forgotten = floor(math.min(tonumber(ARGV[6]), room.next) / chunkSize)
for chunk = room.forgotten, forgotten - 1 do call('UNLINK', chunkKey(room, chunk)) end
call('SET', room.base .. 'spare', ARGV[9], 'PX', ${roomKeptMs})
call('SET', room.base .. 'extra', ARGV[10], 'PX', ${roomKeptMs})
call('HSET', head, 'forgotten', math.max(forgotten, room.forgotten),
  'spare', 0, 'spares', #ARGV[9] / 4, 'extra', 0, 'status', ARGV[11], 'statusMs', text(ms))
return answer
`,
};

/** ARGV: the first number, and how many. Answers their words, without the last ones that are 0. */
export const readLineScript: StoreScript = {
  name: "room-line",
  text: `
${commonText}
local room = readHead()
if not room then return 0 end
local from, parts = tonumber(ARGV[1]), {}
local to = math.min(from + tonumber(ARGV[2]), room.next)
while from < to do
  local chunk = floor(from / chunkSize)
  local last = math.min(to, (chunk + 1) * chunkSize)
  local start, length = 4 * (from - chunk * chunkSize), 4 * (last - from)
  local bytes = ''
  if chunk >= room.forgotten then
    bytes = call('GETRANGE', room.base .. 'line:' .. chunk, start, start + length - 1)
  end
  parts[#parts + 1] = bytes
  if last < to then parts[#parts + 1] = string.rep('\\0', length - #bytes) end
  from = last
end
return table.concat(parts)
`,
};

/** ARGV: the first session, and how many. Answers their words, as far as there are any. */
export const readSessionsScript: StoreScript = {
  name: "room-sessions",
  text: `
${commonText}
local room = readHead()
if not room then return 0 end
local from = 8 * tonumber(ARGV[1])
return call('GETRANGE', room.sessions, from, from + 8 * tonumber(ARGV[2]) - 1)
`,
};

/** ARGV: what an operator set, or nothing. */
export const overrideScript: StoreScript = {
  name: "room-override",
  text: `
if not redis.call('HGET', KEYS[1], 'line') then return 0 end
if ARGV[1] == '' then redis.call('HDEL', KEYS[1], 'override') end
if ARGV[1] ~= '' then redis.call('HSET', KEYS[1], 'override', ARGV[1]) end
return 1
`,
};

/** Removes a room. */
export const forgetScript: StoreScript = {
  name: "room-forget",
  text: `
${commonText}
local room = readHead()
if not room then return 1 end
for chunk = room.forgotten, floor(room.next / chunkSize) do
  call('UNLINK', room.base .. 'line:' .. chunk)
end
call('UNLINK', head, room.sessions, room.base .. 'spare', room.base .. 'extra')
return 1
`,
};
