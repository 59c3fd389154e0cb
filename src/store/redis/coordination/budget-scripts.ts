import { amountMax } from "../../../core/budgets/account.js";
import { callKeptMs, retryUsMax } from "../../../core/budgets/account-law.js";
import {
  accountsMax,
  expiredMax,
  lateSettlementMsMax,
  leaseMsMax,
  pageRowsMax,
  refundKeptMs,
  settledKeptMs,
} from "../../coordination/budget-store.js";
import type { StoreScript } from "../scripts/connection.js";
import { commonText, recordsText } from "./budget-texts.js";

/** What is known of the ids of a batch, and of the accounts that it needs. */
const findText = `
local count, at = 0, 1
local kinds, holderAt, starts, byHolder, holders = {}, {}, {}, {}, {}
while at <= #batch do
  count = count + 1
  local kind, h, bytes, start = unpackStruct('<BI2I2', batch, at)
  kinds[count], holderAt[count], starts[count], at = kind, h, start, start + bytes
  local ids = byHolder[h]
  if not ids then
    ids = {}
    byHolder[h], holders[#holders + 1] = ids, h
  end
  ids[#ids + 1] = ARGV[4 + count]
end

-- Reservations by id: open, or late; and ids that are settled.

local records, isLate, isSettled, unknown = {}, {}, {}, {}
for _, h in ipairs(holders) do
  local ids, missing = byHolder[h], {}
  local values = call('HMGET', KEYS[h + 1], unpack(ids))
  for i, id in ipairs(ids) do
    local value = values[i]
    if value then records[id] = parse(value) else missing[#missing + 1] = id end
  end
  if #missing > 0 then
    values = call('HMGET', lateKey(h), unpack(missing))
    for i, id in ipairs(missing) do
      local record = values[i] and parse(values[i])
      if not record or record[1] <= nowMs then
        unknown[#unknown + 1] = id
      elseif record[2] == 255 then
        isSettled[id] = true
      else
        records[id], isLate[id] = record, true
      end
    end
  end
end
local now = call('HMGET', lately, '#', unpack(unknown))
local sinceMs = tonumber(now[1] or '')
local isOld = not sinceMs or nowMs < sinceMs or nowMs >= sinceMs + ${settledKeptMs}
if #unknown > 0 then
  local before = not isOld and call('HMGET', base .. 't', unpack(unknown))
  for i, id in ipairs(unknown) do
    if now[i + 1] or before and before[i] then isSettled[id] = true end
  end
end
if isOld then
  if sinceMs then call('RENAME', lately, base .. 't') end
  call('HSET', lately, '#', nowMs)
  call('PEXPIRE', lately, ${10 * settledKeptMs})
end

local wanted, isWanted = {}, {}
local function want(key)
  if accounts[key] == nil and not isWanted[key] then
    isWanted[key] = true
    wanted[#wanted + 1] = key
  end
end
for k = firstAccount + 1, #KEYS do want(KEYS[k]) end
for i = 1, count do
  local record = kinds[i] > 1 and records[ARGV[4 + i]]
  if record then
    for k = 3, #record, 4 do want(record[k]) end
  end
end
if #wanted > 0 then
  local values = call('MGET', unpack(wanted))
  for i, key in ipairs(wanted) do accounts[key] = decode(key, values[i]) end
end
`;

