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
import { entryBytes } from "./budget-pack.js";
import {
  accountBytes,
  accountFormat,
  isSoundText,
  lawText,
  recordsText,
  startText,
  withLists,
  writeText,
} from "./budget-texts.js";

/**
 * What few operations need: it is made when the first of them comes, since Lua makes functions anew
 * in every run.
 */
const rareText = withLists(`
local function haveRoom(n)
  local counts = {}
  for i = 1, n do
    local a = stateNow[i]
    local key = a.key
    if not accounts[key] then
      local budget = budgetOf(key)
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

-- How long an estimate that is over by so much has to wait, in us; -1: time does not help.

local function waitOf(i, over)
  local a, capacity, period = stateNow[i], capacityOf[i], periodOf[i]
  local kind = a.kind
  if kind == 2 or estimateOf[i] > capacity then return -1 end
  if kind == 0 then return math.min(a.y - nowUs, ${retryUsMax}) end
  if over > a.spent or capacity == 0 then return -1 end
  local floorMulDiv, exactDifference = needExact()
  local whole = floorMulDiv(over, period, capacity, ${retryUsMax})
  if whole >= ${retryUsMax} then return ${retryUsMax} end
  local rest = exactDifference(over, period, whole, capacity) - (a.z == period and a.y or 0)
  return math.max(0, whole + math.ceil(rest / capacity))
end

local function holderOf(h) return string.sub(KEYS[h + 1], #base + 3) end

-- Ids that were settled lately: whether one is among them, or it is put there.

local lately = base .. 's'
local function forgetOld()
  local sinceMs = tonumber(call('HGET', lately, '#') or '')
  if sinceMs and nowMs >= sinceMs and nowMs < sinceMs + ${settledKeptMs} then return end
  if sinceMs then call('RENAME', lately, base .. 't') end
  call('HSET', lately, '#', nowMs)
  call('PEXPIRE', lately, ${10 * settledKeptMs})
end

local function wasSettled(id)
  forgetOld()
  return call('HGET', lately, id) or call('HGET', base .. 't', id)
end

local function noteSettled(id)
  forgetOld()
  call('HSET', lately, id, '')
end

-- A late reservation, or 255 for an id that is settled.

local function findLate(h, id)
  local value = call('HGET', base .. 'l:' .. holderOf(h), id)
  local record = value and parse(value)
  return record and record[1] > nowMs and record
end

-- A reservation that is repeated; or that comes again after it was refused or settled.

local function again(h, id, record, n, from)
  if record == nil then
    local value = call('HGET', KEYS[h + 1], id)
    record = value and parse(value)
  end
  record = record or findLate(h, id)
  if record and record[2] == 255 then record = nil end
  for i = 1, n do
    local a, over, wait = stateNow[i], 0, -1
    local reserved = a.reserved
    if record then
      local k = 4 * i
      if record[1] == 0 and record[k] == a.id then
        reserved = math.max(0, reserved - record[k + 1])
      end
      over = (record[k + 2] or 0) >= 2 and 1 or 0
    else
      local excess = estimateOf[i] - (capacityOf[i] - a.spent - reserved)
      if excess > 0 then over, wait = 1, waitOf(i, excess) end
    end
    reply[from + i] = pack('<Bddd', over, a.spent, reserved, wait)
  end
  return record and '\\1' or '\\0'
end

local function settleLate(h, id, record, costs)
  for i = 1, record[2] do
    local k = 4 * i
    local a = load(record[k - 1])
    if a then
      if a.kind == 1 then drain(a) end
      local window, held = record[k], record[k + 1]
      local amount = costs[i] or held
      if record[k + 2] % 2 == 1 then amount = amount - held else lose(a, window, -held) end
      spend(a, window, amount)
      keep(a)
    end
  end
  call('HDEL', base .. 'l:' .. holderOf(h), id)
end

-- Charges a call that was let in without a reservation.

local function charge(h, id, costs, n)
  if not haveRoom(n) then return '\\5' end
  for i = 1, n do
    local a = stateNow[i]
    if a.kind == 1 then
      if a.z ~= periodOf[i] then a.y = 0 end
      a.z, a.w = periodOf[i], capacityOf[i]
    end
    spend(a, a.id, costs[i] or estimateOf[i])
    keep(a)
  end
  keepLate(holderOf(h), id, pack('<dB', nowMs + ${lateSettlementMsMax}, 255))
  noteSettled(id)
  return '\\3'
end
`);

