import { amountMax } from "../../../core/budgets/account.js";
import { callKeptMs, retryUsMax } from "../../../core/budgets/account-law.js";
import { accountsMax, lateSettlementMsMax } from "../../coordination/budget-store.js";
import type { StoreScript } from "../scripts/connection.js";
import { entryBytes } from "./budget-pack.js";
import {
  accountBytes,
  accountFormat,
  accountLawText,
  isSoundText,
  marksPerKey,
  purgeText,
  recordsText,
  startText,
  withLists,
  writeText,
} from "./budget-texts.js";

/**
 * Functions that few operations need. They are created for the first one, since Lua creates
 * functions again in every run.
 */
const rareText = withLists(`
local function haveRoom(n)
  local counts = {}
  purge()
  for i = 1, n do
    local a = stateNow[i]
    if not accounts[a.name] then
      local budget = budgetOf(a.name)
      counts[budget] = (counts[budget] or call('ZCARD', base .. 'n:' .. budget)) + 1
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

local function findLate(h, number)
  local value = call('HGET', base .. 'l:' .. holderOf(h), number)
  local record = value and parse(value)
  return record and record[1] > nowMs and record
end

-- A reservation that is repeated, or that comes after its settlement; nil where it is neither.

local function again(h, number, record, n, from, isSettled)
  if record == nil then
    local value = call('HGET', KEYS[h + 1], number)
    record = value and parse(value)
  end
  record = record or findLate(h, number)
  if not (record or isSettled or isMarked(holderOf(h), tonumber(number))) then return nil end
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

local function settleLate(h, number, record, costs)
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
  call('HDEL', base .. 'l:' .. holderOf(h), number)
end

-- Charges a call that was let in without a reservation.

local function charge(h, number, costs, n)
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
  mark(holderOf(h), tonumber(number))
  return '\\3'
end
`);

/** Reads the entries of the current operation, and their accounts as of now. */
const entriesText = withLists(`
    n, next = unpackStruct('B', batch, next)
    for i = 1, n do
      local k, kind, p, q, r
      k, kind, p, q, r, capacityOf[i], estimateOf[i], flagsOf[i], next =
        unpackStruct('<I2BdddddB', batch, next)
      local name = argv[accountsAt + k]
      local a = accounts[name]
      if kind == 1 then periodOf[i] = p end
      if a and a.kind == kind and (kind == 2 or kind == 0 and a.y == q and nowUs >= p
        and nowUs < q) then
        stateNow[i] = a
      elseif a and kind == 1 and a.kind == 1 then
        drain(a)
        stateNow[i] = a
      else
        rare = rare or makeRare()
        stateNow[i] = a and rare.stateOf(a, kind, p, q, r) or rare.open(name, kind, p, q, r)
      end
    end
`);

/** Makes the reservation of the current operation. */
const reserveText = withLists(`
    ${entriesText}
    local code, from = nil, replyCount + 1
    replyCount = from + n
    if number <= highest[h] then
      rare = rare or makeRare()
      local record = foundOf[h][idAt - firstOf[h]]
      if fresh[idAt] then record = rare.parse(opened[fresh[idAt]]) end
      code = rare.again(h, argv[idAt], record, n, from, isSettled[idAt])
    else
      highest[h], isHigher[h] = number, true
    end
    if not code then
      code = '\\1'
      local isNew = false
      for i = 1, n do
        local a, wait = stateNow[i], -1
        local over = estimateOf[i] - (capacityOf[i] - a.spent - a.reserved)
        if over > 0 then
          rare = rare or makeRare()
          wait = rare.waitOf(i, over)
          if flagsOf[i] % 2 == 1 then code = '\\0' end
        end
        if not accounts[a.name] then isNew = true end
        overOf[i] = over
        reply[from + i] = pack('<Bddd', over > 0 and 1 or 0, a.spent, a.reserved, wait)
      end
      if code == '\\1' and isNew and not rare.haveRoom(n) then
        code, replyCount = '\\5', from
      elseif code == '\\1' and n > 0 then
        local value = n > 1 and pack('<dB', 0, n)
        for i = 1, n do
          local a, held, flags = stateNow[i], estimateOf[i], flagsOf[i] >= 2 and 1 or 0
          if a.kind == 1 then
            if a.z ~= periodOf[i] then a.y = 0 end
            a.z, a.w = periodOf[i], capacityOf[i]
          end
          if held > ${amountMax} - a.reserved then held = ${amountMax} - a.reserved end
          a.reserved = a.reserved + held
          if overOf[i] > 0 then flags = flags + 2 end
          if value then
            value = value .. pack('<sddB', a.name, a.id, held, flags)
          else
            value = pack('<dBsddB', 0, 1, a.name, a.id, held, flags)
          end
          keep(a)
        end
        opened[openedCount + 1], opened[openedCount + 2] = argv[idAt], value
        openedCount = openedCount + 2
        fresh[idAt] = openedCount
      end
    end
    reply[from] = code
`);