/** The entries of the operation in hand, by position. */
const entriesText = `
local keyOf, stateNow, kindOf, periodOf = {}, {}, {}, {}
local capacityOf, estimateOf, flagsOf, isOver = {}, {}, {}, {}
local n = 0

local function readEntries(at)
  n, at = unpackStruct('B', batch, at)
  for i = 1, n do
    local k, kind, p, q, r
    k, kind, p, q, r, capacityOf[i], estimateOf[i], flagsOf[i], at =
      unpackStruct('<I2BdddddB', batch, at)
    local key = KEYS[firstAccount + k]
    local a = accounts[key]
    keyOf[i], kindOf[i], periodOf[i] = key, kind, p
    stateNow[i] = a and stateOf(a, kind, p, q, r) or open(key, kind, p, q, r)
  end
end

local function haveRoom()
  local counts = {}
  for i = 1, n do
    if not accounts[keyOf[i]] then
      local budget = budgetOf(keyOf[i])
      local names, ends = base .. 'n:' .. budget, base .. 'x:' .. budget
      if not counts[budget] then
        local old = call('ZRANGEBYSCORE', ends, '-inf', nowMs, 'LIMIT', 0, ${expiredMax})
        if #old > 0 then
          call('ZREM', ends, unpack(old))
          call('ZREM', names, unpack(old))
          for j = 1, #old do old[j] = base .. 'a:' .. old[j] end
          call('UNLINK', unpack(old))
        end
        counts[budget] = call('ZCARD', names)
      end
      counts[budget] = counts[budget] + 1
      if counts[budget] > ${accountsMax} then return false end
    end
  end
  return true
end

-- The account of an entry, which drains at the speed that the entry says from now on.

local function take(i)
  local a = stateNow[i]
  if kindOf[i] == 1 then
    if a.z ~= periodOf[i] then a.y = 0 end
    a.z, a.w = periodOf[i], capacityOf[i]
  end
  return a
end

local function waitOf(i, a, over)
  local kind, capacity = kindOf[i], capacityOf[i]
  if kind == 2 or estimateOf[i] > capacity then return -1 end
  if kind == 0 then return math.min(a.y - nowUs, ${retryUsMax}) end
  if over > a.spent or capacity == 0 then return -1 end
  if not floorMulDiv then needExact() end
  local period = periodOf[i]
  local whole = floorMulDiv(over, period, capacity, ${retryUsMax})
  if whole >= ${retryUsMax} then return ${retryUsMax} end
  local rest = exactDifference(over, period, whole, capacity) - (a.z == period and a.y or 0)
  return math.max(0, whole + math.ceil(rest / capacity))
end

local function evaluate(i)
  local a = stateNow[i]
  local over = estimateOf[i] - (capacityOf[i] - a.spent - a.reserved)
  isOver[i] = over > 0
  local wait = -1
  if over > 0 then wait = waitOf(i, a, over) end
  reply[replyCount + i + 1] = pack('<Bddd', isOver[i] and 1 or 0, a.spent, a.reserved, wait)
end
`;

const reserveText = `
-- A reservation that is repeated; or that comes after its settlement, without a record.

local function again(id)
  local record = records[id]
  reply[replyCount + 1] = record and '\\1' or '\\0'
  for i = 1, n do
    if record then
      local a, reserved, flags = stateNow[i], stateNow[i].reserved, record[4 * i + 2] or 0
      if record[1] == 0 and record[4 * i] == a.id then
        reserved = math.max(0, reserved - record[4 * i + 1])
      end
      reply[replyCount + i + 1] = pack('<Bddd', flags >= 2 and 1 or 0, a.spent, reserved, -1)
    else
      evaluate(i)
    end
  end
  replyCount = replyCount + n + 1
end

local function reserve(op, id)
  readEntries(starts[op])
  if records[id] or isSettled[id] then return again(id) end
  local code = '\\1'
  for i = 1, n do
    evaluate(i)
    if isOver[i] and flagsOf[i] % 2 == 1 then code = '\\0' end
  end
  if code == '\\1' and n > 0 then
    if not haveRoom() then
      replyCount = replyCount + 1
      reply[replyCount] = '\\5'
      return
    end
    local record = { 0, n }
    for i = 1, n do
      local a = take(i)
      local held = math.min(estimateOf[i], ${amountMax} - a.reserved)
      a.reserved = a.reserved + held
      local k, flags = 4 * i, isOver[i] and 2 or 0
      if flagsOf[i] >= 2 then flags = flags + 1 end
      record[k - 1], record[k], record[k + 1], record[k + 2] = keyOf[i], a.id, held, flags
      keep(a)
    end
    records[id], isOpened[id] = record, true
    opened[#opened + 1] = op
  end
  reply[replyCount + 1] = code
  replyCount = replyCount + n + 1
end
`;

