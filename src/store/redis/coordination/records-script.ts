import type { StoreScript } from "../scripts/connection.js";

/**
 * Changes a record. KEYS: the records of a kind, a hash by id; their versions, a sorted set; the
 * removed records, a sorted set; the counters; the audit log, a list. ARGV: the kind, the id, the
 * expected version, the name of this change, the maximum number of records, the maximum number of
 * remembered removals, "1" to store or "0" to remove the record, the record, the maximum number of
 * audit entries, the audit entry or nothing, the state of the store that the caller knows
 * (`sealScript`), and the version up to which it knows. Returns `changed`, `conflict` or `full`
 * with a version, and `lost` if the store is not in that state or knows less. A change that is
 * repeated with its name returns `changed` again and changes nothing, since a call may be repeated.
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
local current = tonumber(redis.call('HGET', counters, kind) or '0')
if (redis.call('HGET', counters, 'store') or '') ~= ARGV[11] or current < tonumber(ARGV[12]) then
  return 'lost 0'
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
 * Writes an audit entry without a change. KEYS: the log, the counters. ARGV: the name of this
 * entry, the maximum number of entries, the entry. If the newest entry has the same name, nothing
 * is written, since a call may be repeated.
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
 * Returns the changes of one kind. KEYS: as above, without the log. ARGV: the kind, the version up
 * to which the caller knows, the maximum number of records and of their bytes, the state of the
 * store that the caller knows. Returns a line with `other` and the store's state if that differs,
 * or if the store knows less than the caller; nothing if there are no changes; otherwise a line
 * with the version up to which this reply goes, `1` if the caller must first forget all it knew,
 * and the version up to which the store may have forgotten removals, then for each record a line
 * with its id, its version and its length in bytes (`-` if it was removed), and the record.
 */
export const readScript: StoreScript = {
  name: "records-read",
  text: `
local records, versions, gone, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kind, since, most, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local current = tonumber(redis.call('HGET', counters, kind) or '0')
local state = redis.call('HGET', counters, 'store') or ''
if state ~= ARGV[5] or current < since then return 'other ' .. state .. '\\n' end
if current == since then return false end
local floor = tonumber(redis.call('HGET', counters, 'floor:' .. kind) or '0')
local reset = '0'
if since > 0 and since < floor then
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
local away = redis.call('ZRANGEBYSCORE', gone, from, last, 'WITHSCORES')
for i = 1, #away, 2 do parts[#parts + 1] = away[i] .. ' ' .. away[i + 1] .. ' -\\n' end
return last .. ' ' .. reset .. ' ' .. string.format('%.0f', floor) .. '\\n' .. table.concat(parts)
`,
};

/**
 * Puts back what the store has lost. KEYS: as above. ARGV: the kind, the name of this call, the
 * version up to which the caller may have forgotten removals, and for each record its id, its
 * version, "1" or "0" if it was removed, and the record. Newer versions in the store are kept. From
 * now on, the store is open, under the name of this call, until it is sealed. Returns "1" for each
 * record that was older or missing, and "0" for each other one.
 */
export const restoreScript: StoreScript = {
  name: "records-restore",
  text: `
local records, versions, gone, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kind, name = ARGV[1], ARGV[2]
redis.call('HSET', counters, 'store', '~' .. name)
local newest = tonumber(redis.call('HGET', counters, kind) or '0')
local floor = tonumber(redis.call('HGET', counters, 'floor:' .. kind) or '0')
if tonumber(ARGV[3]) > floor then redis.call('HSET', counters, 'floor:' .. kind, ARGV[3]) end
local parts = {}
for i = 4, #ARGV, 4 do
  local id, version = ARGV[i], tonumber(ARGV[i + 1])
  local last = 'last:' .. kind .. ':' .. id
  local stored = redis.call('HGET', records, id)
  local away = redis.call('HGET', counters, last)
  local there = 0
  if stored then there = tonumber(string.match(stored, '^%d+')) or 0
  elseif away then there = tonumber(string.match(away, '%d+$')) or 0 end
  local isOlder = there < version
  if isOlder and ARGV[i + 2] == '1' then
    redis.call('HSET', records, id, ARGV[i + 1] .. ' ' .. name .. '\\n' .. ARGV[i + 3])
    redis.call('ZADD', versions, version, id)
    redis.call('ZREM', gone, id)
    redis.call('HDEL', counters, last)
  elseif isOlder then
    redis.call('HDEL', records, id)
    redis.call('ZREM', versions, id)
    redis.call('ZADD', gone, version, id)
    redis.call('HSET', counters, last, name .. ' ' .. ARGV[i + 1])
  end
  if version > newest then newest = version end
  parts[#parts + 1] = isOlder and '1' or '0'
end
redis.call('HSET', counters, kind, string.format('%.0f', newest))
return table.concat(parts)
`,
};

