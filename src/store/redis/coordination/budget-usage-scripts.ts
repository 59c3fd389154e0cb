import { pageRowsMax, usageKeptMs, usageRowsMax } from "../../coordination/budget-store.js";
import { usageSumMax } from "../../coordination/memory-usage.js";
import type { StoreScript } from "../scripts/connection.js";

/** How many numbers a row has: calls, cost, and the counts in order; -1 for a missing count. */
const rowNumbers = 10;

const rowFormat = `<${"d".repeat(rowNumbers)}`;

/**
 * Adds a report. KEYS: rows of a day, by the JSON of their names; these names in order; the number
 * of the last report of each holder. ARGV: the holder, the number of the report, the number of
 * rows, the numbers of the rows; then for each row its names, and the names of the row to which it
 * is added if there are too many rows.
 */
export const addUsageScript: StoreScript = {
  name: "budget-usage-add",
  text: `
local call, pack, unpackStruct = redis.call, struct.pack, struct.unpack
local last = tonumber(call('HGET', KEYS[3], ARGV[1]) or '-1')
if tonumber(ARGV[2]) <= last then return 0 end
call('HSET', KEYS[3], ARGV[1], ARGV[2])
local rowCount, at = call('HLEN', KEYS[1]), 1
local rows, order = {}, {}
local function load(name)
  if rows[name] == nil then
    local value = call('HGET', KEYS[1], name)
    rows[name] = value and #value == ${8 * rowNumbers} and { unpackStruct('${rowFormat}', value) }
  end
  return rows[name]
end
for i = 1, tonumber(ARGV[3]) do
  local name, numbers = ARGV[3 + 2 * i], { unpackStruct('${rowFormat}', ARGV[4], at) }
  at = numbers[${rowNumbers + 1}]
  local row = load(name)
  if not row and rowCount >= ${usageRowsMax} then
    name = ARGV[4 + 2 * i]
    row = load(name)
  end
  if not row then
    rowCount = rowCount + 1
    row = { 0, 0${", -1".repeat(rowNumbers - 2)} }
    rows[name] = row
    call('ZADD', KEYS[2], 0, name)
  end
  for j = 1, ${rowNumbers} do
    if numbers[j] >= 0 then
      row[j] = math.min(math.max(row[j], 0) + numbers[j], ${usageSumMax})
    end
  end
  order[name] = row
end
for name, row in pairs(order) do
  call('HSET', KEYS[1], name, pack('${rowFormat}', unpack(row, 1, ${rowNumbers})))
end
for _, key in ipairs(KEYS) do call('PEXPIRE', key, ${usageKeptMs}) end
return 1
`,
};

/**
 * KEYS: rows of a day, and their names in order. ARGV: the name after which the page begins.
 * Returns for each row the length of its name (uint16), the name, and its numbers (doubles).
 */
export const usagePageScript: StoreScript = {
  name: "budget-usage",
  text: `
local from = ARGV[1] == '' and '-' or '(' .. ARGV[1]
local names = redis.call('ZRANGE', KEYS[2], from, '+', 'BYLEX', 'LIMIT', 0, ${pageRowsMax})
if #names == 0 then return '' end
local values, rows = redis.call('HMGET', KEYS[1], unpack(names)), {}
for i, name in ipairs(names) do
  if values[i] then rows[#rows + 1] = struct.pack('<I2c0', #name, name) .. values[i] end
end
return table.concat(rows)
`,
};