/** Makes the settlement of the current operation. */
const settleText = withLists(`
    local costCount, costAt
    costCount, costAt = unpackStruct('B', batch, next)
    next = costAt + 8 * costCount
    local entriesAt = next
    if kind == 3 then next = entriesAt + 1 + ${entryBytes} * byte(batch, entriesAt) end
    local found, code, ownId = foundOf[h], '\\2', argv[idAt]
    local record, freshAt = found[idAt - firstOf[h]], fresh[idAt]
    if freshAt then
      rare = rare or makeRare()
      record = rare.parse(opened[freshAt])
    end
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
          elseif a.kind == 0 and window == a.w then
            a.z = math.min(a.z + cost, ${amountMax})
          end
          keep(a)
        end
      end
      if freshAt then
        -- It is written over by the highest number.
        fresh[idAt], opened[freshAt - 1], opened[freshAt] = nil, '#', '0'
      else
        found[idAt - firstOf[h]] = false
        local list = closed[h]
        if list then list[#list + 1] = ownId else closed[h] = { ownId } end
      end
      local list = marked[h]
      if not list then
        list = {}
        marked[h] = list
      end
      list[#list + 1], isSettled[idAt] = number, true
    else
      rare = rare or makeRare()
      local late, costs = rare.findLate(h, ownId), {}
      for i = 1, costCount do costs[i] = unpackStruct('<d', batch, costAt + 8 * i - 8) end
      if late then
        code = '\\4'
        rare.settleLate(h, ownId, late, costs)
      elseif kind == 3 and not isSettled[idAt] and not rare.isMarked(rare.holderOf(h), number) then
        next = entriesAt
        ${entriesText}
        code = rare.charge(h, ownId, costs, n)
        if code == '\\3' and number > highest[h] then highest[h], isHigher[h] = number, true end
      end
    end
    replyCount = replyCount + 1
    reply[replyCount] = code
`);

/**
 * Applies a batch. KEYS: holders; the open reservations of each holder in the batch, those of the
 * calling holder first. ARGV: the holder, its lease in ms, the number of holders in the batch, the
 * operations as packed by `packBatch`, the number of each id in the batch, those to settle first,
 * by holder; and the accounts in the batch. Returns the time in us (double), and for each operation
 * a byte: 0 refused, 1 reserved, 2 unknown, 3 settled, 4 late, 5 full; for a reservation that is
 * not full also for each entry: over (byte), spent, reserved, and the wait in us or -1 (doubles).
 *
 * Nearly every operation uses existing accounts in their current window and needs only two
 * functions. The other functions are created on demand.
 */
