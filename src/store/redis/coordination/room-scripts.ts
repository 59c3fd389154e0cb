import { roomKeptMs } from "../../coordination/room-store.js";
import type { StoreScript } from "../scripts/connection.js";
import { commonText, wordsText } from "./room-texts.js";

/**
 * ARGV: the replica, its lease in ms, the id of a new line and a new secret; the line that the
 * replica knows, and the next number that it knows; the waits that ended, and those of them in
 * their ranges. Returns a line of numbers (the fields of a `RoomHead`, and the lengths of the
 * texts), followed by the texts.
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
 * Applies a part of a step. ARGV: the term, the replica, the line, the `statusMs` that it was
 * decided from or -1, the seconds after which a place is lost, the called place, the number below
 * which chunks are forgotten; a packed list: how many frees follow (session, number, word), and how
 * many calls (number, place, session); 1 for the last part, otherwise 0. Only for the last part:
 * the spare and the extra sessions, one word each; what is published. Returns the number of calls,
 * the number of frees, 1 if the calls ended at a session that is not free, and the time in ms of
 * the line. Returns nothing if the replica does not lead or the step is late.
 */
export const applyScript: StoreScript = {
  name: "room-apply",
  text: `
${commonText}
${wordsText}
local room = readHead('term', 'leader', 'until', 'statusMs')
if not room then return 0 end
local ms = lineMs(room)
local isLeader = room.term == ARGV[1] and room.leader == ARGV[2] and room.line == ARGV[3]
local isLate = (room.statusMs or '-1') ~= ARGV[4]
if not isLeader or isLate or tonumber(room['until']) <= ms then return false end
local present = floor(ms / 1000) + 1
local lowest = math.max(1, present - tonumber(ARGV[5]))

local list, at = cmsgpack.unpack(ARGV[8]), 2
local freedCount, calledCount, stopped, place = 0, 0, 0, tonumber(ARGV[6])
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
local answer = calledCount .. ' ' .. freedCount .. ' ' .. stopped .. ' ' .. text(ms)
call('HSET', head, 'called', text(place))
call('PEXPIRE', room.sessions, ${roomKeptMs})
if ARGV[9] == '0' then return answer end
local forgotten = floor(math.min(tonumber(ARGV[7]), room.next) / chunkSize)
for chunk = room.forgotten, forgotten - 1 do call('UNLINK', chunkKey(room, chunk)) end
call('SET', room.base .. 'spare', ARGV[10], 'PX', ${roomKeptMs})
call('SET', room.base .. 'extra', ARGV[11], 'PX', ${roomKeptMs})
call('HSET', head, 'forgotten', math.max(forgotten, room.forgotten),
  'spare', 0, 'spares', #ARGV[10] / 4, 'extra', 0, 'status', ARGV[12], 'statusMs', text(ms))
return answer
`,
};

/** ARGV: the first number, and how many. Returns their words, without missing ones at the end. */
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

/** ARGV: the first session, and how many. Returns their words, without missing ones at the end. */
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

/** ARGV: the operator's override, or an empty text to remove it. */
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