const settleText = `
local costs, costCount = {}, 0

local function readCosts(at)
  costCount, at = unpackStruct('B', batch, at)
  for i = 1, costCount do costs[i], at = unpackStruct('<d', batch, at) end
  return at
end

-- A repeat of a settlement that would charge without a reservation finds that it was charged.

local function keepSettled(op, id)
  local holder = string.sub(KEYS[holderAt[op] + 1], #base + 3)
  keepLate(holder, id, pack('<dB', nowMs + ${lateSettlementMsMax}, 255))
end

local function settle(op, id)
  readCosts(starts[op])
  local record, late = records[id], isLate[id]
  for i = 1, record[2] do
    local k = 4 * i
    local a = load(record[k - 1])
    if a then
      a = drained(a)
      local window, held = record[k], record[k + 1]
      local amount = i <= costCount and costs[i] or held
      if not late then
        if window == a.id then a.reserved = math.max(0, a.reserved - held) end
      elseif record[k + 2] % 2 == 1 then
        amount = amount - held
      else
        lose(a, window, -held)
      end
      spend(a, window, amount)
      keep(a)
    end
  end
  if late then
    call('HDEL', lateKey(holderAt[op]), id)
  elseif not isOpened[id] then
    local list = closed[holderAt[op]] or {}
    closed[holderAt[op]], list[#list + 1] = list, id
  end
  records[id], isOpened[id], isSettled[id] = nil, nil, true
  settled[#settled + 1], settled[#settled + 2] = id, ''
  if kinds[op] == 3 then keepSettled(op, id) end
  return late and '\\4' or '\\3'
end

-- Charges a call that was let in without a reservation.

local function charge(op, id)
  readEntries(readCosts(starts[op]))
  if not haveRoom() then return '\\5' end
  for i = 1, n do
    local a = take(i)
    spend(a, a.id, i <= costCount and costs[i] or estimateOf[i])
    keep(a)
  end
  keepSettled(op, id)
  isSettled[id] = true
  settled[#settled + 1], settled[#settled + 2] = id, ''
  return '\\3'
end
`;

const writeText = `
local byOpened = {}
for i = 1, #opened do
  local op = opened[i]
  local id, h = ARGV[4 + op], holderAt[op]
  local record = isOpened[id] and records[id]
  if record then
    local list = byOpened[h] or {}
    local value = { pack('<dB', 0, record[2]) }
    for k = 3, #record, 4 do
      local key = record[k]
      value[#value + 1] = pack('<I2c0ddB', #key, key, record[k + 1], record[k + 2], record[k + 3])
    end
    byOpened[h], list[#list + 1], list[#list + 2] = list, id, table.concat(value)
  end
end
for h, list in pairs(byOpened) do call('HSET', KEYS[h + 1], unpack(list)) end
for h, list in pairs(closed) do call('HDEL', KEYS[h + 1], unpack(list)) end
if #settled > 0 then call('HSET', lately, unpack(settled)) end
if isNew == 1 then call('PEXPIRE', base .. 'o:' .. me, ${callKeptMs}) end
writeAccounts()
`;

/**
 * Applies a batch. KEYS: holders; then the open reservations of each holder that is named, then the
 * accounts that are. ARGV: the holder, its lease in ms, how many holders are named, the operations
 * as `packBatch` has them, and the id of each. Answers the time in us (double), and for each
 * operation a byte: 0 refused, 1 reserved, 2 unknown, 3 settled, 4 late, 5 full; a reservation that
 * is not full has for each entry: over (byte), spent, reserved, and the wait in us or -1 (doubles).
 */
export const applyScript: StoreScript = {
  name: "budget-apply",
  text: `
${commonText}
${recordsText}
local me, batch, firstAccount = ARGV[1], ARGV[4], 1 + ARGV[3]
local lately = base .. 's'
local isNew = call('ZADD', KEYS[1], nowMs + ARGV[2], me)
if tonumber(call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]) <= nowMs then
  expire()
  writeAccounts()
  changed = {}
end
local function lateKey(h) return base .. 'l:' .. string.sub(KEYS[h + 1], #base + 3) end
${findText}
local reply, replyCount = { pack('<d', nowUs) }, 1
local opened, isOpened, closed, settled = {}, {}, {}, {}
${entriesText}${reserveText}${settleText}
for op = 1, count do
  local id = ARGV[4 + op]
  if kinds[op] == 1 then
    reserve(op, id)
  else
    local code = '\\2'
    if records[id] then
      code = settle(op, id)
    elseif kinds[op] == 3 and not isSettled[id] then
      code = charge(op, id)
    end
    replyCount = replyCount + 1
    reply[replyCount] = code
  end
end
${writeText}
return table.concat(reply, '', 1, replyCount)
`,
};

