import { amountMax } from "../../../core/budgets/account.js";
import {
  callKeptMs,
  keptLongerMs,
  keptLongerRatio,
  retryUsMax,
  windowUsMax,
} from "../../../core/budgets/account-law.js";
import {
  expiredMax,
  lateRecordsMax,
  lateSettlementMsMax,
} from "../../coordination/budget-store.js";
import { exactText } from "../scripts/exact-text.js";
import { windowText } from "../scripts/law-text.js";

/**
 * The scripts of budgets; `MemoryBudgets` does the same, and `core/budgets/account-law` says what.
 *
 * KEYS[1]: holders, a sorted set by the ends of their leases in ms. The others begin alike, with
 * the hash tag, so they are in the same slot, and a script may use them without naming them:
 *
 * - `a:ACCOUNT`: one byte for the kind of its law, and doubles: until when it is kept in ms, the
 *   window's id, spent, reserved, lost, spent before, the id of the window before, and four of the
 *   law (window: start and end in us; drain: until when it has drained, remainder, period,
 *   capacity).
 * - `n:BUDGET`, `x:BUDGET`: its accounts, by name and by when they expire.
 * - `o:HOLDER`, `l:HOLDER`: open and late reservations by id: until when a late one counts in ms or
 *   0, how many holds or 255 for an id that is settled; for each the key of the account, the
 *   window's id, what is held, and flags (1: charged when lost, 2: was over).
 * - `s`, `t`: ids that were settled lately, and those before them; `#` is since when, in ms.
 * - `r:ID`: what a refund gave back.
 * - `u:DAY`, `v:DAY`, `w:DAY`: rows of the usage report, their names in order, and the last report
 *   of each holder.
 */
export const commonText = `
local call, pack, unpackStruct, floor = redis.call, struct.pack, struct.unpack, math.floor
local base = string.sub(KEYS[1], 1, -8)
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = floor(nowUs / 1000)
local accountFormat, accountBytes = '<Bddddddddddd', 89

-- Accounts by key: false where there is none. Those to be written are in order in changed.

local accounts, changed = {}, {}

local function decode(key, value)
  if not value or #value ~= accountBytes then return false end
  local kind, expires, id, spent, reserved, lost, before, beforeId, x, y, z, w =
    unpackStruct(accountFormat, value)
  local isSound = kind <= 2 and expires > nowMs and spent >= 0 and spent <= ${amountMax}
    and reserved >= 0 and reserved <= ${amountMax} and z >= 1
  return isSound and { key = key, kind = kind, expires = expires, kept = expires, id = id,
    spent = spent, reserved = reserved, lost = lost, before = before, beforeId = beforeId,
    x = x, y = y, z = z, w = w }
end

local function load(key)
  local known = accounts[key]
  if known == nil then
    known = decode(key, call('MGET', key)[1])
    accounts[key] = known
  end
  return known
end

local function copy(a)
  local b = {}
  for name, value in pairs(a) do b[name] = value end
  return b
end

local floorMulDiv, exactDifference
local function needExact()
  floorMulDiv, exactDifference = (function()
${exactText}
    return floorMulDiv, exactDifference
  end)()
end
${windowText}
-- An account whose law becomes this one.

local function inLaw(a, kind, p, q, r)
  a.kind = kind
  if kind == 0 then
    a.x, a.y = windowAt(p, q, r)
  elseif kind == 1 then
    a.x, a.y, a.z, a.w = nowUs, 0, 1, 0
  end
  return a
end

local function open(key, kind, p, q, r)
  return inLaw({ key = key, expires = 0, kept = 0, id = nowUs, spent = 0, reserved = 0, lost = 0,
    before = 0, beforeId = 0, x = 0, y = 0, z = 1, w = 0 }, kind, p, q, r)
end

local function drained(a)
  if a.kind ~= 1 or a.x == nowUs then return a end
  local b = copy(a)
  b.x = nowUs
  if nowUs < a.x then return b end
  if not floorMulDiv then needExact() end
  local elapsed, spent = nowUs - a.x, a.spent
  local gone = floorMulDiv(elapsed, a.w, a.z, spent)
  if gone >= spent then
    b.spent, b.y = 0, 0
    return b
  end
  local rest = exactDifference(elapsed, a.w, gone, a.z) + a.y
  if rest >= a.z then gone, rest = gone + 1, rest - a.z end
  b.spent = spent - gone
  b.y = b.spent == 0 and 0 or rest
  return b
end

-- An account at this time, itself or a changed copy.

local function stateOf(a, kind, p, q, r)
  if a.kind ~= kind then return inLaw(copy(a), kind, p, q, r) end
  if kind == 1 then return drained(a) end
  if kind == 2 then return a end
  local startUs, endUs = windowAt(p, q, r)
  if endUs == a.y then return a end
  if endUs > a.y and nowUs >= a.y then
    local b, follows = copy(a), startUs <= a.y
    b.x, b.y, b.id = startUs, endUs, math.max(nowUs, a.id + 1)
    b.before, b.beforeId = follows and a.spent or 0, follows and a.id or 0
    b.spent, b.reserved, b.lost = 0, 0, 0
    return b
  end
  if nowUs < a.x and a.x <= endUs then return a end
  local b = copy(a)
  b.x, b.y = startUs, endUs
  return b
end

local function budgetOf(key)
  return string.match(key, '^[^/]*', #base + 3)
end

-- Keeps an account as it is now, and until when it is needed.

local function keep(a)
  local spanUs = 0
  if a.kind == 0 then
    spanUs = a.y + math.min(a.y - a.x, ${windowUsMax}) - nowUs
  elseif a.kind == 1 then
    spanUs = math.min(a.spent / math.max(1, a.w) * a.z, ${retryUsMax})
  end
  local spanMs = math.max(spanUs / 1000, a.reserved > 0 and ${callKeptMs} or 0)
  if nowMs + spanMs >= a.expires then
    a.expires = floor(nowMs + spanMs * ${1 + keptLongerRatio}) + ${keptLongerMs}
  end
  local key = a.key
  if not accounts[key] then
    local name, budget = string.sub(key, #base + 3), budgetOf(key)
    call('ZADD', base .. 'n:' .. budget, 0, name)
    call('ZADD', base .. 'x:' .. budget, a.expires, name)
    a.listed = a.expires
  end
  accounts[key] = a
  if not changed[key] then
    changed[key] = true
    changed[#changed + 1] = key
  end
end

-- Spends in the window of a reservation, or corrects that.

local function spend(a, id, amount)
  if a.kind == 2 then return end
  if id == a.id then
    a.spent = math.min(math.max(a.spent + amount, 0), ${amountMax})
  elseif id == a.beforeId then
    a.before = math.min(math.max(a.before + amount, 0), ${amountMax})
  end
end

local function lose(a, id, amount)
  if id == a.id then a.lost = math.min(math.max(a.lost + amount, 0), ${amountMax}) end
end

local function writeAccounts()
  for i = 1, #changed do
    local a = accounts[changed[i]]
    local key, kept = a.key, a.kept
    local value = pack(accountFormat, a.kind, a.expires, a.id, a.spent, a.reserved, a.lost,
      a.before, a.beforeId, a.x, a.y, a.z, a.w)
    if kept == a.expires then
      call('SET', key, value, 'KEEPTTL')
    else
      call('SET', key, value, 'PX', a.expires - nowMs)
      if a.listed ~= a.expires then
        call('ZADD', base .. 'x:' .. budgetOf(key), a.expires, string.sub(key, #base + 3))
      end
    end
  end
end
`;

