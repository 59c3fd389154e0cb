import type { StoreScript } from "../../store/connection.js";

/**
 * Puts a replica's report where the leader finds it. KEYS: the reports, a hash by replica. ARGV:
 * this replica, a number that grows with each of its reports, how long reports are kept in ms, the
 * report. One that arrives late may take the place of a later one: the leader knows by the number.
 */
export const tellScript: StoreScript = {
  name: "fleet-tell",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now = string.format('%.0f', nowMs)
redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2] .. '\\n' .. ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`,
};

/**
 * All reports that are not too old, for the leader. KEYS: as above. ARGV: how long reports are kept
 * in ms, the most bytes that are answered. Answers for each: a line with the replica, the number of
 * the report, its age in ms and its length in bytes, and the report; of one for which there is no
 * room, no bytes. What is too old is removed, and a time in the future, which a clock that stepped
 * back leaves, becomes now.
 */
export const gatherScript: StoreScript = {
  name: "fleet-gather",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local keptMs, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local flat, parts = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #flat, 2 do
  local id, value = flat[i], flat[i + 1]
  local at, number, last = string.match(value, '^(%d+) (%d+)()\\n')
  local ageMs = at and nowMs - tonumber(at)
  if not ageMs or ageMs >= keptMs then
    redis.call('HDEL', KEYS[1], id)
  else
    if ageMs < 0 then
      local now = string.format('%.0f', nowMs)
      redis.call('HSET', KEYS[1], id, now .. string.sub(value, #at + 1))
      ageMs = 0
    end
    local length = #value - last
    if length > room then length = 0 end
    room = room - length
    parts[#parts + 1] = string.format('%s %s %.0f %.0f\\n', id, number, ageMs, length)
    if length > 0 then parts[#parts + 1] = string.sub(value, last + 1) end
  end
end
return table.concat(parts)
`,
};

/**
 * Puts a new snapshot in the place of the one before. KEYS: the lease, the snapshot, its rank.
 * ARGV: the term and the name of the leader, the snapshot's version, how long it is kept in ms, the
 * snapshot. Answers 1, or 0 to one who does not hold the lease, or whose snapshot is older than the
 * one there is: nothing is written then. The same snapshot twice is well, since a call may be
 * repeated.
 */
export const publishScript: StoreScript = {
  name: "fleet-publish",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now = string.format('%.0f', nowMs)
local term, name, version = ARGV[1], ARGV[2], ARGV[3]
local stored = redis.call('MGET', KEYS[1], KEYS[3])
local heldEpoch, holder
if stored[1] then heldEpoch, holder = string.match(stored[1], '^(%d+) (%x+) %d+$') end
if heldEpoch ~= term or holder ~= name then return 0 end
local rank = term .. ' ' .. name .. ' ' .. version
if stored[2] then
  local e, n, v = string.match(stored[2], '^(%d+) (%x+) (%d+)$')
  e, v = tonumber(e), tonumber(v)
  local mine = tonumber(term)
  if e and (e > mine or (e == mine and n > name)) then return 0 end
  if e == mine and n == name and v > tonumber(version) then return 0 end
end
redis.call('SET', KEYS[2], now .. ' ' .. rank .. '\\n' .. ARGV[5], 'PX', ARGV[4])
redis.call('SET', KEYS[3], rank, 'PX', ARGV[4])
return 1
`,
};

/**
 * The newest snapshot. KEYS: the snapshot. Answers a line with its age in ms and its rank, and the
 * snapshot; nothing where there is none.
 */
export const fetchScript: StoreScript = {
  name: "fleet-fetch",
  text: `
local value = redis.call('MGET', KEYS[1])[1]
local at, last = string.match(value or '', '^(%d+)() ')
if not at then return false end
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local ageMs = nowMs - tonumber(at)
if ageMs < 0 then ageMs = 0 end
return string.format('%.0f', ageMs) .. string.sub(value, last)
`,
};

/** KEYS: the reports. ARGV: the replica that goes. */
export const withdrawScript: StoreScript = {
  name: "fleet-withdraw",
  text: "return redis.call('HDEL', KEYS[1], ARGV[1])",
};