export const applyBudgetsScript: StoreScript = {
  name: "budget-apply",
  text: `
${startText}${withLists(`
local keys, argv = KEYS, ARGV
local holderCount, batch = tonumber(argv[3]), argv[4]
local accountsAt, lastId = 0, 4
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
  local name = a.name
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
  if accounts[name] ~= a or nowMs + spanMs >= a.expires then
    rare = rare or makeRare()
    return rare.keep(a)
  end
  changed[name] = a
end

makeRare = function()
${accountLawText}${purgeText}${recordsText}${rareText}
  return { stateOf = stateOf, open = open, drain = drain, keep = keep,
    haveRoom = haveRoom, waitOf = waitOf, again = again, findLate = findLate,
    settleLate = settleLate, charge = charge, parse = parse, mark = mark, isMarked = isMarked,
    holderOf = holderOf }
end

local isNewHolder = call('ZADD', keys[1], nowMs + argv[2], argv[1])

-- Accounts that are named, reservations to settle, and the accounts that these are in.

local highest, isHigher, closed, foundOf, firstOf = {}, {}, {}, {}, {}
local marked, isSettled = {}, {}
local fresh, opened, openedCount, forms = {}, {}, 0, { '<dBsddB' }
local byte, at, accountCount = string.byte, 1, 0
accountsAt, accountCount, at = unpackStruct('<I2I2', batch)
accountsAt = accountsAt + lastId

local function find(names)
  local values = call('HMGET', base .. 'a', unpack(names))
  for i = 1, #names do
    local value, name = values[i], names[i]
    accounts[name] = false
    if value and #value == ${accountBytes} then
      local a = { unpackStruct('${accountFormat}', value) }
      a.name = name
      if ${isSoundText} then accounts[name] = a end
    end
  end
end
if accountCount > 0 then find({ unpack(argv, accountsAt + 1, accountsAt + accountCount) }) end

local wanted, wantedCount = {}, 0
for h = 1, holderCount do
  local count
  count, at = unpackStruct('<I2', batch, at)
  local values = call('HMGET', keys[h + 1], '#', unpack(argv, lastId + 1, lastId + count))
  highest[h], foundOf[h], firstOf[h] = tonumber(values[1] or '-1'), values, lastId - 1
  for i = 2, count + 1 do
    local value = values[i]
    if value then
      local n = byte(value, 9)
      forms[n] = forms[n] or '<dB' .. string.rep('sddB', n)
      local record = { unpackStruct(forms[n], value) }
      values[i] = record
      for k = 3, 4 * n + 2, 4 do
        local name = record[k]
        if accounts[name] == nil then
          accounts[name], wantedCount = false, wantedCount + 1
          wanted[wantedCount] = name
        end
      end
    end
  end
  lastId = lastId + count
end
if wantedCount > 0 then find(wanted) end

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

for h, numbers in pairs(marked) do
  local lists = {}
  for i = 1, #numbers do
    local number = numbers[i]
    local offset = number % ${marksPerKey}
    local list = lists[number - offset]
    if not list then
      list = {}
      lists[number - offset] = list
    end
    local last = #list
    list[last + 1], list[last + 2], list[last + 3], list[last + 4] = 'SET', 'u1', offset, 1
  end
  for from, list in pairs(lists) do
    local key = base .. 'b:' .. string.sub(keys[h + 1], #base + 3) .. string.format(':%.0f', from)
    call('BITFIELD', key, unpack(list))
    call('PEXPIRE', key, ${2 * lateSettlementMsMax})
  end
end
for h, list in pairs(closed) do call('HDEL', keys[h + 1], unpack(list)) end

-- Who asks is the first holder, and nobody else reserves.

if openedCount > 0 then isHigher[1] = true end
for h in pairs(isHigher) do
  local list = h == 1 and opened or {}
  list[#list + 1] = '#'
  list[#list + 1] = string.format('%.0f', highest[h])
  call('HSET', keys[h + 1], unpack(list))
end
if isNewHolder == 1 then
  for k = 1, 2 do call('PEXPIRE', keys[k], ${callKeptMs}) end
end
`)}${writeText}
return table.concat(reply, '', 1, replyCount)
`,
};