/** Reservations of holders, and what becomes of those that are lost. */
export const recordsText = `
-- A record: until, count, and four values for each hold.

local function parse(value)
  local untilMs, count, next = unpackStruct('<dB', value)
  local record = { untilMs, count }
  if count == 255 then return record end
  for i = 1, count do
    local at = 4 * i
    record[at - 1], record[at], record[at + 1], record[at + 2], next =
      unpackStruct('<I2c0ddB', value, next)
  end
  return record
end

local function keepLate(holder, id, value)
  local key = base .. 'l:' .. holder
  if call('HLEN', key) >= ${lateRecordsMax} then
    local flat = call('HRANDFIELD', key, ${expiredMax}, 'WITHVALUES')
    for i = 1, #flat, 2 do
      if unpackStruct('<d', flat[i + 1]) <= nowMs then call('HDEL', key, flat[i]) end
    end
    if call('HLEN', key) >= ${lateRecordsMax} then return end
  end
  call('HSET', key, id, value)
  call('PEXPIRE', key, ${2 * lateSettlementMsMax})
end

local function expireOne(holder, id, value)
  local record = parse(value)
  for i = 3, 4 * record[2] + 2, 4 do
    local a = load(record[i])
    if a then
      a = drained(a)
      local window, held = record[i + 1], record[i + 2]
      if window == a.id then a.reserved = math.max(0, a.reserved - held) end
      if record[i + 3] % 2 == 1 then spend(a, window, held) else lose(a, window, held) end
      keep(a)
    end
  end
  keepLate(holder, id, pack('<d', nowMs + ${lateSettlementMsMax}) .. string.sub(value, 9))
end

-- Expires some reservations of holders whose leases are over.

local function expire()
  local dead = call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs, 'LIMIT', 0, ${expiredMax})
  local count = 0
  for _, holder in ipairs(dead) do
    local key = base .. 'o:' .. holder
    local flat = call('HRANDFIELD', key, ${expiredMax} - count, 'WITHVALUES')
    for i = 1, #flat, 2 do
      call('HDEL', key, flat[i])
      expireOne(holder, flat[i], flat[i + 1])
      count = count + 1
    end
    if call('HLEN', key) == 0 then call('ZREM', KEYS[1], holder) end
    if count >= ${expiredMax} then break end
  end
  return count
end
`;