/**
 * Declares that the store has everything that the caller knows. KEYS: the counters. ARGV: the
 * store's state as the caller knows it, the next state, and all kinds. Changes nothing if the state
 * differs. Returns the resulting state. Versions continue from the store's time in ms, so that
 * every later change is newer than anything that replicas know from a lost store.
 */
export const sealScript: StoreScript = {
  name: "records-seal",
  text: `
local counters = KEYS[1]
local state = redis.call('HGET', counters, 'store') or ''
if state ~= ARGV[1] then return state end
local time = redis.call('TIME')
local ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('HSET', counters, 'store', ARGV[2])
for i = 3, #ARGV do
  local last = tonumber(redis.call('HGET', counters, ARGV[i]) or '0')
  redis.call('HSET', counters, ARGV[i], string.format('%.0f', math.max(last, ms)))
end
return ARGV[2]
`,
};

/**
 * Reads the audit log, newest first. KEYS: the log, the counters. ARGV: the number below which
 * entries are returned, the maximum number of entries and of their bytes; to follow the log, also
 * the number above which entries are returned, and the state of the store that the caller knows.
 * Returns for each a line with its number, its time in ms since 1970 and its length in bytes, then
 * the entry; nothing if the state differs.
 */
export const auditScript: StoreScript = {
  name: "records-audit",
  text: `
local log, counters = KEYS[1], KEYS[2]
local before, most, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local newest = tonumber(redis.call('HGET', counters, 'audit') or '0')
if ARGV[4] then
  most = math.min(most, newest - tonumber(ARGV[4]))
  if most <= 0 or redis.call('HGET', counters, 'store') ~= ARGV[5] then return '' end
end
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

/**
 * Puts back entries of the audit log that the store has lost. KEYS: the log, the counters. ARGV:
 * the maximum number of entries, how many of the newest ones may be among those that the caller
 * knows, and for each entry that it knows, oldest first, its number, its time in ms since 1970, and
 * the entry. Entries with the same time and text are the same. Afterwards, existing and restored
 * entries are in the order of their times and renumbered without gaps: above the older entries, or,
 * if there are none, so that the caller's oldest entry has at least its number again. Returns how
 * many were missing.
 */
export const restoreAuditScript: StoreScript = {
  name: "records-audit-restore",
  text: `
local log, counters = KEYS[1], KEYS[2]
local newest = tonumber(redis.call('HGET', counters, 'audit') or '0')
local all, there = {}, {}
local stored = redis.call('LRANGE', log, 0, tonumber(ARGV[2]) - 1)
for i = #stored, 1, -1 do
  local ms, body = string.match(stored[i], '^%d+ (%d+)\\n(.*)$')
  if ms then
    there[ms .. ' ' .. body] = true
    all[#all + 1] = { ms = ms, body = body, at = #all }
  end
end
local missing = 0
for i = 3, #ARGV, 3 do
  local ms, body = ARGV[i + 1], ARGV[i + 2]
  if not there[ms .. ' ' .. body] then
    missing = missing + 1
    all[#all + 1] = { ms = ms, body = body, at = #all }
  end
end
if missing == 0 then return 0 end
table.sort(all, function(a, b)
  if a.ms ~= b.ms then return tonumber(a.ms) < tonumber(b.ms) end
  return a.at < b.at
end)
local number = newest - #stored
if #redis.call('LRANGE', log, #stored, #stored) == 0 then
  for i, entry in ipairs(all) do
    if entry.ms == ARGV[4] and entry.body == ARGV[5] then
      number = math.max(number, tonumber(ARGV[3]) - i)
      break
    end
  end
end
redis.call('LTRIM', log, #stored, -1)
for _, entry in ipairs(all) do
  number = number + 1
  redis.call('LPUSH', log, string.format('%.0f ', number) .. entry.ms .. '\\n' .. entry.body)
end
redis.call('HSET', counters, 'audit', string.format('%.0f', number))
redis.call('LTRIM', log, 0, tonumber(ARGV[1]) - 1)
return missing
`,
};
