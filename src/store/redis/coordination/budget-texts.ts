import { amountMax } from "../../../core/budgets/account.js";
import {
  accountKeptMs,
  accountKeptRatio,
  callKeptMs,
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

/** Fields of an account as a list: first the stored ones, in order, then a script's own. */
const accountFields = [
  ...["kind", "expires", "id", "spent", "reserved", "lost", "x", "y", "z", "w"],
  ...["name", "isMoved", "listed"],
];

/**
 * Replaces `a.spent` by `a[4]` in Lua text, which creates and reads lists in a third of the time of
 * tables with names. Applies to accounts in variables named `a` or `b`.
 */
export function withLists(text: string): string {
  const pattern = new RegExp(`\\b([ab])\\.(${accountFields.join("|")})\\b`, "g");
  return text.replaceAll(pattern, (_, name: string, field: string) => {
    return `${name}[${accountFields.indexOf(field) + 1}]`;
  });
}

/**
 * Start of the scripts of budgets. `MemoryBudgets` implements the same algorithm, which
 * `core/budgets/account-law` describes.
 *
 * KEYS[1]: holders, a sorted set by the ends of their leases in ms. The other keys have the same
 * prefix with the hash tag, so they are in the same slot, and a script may use them without naming
 * them:
 *
 * - `a`: accounts by key: one byte for the kind of the law, then doubles: expiry in ms, the
 *   window's id, spent, reserved, lost, and four of the law (x, y, z, w; window: start and end in
 *   us, spent in the previous window, id of the previous window; drain: time of the last drain,
 *   remainder, period, capacity).
 * - `x`: accounts by their expiry in ms. `n:BUDGET`: accounts of a budget, in the order of names.
 * - `o:HOLDER`, `l:HOLDER`: open and late reservations, by number: time until which a late one
 *   counts in ms, or 0, and the number of holds; for each hold the account, terminated by a 0, the
 *   window's id, the amount held, and flags (1: charged when lost, 2: was over). Field `#` of the
 *   open ones is the highest reserved number.
 * - `b:HOLDER:N`: bits for the numbers from N on, set if settled or lost.
 * - `r:ID`: the amount of a refund.
 * - `u:DAY`, `v:DAY`, `w:DAY`: rows of the usage report, their names in order, and the number of
 *   the last report of each holder.
 */
export const startText = `
local pack, unpackStruct, call = struct.pack, struct.unpack, redis.call
local base = string.sub(KEYS[1], 1, -8)
local time = call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = (nowUs - nowUs % 1000) / 1000

-- Accounts by name: false where there is none. Those to be written are in changed.

local accounts, changed = {}, {}
`;

/** Maximum time that keys are kept without a write, in milliseconds: more than two years. */
export const storedMsMax = 800 * 86_400_000;

/** Length of a stored account in bytes, and its format. */
export const [accountBytes, accountFormat] = [73, "<Bddddddddd"];

/** Condition for an account that Headgate has written and that has not expired. */
export const isSoundText = `a.kind <= 2 and a.expires > nowMs and a.spent >= 0
  and a.spent <= ${amountMax} and a.reserved >= 0 and a.reserved <= ${amountMax}`;

/** Reads and updates accounts by the algorithm of `account-law`. */
export const accountLawText = withLists(`
local function decode(name, value)
  if not value or #value ~= ${accountBytes} then return false end
  local a = { unpackStruct('${accountFormat}', value) }
  a.name = name
  return ${isSoundText} and a
end

local function load(name)
  local known = accounts[name]
  if known == nil then
    known = decode(name, call('HGET', base .. 'a', name))
    accounts[name] = known
  end
  return known
end

local exact
local function needExact()
  exact = exact or (function()
${exactText}
    return { floorMulDiv, exactDifference }
  end)()
  return exact[1], exact[2]
end
${windowText}
-- An account whose law becomes this one.

local function inLaw(a, kind, p, q, r)
  a.kind = kind
  if kind == 0 then
    a.x, a.y = windowAt(p, q, r)
    a.z, a.w = 0, 0
  elseif kind == 1 then
    a.x, a.y, a.z, a.w = nowUs, 0, 1, 0
  end
  return a
end

local function open(name, kind, p, q, r)
  return inLaw({ kind, 0, nowUs, 0, 0, 0, 0, 0, 0, 0, name }, kind, p, q, r)
end

-- What has drained is gone, whatever else becomes of the account in this run.

local function drain(a)
  local elapsed, spent = nowUs - a.x, a.spent
  a.x = nowUs
  if elapsed <= 0 then return end
  local floorMulDiv, exactDifference = needExact()
  local gone = floorMulDiv(elapsed, a.w, a.z, spent)
  if gone >= spent then
    a.spent, a.y = 0, 0
    return
  end
  local rest = exactDifference(elapsed, a.w, gone, a.z) + a.y
  if rest >= a.z then gone, rest = gone + 1, rest - a.z end
  a.spent = spent - gone
  a.y = a.spent == 0 and 0 or rest
end

-- An account at this time, itself or a changed copy.

local function stateOf(a, kind, p, q, r)
  if a.kind == 1 then drain(a) end
  if a.kind ~= kind then return inLaw({ unpack(a, 1, 13) }, kind, p, q, r) end
  if kind > 0 then return a end
  local startUs, endUs = windowAt(p, q, r)
  if endUs == a.y or nowUs < a.x and a.x <= endUs and not (endUs > a.y and nowUs >= a.y) then
    return a
  end
  local b = { unpack(a, 1, 13) }
  b.x, b.y = startUs, endUs
  if endUs > a.y and nowUs >= a.y then
    local follows = startUs <= a.y
    b.id = math.max(nowUs, a.id + 1)
    b.z, b.w = follows and a.spent or 0, follows and a.id or 0
    b.spent, b.reserved, b.lost = 0, 0, 0
  end
  return b
end

local function budgetOf(name) return string.match(name, '^[^/]*') end

-- Keeps an account as it is now, for as long as it is needed.

local function keep(a)
  local spanUs = 0
  if a.kind == 0 then
    spanUs = a.y + math.min(a.y - a.x, ${windowUsMax}) - nowUs
  elseif a.kind == 1 then
    spanUs = math.min(a.spent / math.max(1, a.w) * a.z, ${retryUsMax})
  end
  local spanMs = math.max(spanUs / 1000, a.reserved > 0 and ${callKeptMs} or 0)
  if nowMs + spanMs >= a.expires then
    a.expires = math.floor(nowMs + spanMs * ${1 + accountKeptRatio}) + ${accountKeptMs}
    a.isMoved = true
  end
  local name = a.name
  if not accounts[name] then
    local names = base .. 'n:' .. budgetOf(name)
    call('ZADD', names, 0, name)
    call('PEXPIRE', names, ${storedMsMax})
    call('ZADD', base .. 'x', a.expires, name)
    a.listed = a.expires
  end
  accounts[name], changed[name] = a, a
end

-- Spends in the window of a reservation, or corrects that.

local function spend(a, id, amount)
  if a.kind == 2 then return end
  if id == a.id then
    a.spent = math.min(math.max(a.spent + amount, 0), ${amountMax})
  elseif a.kind == 0 and id == a.w then
    a.z = math.min(math.max(a.z + amount, 0), ${amountMax})
  end
end

local function lose(a, id, amount)
  if id == a.id then a.lost = math.min(math.max(a.lost + amount, 0), ${amountMax}) end
end

local function release(a, id, held)
  if id == a.id then a.reserved = math.max(0, a.reserved - held) end
end
`);

/** Writes the changed accounts. */
export const writeText = withLists(`
local written, writtenCount = {}, 0
for name, a in pairs(changed) do
  written[writtenCount + 1], written[writtenCount + 2] = name,
    pack('${accountFormat}', unpack(a, 1, 10))
  writtenCount = writtenCount + 2
  if a.isMoved and a.listed ~= a.expires then call('ZADD', base .. 'x', a.expires, name) end
end
if writtenCount > 0 then call('HSET', base .. 'a', unpack(written)) end
`);

/** Removes expired accounts. */
export const purgeText = `
local function purge()
  local old = call('ZRANGEBYSCORE', base .. 'x', '-inf', nowMs, 'LIMIT', 0, ${expiredMax})
  if #old == 0 then return end
  for _, name in ipairs(old) do
    if not accounts[name] then
      call('ZREM', base .. 'n:' .. string.match(name, '^[^/]*'), name)
      call('ZREM', base .. 'x', name)
      call('HDEL', base .. 'a', name)
    end
  end
end
`;

/** Number of bits in one key. */
export const marksPerKey = 65_536;

/** Handles reservations of holders, including those of lost holders. */
export const recordsText = withLists(`
local function parse(value)
  return { unpackStruct('<dB' .. string.rep('sddB', string.byte(value, 9)), value) }
end

-- Numbers whose costs are charged, or will be by their record: one without a record is charged
-- where it is not among them.

local function marksOf(holder, number)
  local offset = number % ${marksPerKey}
  return base .. 'b:' .. holder .. string.format(':%.0f', number - offset), offset
end

local function mark(holder, number)
  local key, offset = marksOf(holder, number)
  call('BITFIELD', key, 'SET', 'u1', offset, 1)
  call('PEXPIRE', key, ${2 * lateSettlementMsMax})
end

local function isMarked(holder, number)
  local key, offset = marksOf(holder, number)
  return call('BITFIELD', key, 'GET', 'u1', offset)[1] == 1
end

local function keepLate(holder, number, value)
  local key = base .. 'l:' .. holder
  if call('HLEN', key) >= ${lateRecordsMax} then
    local flat = call('HRANDFIELD', key, ${expiredMax}, 'WITHVALUES')
    for i = 1, #flat, 2 do
      if unpackStruct('<d', flat[i + 1]) <= nowMs then call('HDEL', key, flat[i]) end
    end
    if call('HLEN', key) >= ${lateRecordsMax} then return end
  end
  call('HSET', key, number, value)
  call('PEXPIRE', key, ${2 * lateSettlementMsMax})
end

local function expireOne(holder, number, value)
  local record = parse(value)
  for i = 3, 4 * record[2] + 2, 4 do
    local a = load(record[i])
    if a then
      if a.kind == 1 then drain(a) end
      local window, held = record[i + 1], record[i + 2]
      release(a, window, held)
      if record[i + 3] % 2 == 1 then spend(a, window, held) else lose(a, window, held) end
      keep(a)
    end
  end
  mark(holder, tonumber(number))
  keepLate(holder, number, pack('<d', nowMs + ${lateSettlementMsMax}) .. string.sub(value, 9))
end

-- Expires some reservations of holders whose leases are over.

local function expire()
  local dead = call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs, 'LIMIT', 0, ${expiredMax})
  local count = 0
  for _, holder in ipairs(dead) do
    local key = base .. 'o:' .. holder
    local flat = call('HRANDFIELD', key, ${expiredMax + 1} - count, 'WITHVALUES')
    for i = 1, #flat, 2 do
      if flat[i] ~= '#' and count < ${expiredMax} then
        call('HDEL', key, flat[i])
        expireOne(holder, flat[i], flat[i + 1])
        count = count + 1
      end
    end
    if call('HLEN', key) <= 1 then call('ZREM', KEYS[1], holder) end
    if count >= ${expiredMax} then break end
  end
  return count
end
`);