/** Reads the entries of the operation in hand, and finds their accounts at this time. */
const entriesText = withLists(`
    n, next = unpackStruct('B', batch, next)
    for i = 1, n do
      local k, kind, p, q, r
      k, kind, p, q, r, capacityOf[i], estimateOf[i], flagsOf[i], next =
        unpackStruct('<I2BdddddB', batch, next)
      local key = keys[firstAccount + k]
      local a = accounts[key]
      if kind == 1 then periodOf[i] = p end
      if a and a.kind == kind and (kind == 2 or kind == 0 and a.y == q and nowUs >= p
        and nowUs < q) then
        stateNow[i] = a
      elseif a and kind == 1 and a.kind == 1 then
        drain(a)
        stateNow[i] = a
      else
        rare = rare or makeRare()
        stateNow[i] = a and rare.stateOf(a, kind, p, q, r) or rare.open(key, kind, p, q, r)
      end
    end
`);

/** Reserves what the operation in hand says. */
const reserveText = withLists(`
    ${entriesText}
    local code, from = '\\1', replyCount + 1
    replyCount = from + n
    if number <= highest[h] then
      rare = rare or makeRare()
      local record = foundOf[h][idAt - firstOf[h]]
      code = rare.again(h, argv[idAt], record or fresh[idAt] or record, n, from)
    else
      highest[h], isHigher[h] = number, true
      local isNew = false
      for i = 1, n do
        local a, wait = stateNow[i], -1
        local over = estimateOf[i] - (capacityOf[i] - a.spent - a.reserved)
        if over > 0 then
          rare = rare or makeRare()
          wait = rare.waitOf(i, over)
          if flagsOf[i] % 2 == 1 then code = '\\0' end
        end
        if accounts[a.key] ~= a then isNew = true end
        overOf[i] = over
        reply[from + i] = pack('<Bddd', over > 0 and 1 or 0, a.spent, a.reserved, wait)
      end
      if code == '\\1' and isNew and not rare.haveRoom(n) then
        code, replyCount = '\\5', from
      elseif code == '\\1' and n > 0 then
        local record
        for i = 1, n do
          local a, held, flags = stateNow[i], estimateOf[i], flagsOf[i] >= 2 and 1 or 0
          if a.kind == 1 then
            if a.z ~= periodOf[i] then a.y = 0 end
            a.z, a.w = periodOf[i], capacityOf[i]
          end
          if held > ${amountMax} - a.reserved then held = ${amountMax} - a.reserved end
          a.reserved = a.reserved + held
          if overOf[i] > 0 then flags = flags + 2 end
          if i == 1 then
            record = { 0, n, a.key, a.id, held, flags }
          else
            local k = 4 * i
            record[k - 1], record[k], record[k + 1], record[k + 2] = a.key, a.id, held, flags
          end
          keep(a)
        end
        openedCount = openedCount + 1
        opened[openedCount], fresh[idAt] = idAt, record
      end
    end
    reply[from] = code
`);

