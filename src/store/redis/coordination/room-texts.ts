import { calledBit } from "../../../core/waiting-room/room-line.js";
import { lineChunkSize, silenceSecondsMax } from "../../coordination/room-store.js";

/** Maximum silence that counts as time of the line, in milliseconds. */
export const silenceMsMax = 1_000 * silenceSecondsMax;

/**
 * Common part of the scripts of waiting rooms. `MemoryRooms` implements the same.
 *
 * KEYS: the head of a room, a hash, whose key ends with `head`. The other keys differ only in the
 * ending, so they have the same hash tag and slot, and a script may use them without naming them.
 * Only the head determines which keys these are. They contain the id of the line, so that a new
 * line never finds words of an earlier one:
 *
 * - `ID:line:N`: chunk N of the line. Words are big-endian, as BITFIELD requires.
 * - `ID:sessions`: two words per session.
 * - `ID:spare`, `ID:extra`: the leader's lists of sessions, one word each.
 *
 * Fields of the head: `line`, `began`, `last` (the last beat, in ms of the line), `next`, `called`,
 * `forgotten` (the first existing chunk), `term`, `leader`, `until` (end of the lease, in ms of the
 * line), `secret`, `status` and `statusMs`, `override`, `spare` and `extra` (how many entries of
 * the leader's lists were taken), `spares` (length of the spare list), `kept` (when the keys'
 * expiry was last extended, in ms of the line), `ended` and `held` (counts of waits).
 *
 * Scripts except `beat` and `forget` return 0 if the room has no line.
 */
export const commonText = `
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

/** Functions of `turn` and `apply` that read and write words. */
export const wordsText = `
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
