import type { StoreScript } from "../store/connection.js";

/**
 * Changes a record. KEYS: the records of a kind, a hash by id; their versions, a sorted set; those
 * taken away, a sorted set; the counters; the audit log, a list. ARGV: the kind, the id, the
 * expected version, a name of this change, the most records, the most that are remembered as taken
 * away, "1" to keep and "0" to take away, the record, the most audit entries, the audit entry or
 * nothing. Answers `changed`, `conflict` or `full` with a version. The same change again, by its
 * name, answers as it did and changes nothing: a call may be repeated.
 */
export const changeScript: StoreScript = {
  name: "records-change",
  text: `
local records, versions, gone, counters, log = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local kind, id, expected, name = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local stored = redis.call('HGET', records, id)
local version, lastName = 0, nil
if stored then version, lastName = string.match(stored, '^(%d+) (%x+)\\n') end
version = tonumber(version) or 0
if lastName == name then return 'changed ' .. string.format('%.0f', version) end
local last = redis.call('HGET', counters, 'last:' .. kind .. ':' .. id)
if last then
  local goneName, goneVersion = string.match(last, '^(%x+) (%d+)$')
  if goneName == name and not stored then return 'changed ' .. goneVersion end
end
if version ~= expected then return 'conflict ' .. string.format('%.0f', version) end
if ARGV[7] == '1' and not stored and redis.call('HLEN', records) >= tonumber(ARGV[5]) then
  return 'full 0'
end
local next = redis.call('HINCRBY', counters, kind, 1)
local text = string.format('%.0f', next)
if ARGV[7] == '1' then
  redis.call('HSET', records, id, text .. ' ' .. name .. '\\n' .. ARGV[8])
  redis.call('ZADD', versions, next, id)
  redis.call('ZREM', gone, id)
  redis.call('HDEL', counters, 'last:' .. kind .. ':' .. id)
else
  redis.call('HDEL', records, id)
  redis.call('ZREM', versions, id)
  redis.call('ZADD', gone, next, id)
  redis.call('HSET', counters, 'last:' .. kind .. ':' .. id, name .. ' ' .. text)
  if redis.call('ZCARD', gone) > tonumber(ARGV[6]) then
    local oldest = redis.call('ZRANGE', gone, 0, 0, 'WITHSCORES')
    redis.call('ZREM', gone, oldest[1])
    redis.call('HDEL', counters, 'last:' .. kind .. ':' .. oldest[1])
    redis.call('HSET', counters, 'floor:' .. kind, oldest[2])
  end
end
if ARGV[10] ~= '' then
  local time = redis.call('TIME')
  local ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local number = redis.call('HINCRBY', counters, 'audit', 1)
  local head = string.format('%.0f %.0f\\n', number, ms)
  redis.call('LPUSH', log, head .. ARGV[10])
  redis.call('LTRIM', log, 0, tonumber(ARGV[9]) - 1)
end
return 'changed ' .. text
`,
};

/**
 * Writes an audit entry alone. KEYS: the log, the counters. ARGV: a name of this entry, the most
 * entries, the entry. The newest entry again, by its name, is not written twice: a call may be
 * repeated.
 */
export const noteScript: StoreScript = {
  name: "records-note",
  text: `
local log, counters = KEYS[1], KEYS[2]
if redis.call('HGET', counters, 'noted') == ARGV[1] then return 'noted' end
local time = redis.call('TIME')
local ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local number = redis.call('HINCRBY', counters, 'audit', 1)
redis.call('LPUSH', log, string.format('%.0f %.0f\\n', number, ms) .. ARGV[3])
redis.call('LTRIM', log, 0, tonumber(ARGV[2]) - 1)
redis.call('HSET', counters, 'noted', ARGV[1])
return 'noted'
`,
};

/**
 * What has changed in one kind. KEYS: as above, without the log. ARGV: the kind, the version up to
 * which the caller knows, the most records that are answered, the most bytes of them. Answers
 * nothing where there is nothing new; else a line with the version up to which this answer goes and
 * `1` where all that was known is to be forgotten first, and for each record a line with its id,
 * its version and its length in bytes (`-` for one that was taken away), and the record.
 */
export const readScript: StoreScript = {
  name: "records-read",
  text: `
local records, versions, gone, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kind, since, most, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local current = tonumber(redis.call('HGET', counters, kind) or '0')
if current == since then return false end
local floor = tonumber(redis.call('HGET', counters, 'floor:' .. kind) or '0')
local reset = '0'
-- A store that has forgotten counts from less than what is known.
if current < since or (since > 0 and since < floor) then
  since = 0
  reset = '1'
end
local from = '(' .. string.format('%.0f', since)
local parts, upTo, count = {}, current, 0
local fresh = redis.call('ZRANGEBYSCORE', versions, from, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #fresh, 2 do
  local id, version = fresh[i], fresh[i + 1]
  local stored = redis.call('HGET', records, id) or ''
  local body = string.match(stored, '^%d+ %x+\\n(.*)$') or ''
  if count > 0 and #body > room then
    upTo = tonumber(fresh[i - 1])
    break
  end
  room = room - #body
  count = count + 1
  parts[#parts + 1] = string.format('%s %s %.0f\\n', id, version, #body)
  parts[#parts + 1] = body
  if count == most then upTo = tonumber(version) end
end
local last = string.format('%.0f', upTo)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', gone, from, last)) do
  parts[#parts + 1] = id .. ' ' .. last .. ' -\\n'
end
return last .. ' ' .. reset .. '\\n' .. table.concat(parts)
`,
};

/**
 * The audit log, the newest first. KEYS: the log, the counters. ARGV: entries with a smaller number
 * only, the most that are answered, the most bytes. Answers for each a line with its number, its
 * time in ms since 1970 and its length in bytes, and the entry.
 */
export const auditScript: StoreScript = {
  name: "records-audit",
  text: `
local log, counters = KEYS[1], KEYS[2]
local before, most, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local newest = tonumber(redis.call('HGET', counters, 'audit') or '0')
local start = 0
if before <= newest then start = newest - before + 1 end
local parts = {}
for i, stored in ipairs(redis.call('LRANGE', log, start, start + most - 1)) do
  local number, ms, body = string.match(stored, '^(%d+) (%d+)\\n(.*)$')
  if number then
    if i > 1 and #body > room then break end
    room = room - #body
    parts[#parts + 1] = string.format('%s %s %.0f\\n', number, ms, #body)
    parts[#parts + 1] = body
  end
end
return table.concat(parts)
`,
};