/** Settles what the operation in hand says. */
const settleText = withLists(`
    local costCount, costAt
    costCount, costAt = unpackStruct('B', batch, next)
    next = costAt + 8 * costCount
    local entriesAt = next
    if kind == 3 then next = entriesAt + 1 + ${entryBytes} * byte(batch, entriesAt) end
    local found, code, id = foundOf[h], '\\2', argv[idAt]
    local record = found[idAt - firstOf[h]] or fresh[idAt]
    if record then
      code = '\\3'
      for i = 1, record[2] do
        local k = 4 * i
        local a = accounts[record[k - 1]]
        if a then
          local window, held = record[k], record[k + 1]
          local cost = held
          if i <= costCount then cost = unpackStruct('<d', batch, costAt + 8 * i - 8) end
          if a.kind == 1 then drain(a) end
          if window == a.id then
            a.reserved = a.reserved > held and a.reserved - held or 0
            if a.kind < 2 then
              local spent = a.spent + cost
              a.spent = spent < ${amountMax} and spent or ${amountMax}
            end
          elseif a.kind < 2 and window == a.beforeId then
            a.before = math.min(a.before + cost, ${amountMax})
          end
          keep(a)
        end
      end
      if fresh[idAt] then
        fresh[idAt] = nil
      else
        found[idAt - firstOf[h]] = false
        local list = closed[h]
        if list then list[#list + 1] = id else closed[h] = { id } end
      end
      if h > 1 or kind == 3 then
        rare = rare or makeRare()
        rare.noteSettled(id)
      end
    else
      rare = rare or makeRare()
      local late, costs = rare.findLate(h, id), {}
      for i = 1, costCount do costs[i] = unpackStruct('<d', batch, costAt + 8 * i - 8) end
      if late and late[2] < 255 then
        code = '\\4'
        rare.settleLate(h, id, late, costs)
        if h > 1 or kind == 3 then rare.noteSettled(id) end
      elseif kind == 3 and not late and not rare.wasSettled(id) then
        next = entriesAt
        ${entriesText}
        code = rare.charge(h, id, costs, n)
        if code == '\\3' and number > highest[h] then highest[h], isHigher[h] = number, true end
      end
    end
    replyCount = replyCount + 1
    reply[replyCount] = code
`);

/**
 * Applies a batch. KEYS: holders; the open reservations of each holder that is named, first those
 * of who asks; then the accounts that are named. ARGV: the holder, its lease in ms, how many
 * holders are named, the operations as `packBatch` has them, and each id that is named, with those
 * to settle first, by holder. Answers the time in us (double), and for each operation a byte:
 * 0 refused, 1 reserved, 2 unknown, 3 settled, 4 late, 5 full; a reservation that is not full has
 * for each entry: over (byte), spent, reserved, and the wait in us or -1 (doubles).
 *
 * Nearly every operation is on accounts that exist, in their current window, and these do with two
 * functions; the others are made when something else comes.
 */