/**
 * KEYS: holders. ARGV: the holder, and its lease in ms; nothing where it goes. Answers how many
 * reservations have expired.
 */
export const renewScript: StoreScript = {
  name: "budget-renew",
  text: `
${commonText}
${recordsText}
local me, leaseMs = ARGV[1], tonumber(ARGV[2])
if leaseMs > 0 then
  -- What a clock that stepped back has left.
  local far = call('ZRANGEBYSCORE', KEYS[1], '(' .. nowMs + ${leaseMsMax}, '+inf', 'LIMIT', 0,
    ${expiredMax})
  for _, holder in ipairs(far) do call('ZADD', KEYS[1], nowMs + ${leaseMsMax}, holder) end
  call('ZADD', KEYS[1], nowMs + leaseMs, me)
  call('PEXPIRE', base .. 'o:' .. me, ${callKeptMs})
else
  call('ZADD', KEYS[1], 0, me)
end
local count = expire()
writeAccounts()
return count
`,
};

/** A row of a list. */
const rowText = `
local rows = {}
local function addRow(key, value, kind, p, q, r)
  local a = decode(key, value)
  if not a then return false end
  a = stateOf(a, kind, p, q, r)
  rows[#rows + 1] = pack('<dddd', a.spent, a.reserved, a.before, a.lost)
  return true
end
`;

/** KEYS: holders, and accounts. ARGV: the law of each. Answers a byte for each: 1 and its row. */
export const readScript: StoreScript = {
  name: "budget-read",
  text: `
${commonText}${rowText}
local values, at = call('MGET', unpack(KEYS)), 1
for i = 2, #KEYS do
  local kind, p, q, r
  kind, p, q, r, at = unpackStruct('<Bddd', ARGV[1], at)
  rows[#rows + 1] = '\\1'
  if not addRow(KEYS[i], values[i], kind, p, q, r) then rows[#rows] = '\\0' end
end
return table.concat(rows)
`,
};

/**
 * KEYS: holders. ARGV: the budget, its law, and the name behind which the page begins. Answers
 * names and rows: the length of a name (uint16), and the name.
 */
export const listScript: StoreScript = {
  name: "budget-list",
  text: `
${commonText}${rowText}
local kind, p, q, r = unpackStruct('<Bddd', ARGV[2])
local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local names = call('ZRANGE', base .. 'n:' .. ARGV[1], from, '+', 'BYLEX', 'LIMIT', 0,
  ${pageRowsMax})
if #names == 0 then return '' end
local keys = {}
for i, name in ipairs(names) do keys[i] = base .. 'a:' .. name end
local values = call('MGET', unpack(keys))
for i, name in ipairs(names) do
  rows[#rows + 1] = pack('<I2c0B', #name, name, 1)
  if not addRow(keys[i], values[i], kind, p, q, r) then
    rows[#rows] = pack('<I2c0B', #name, name, 0)
  end
end
return table.concat(rows)
`,
};

/**
 * KEYS: holders, the account, and the refund. ARGV: the law, and the amount. Answers what was given
 * back, as a text.
 */
export const refundScript: StoreScript = {
  name: "budget-refund",
  text: `
${commonText}
local known = call('MGET', KEYS[3])[1]
if known then return known end
local a, amount = load(KEYS[2]), 0
if a then
  a = stateOf(a, unpackStruct('<Bddd', ARGV[1]))
  amount = math.min(a.spent, tonumber(ARGV[2]))
  spend(a, a.id, -amount)
  keep(a)
  writeAccounts()
end
local text = string.format('%.0f', amount)
call('SET', KEYS[3], text, 'PX', ${refundKeptMs})
return text
`,
};