export const applyScript: StoreScript = {
  name: "budget-apply",
  text: `
${startText}${withLists(`
local keys, argv = KEYS, ARGV
local holderCount, batch = tonumber(argv[3]), argv[4]
local firstAccount, lastId = 1 + holderCount, 4
local rare, makeRare

-- The entries of the operation in hand, by position.

local stateNow, periodOf, capacityOf, estimateOf, flagsOf, overOf = {}, {}, {}, {}, {}, {}
local reply, replyCount = { pack('<d', nowUs) }, 1

-- As drain of the law does, but for products that are not exact.

local function drain(a)
  local product, left = (nowUs - a.x) * a.w, a.spent
  if a.x == nowUs then return end
  if product < 0 or product > 9007199254740991 then
    rare = rare or makeRare()
    return rare.drain(a)
  end
  local rest = product % a.z
  local gone = (product - rest) / a.z
  a.x = nowUs
  if gone < left then
    rest = rest + a.y
    if rest >= a.z then gone, rest = gone + 1, rest - a.z end
  end
  if gone >= left then
    a.spent, a.y = 0, 0
  else
    a.spent, a.y = left - gone, rest
  end
end

-- As keep of the law does, where the account is there and long enough.

local function keep(a)
  local key = a.key
  local kind, spanMs = a.kind, a.reserved > 0 and ${callKeptMs} or 0
  if kind == 0 then
    local ownMs = (2 * a.y - a.x - nowUs) / 1000
    if ownMs > spanMs then spanMs = ownMs end
  elseif kind == 1 then
    local speed = a.w
    if speed < 1 then speed = 1 end
    local ownMs = a.spent / speed * a.z / 1000
    if ownMs > spanMs then spanMs = ownMs end
  end
  if accounts[key] ~= a or nowMs + spanMs >= a.expires then
    rare = rare or makeRare()
    return rare.keep(a)
  end
  changed[key] = a
end

makeRare = function()
${lawText}${recordsText}${rareText}
  return { stateOf = stateOf, open = open, drain = drain, keep = keep, expire = expire,
    haveRoom = haveRoom, waitOf = waitOf, again = again, findLate = findLate,
    settleLate = settleLate, charge = charge, wasSettled = wasSettled, noteSettled = noteSettled }
end

local isNewHolder = call('ZADD', keys[1], nowMs + argv[2], argv[1])
if tonumber(call('ZRANGE', keys[1], 0, 0, 'WITHSCORES')[2]) <= nowMs then
  rare = makeRare()
  rare.expire()
end

-- Reservations to settle, by the position of their ids; and accounts that are needed.

local highest, isHigher, closed, foundOf, firstOf = {}, {}, {}, {}, {}
local fresh, opened, openedCount, forms = {}, {}, 0, {}
local wanted, wantedCount = {}, 0
for k = firstAccount + 1, #keys do
  local key = keys[k]
  if accounts[key] == nil then
    accounts[key], wantedCount = false, wantedCount + 1
    wanted[wantedCount] = key
  end
end
local byte = string.byte
local function formOf(n)
  local form = forms[n]
  if not form then
    form = '<dB' .. string.rep('sddB', n)
    forms[n] = form
  end
  return form
end
local at = 1
for h = 1, holderCount do
  local count
  count, at = unpackStruct('<I2', batch, at)
  local values = call('HMGET', keys[h + 1], '#', unpack(argv, lastId + 1, lastId + count))
  highest[h], foundOf[h], firstOf[h] = tonumber(values[1] or '-1'), values, lastId - 1
  for i = 2, count + 1 do
    local value = values[i]
    if value then
      local n = byte(value, 9)
      local record = { unpackStruct(formOf(n), value) }
      values[i] = record
      for k = 3, 4 * n + 2, 4 do
        local key = record[k]
        if accounts[key] == nil then
          accounts[key], wantedCount = false, wantedCount + 1
          wanted[wantedCount] = key
        end
      end
    end
  end
  lastId = lastId + count
end
if wantedCount > 0 then
  local values = call('MGET', unpack(wanted))
  for i = 1, wantedCount do
    local value, key = values[i], wanted[i]
    if value and #value == ${accountBytes} then
      local a = { unpackStruct('${accountFormat}', value) }
      a.key = key
      if ${isSoundText} then accounts[key] = a end
    end
  end
end

local batchEnd = #batch
while at <= batchEnd do
  local kind, h, idAt, number, next, n
  kind, h, idAt, number, next = unpackStruct('<BBI2d', batch, at)
  idAt = idAt + 4
  if kind == 1 then
    ${reserveText}
  else
    ${settleText}
  end
  at = next
end

-- Who asks is the first holder, and nobody else reserves.

local list, listCount = {}, 0
for i = 1, openedCount do
  local record = fresh[opened[i]]
  if record then
    local n = record[2]
    list[listCount + 1] = argv[opened[i]]
    list[listCount + 2] = pack(formOf(n), unpack(record, 1, 4 * n + 2))
    listCount = listCount + 2
  end
end
for h in pairs(isHigher) do
  call('HSET', keys[h + 1], '#', string.format('%.0f', highest[h]), unpack(h == 1 and list or {}))
end
for h, list in pairs(closed) do call('HDEL', keys[h + 1], unpack(list)) end
if isNewHolder == 1 then call('PEXPIRE', keys[2], ${callKeptMs}) end
`)}${writeText}
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
${startText}${lawText}${recordsText}
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
${writeText}
return count
`,
};

/** A row of a list. */
const rowText = withLists(`
local rows = {}
local function addRow(key, value, kind, p, q, r)
  local a = decode(key, value)
  if not a then return false end
  a = stateOf(a, kind, p, q, r)
  rows[#rows + 1] = pack('<dddd', a.spent, a.reserved, a.before, a.lost)
  return true
end
`);

/** KEYS: holders, and accounts. ARGV: the law of each. Answers a byte for each: 1 and its row. */
export const readScript: StoreScript = {
  name: "budget-read",
  text: `
${startText}${lawText}${rowText}
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
${startText}${lawText}${rowText}
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
  text: withLists(`
${startText}${lawText}
local known = call('MGET', KEYS[3])[1]
if known then return known end
local a, amount = load(KEYS[2]), 0
if a then
  a = stateOf(a, unpackStruct('<Bddd', ARGV[1]))
  amount = math.min(a.spent, tonumber(ARGV[2]))
  spend(a, a.id, -amount)
  keep(a)
end
${writeText}
local text = string.format('%.0f', amount)
call('SET', KEYS[3], text, 'PX', ${refundKeptMs})
return text
`),
};
