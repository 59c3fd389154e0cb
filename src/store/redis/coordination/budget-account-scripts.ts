import { callKeptMs } from "../../../core/budgets/account-law.js";
import {
  expiredMax,
  leaseMsMax,
  pageRowsMax,
  refundKeptMs,
} from "../../coordination/budget-store.js";
import type { StoreScript } from "../scripts/connection.js";
import {
  accountLawText,
  purgeText,
  recordsText,
  startText,
  storedMsMax,
  withLists,
  writeText,
} from "./budget-texts.js";

/**
 * Renews or ends a lease. KEYS: holders. ARGV: the holder, and its lease in ms, 0 to end it.
 * Returns how many reservations have expired.
 */
export const renewScript: StoreScript = {
  name: "budget-renew",
  text: `
${startText}${accountLawText}${purgeText}${recordsText}
local me, leaseMs = ARGV[1], tonumber(ARGV[2])
if leaseMs > 0 then
  -- What a clock that stepped back has left.
  local far = call('ZRANGEBYSCORE', KEYS[1], '(' .. nowMs + ${leaseMsMax}, '+inf', 'LIMIT', 0,
    ${expiredMax})
  for _, holder in ipairs(far) do call('ZADD', KEYS[1], nowMs + ${leaseMsMax}, holder) end
  call('ZADD', KEYS[1], nowMs + leaseMs, me)
  call('PEXPIRE', base .. 'o:' .. me, ${callKeptMs})
  call('PEXPIRE', KEYS[1], ${callKeptMs})
  call('PEXPIRE', base .. 'a', ${storedMsMax})
  call('PEXPIRE', base .. 'x', ${storedMsMax})
else
  call('ZADD', KEYS[1], 0, me)
end
local count = expire()
${writeText}
purge()
return count
`,
};

/** Adds a row of a list. */
const rowText = withLists(`
local rows = {}
local function addRow(name, value, kind, p, q, r)
  local a = decode(name, value)
  if not a then return false end
  a = stateOf(a, kind, p, q, r)
  local before = a.kind == 0 and a.z or 0
  rows[#rows + 1] = pack('<dddd', a.spent, a.reserved, before, a.lost)
  return true
end
`);

/** KEYS: holders. ARGV: laws, and their accounts. Returns for each a byte 1 and its row, or 0. */
export const readAccountsScript: StoreScript = {
  name: "budget-read",
  text: `
${startText}${accountLawText}${rowText}
local at, i, kind, p, q, r = 1, 1
while at <= #ARGV[1] do
  kind, p, q, r, at = unpackStruct('<Bddd', ARGV[1], at)
  local name = ARGV[i + 1]
  rows[#rows + 1] = '\\1'
  if not addRow(name, call('HGET', base .. 'a', name), kind, p, q, r) then rows[#rows] = '\\0' end
  i = i + 1
end
return table.concat(rows)
`,
};

/**
 * KEYS: holders. ARGV: the budget, its law, and the name after which the page begins. Returns for
 * each account the length of its name (uint16), the name, and a byte 1 and its row, or 0.
 */
export const listScript: StoreScript = {
  name: "budget-list",
  text: `
${startText}${accountLawText}${rowText}
local kind, p, q, r = unpackStruct('<Bddd', ARGV[2])
local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local names = call('ZRANGE', base .. 'n:' .. ARGV[1], from, '+', 'BYLEX', 'LIMIT', 0,
  ${pageRowsMax})
if #names == 0 then return '' end
local values = call('HMGET', base .. 'a', unpack(names))
for i, name in ipairs(names) do
  rows[#rows + 1] = pack('<I2c0B', #name, name, 1)
  if not addRow(name, values[i], kind, p, q, r) then
    rows[#rows] = pack('<I2c0B', #name, name, 0)
  end
end
return table.concat(rows)
`,
};

/**
 * KEYS: holders, and the refund. ARGV: the law, the amount, and the account. Returns the amount
 * refunded, as text.
 */
export const refundScript: StoreScript = {
  name: "budget-refund",
  text: withLists(`
${startText}${accountLawText}
local known = call('MGET', KEYS[2])[1]
if known then return known end
local a, amount = load(ARGV[3]), 0
if a then
  a = stateOf(a, unpackStruct('<Bddd', ARGV[1]))
  amount = math.min(a.spent, tonumber(ARGV[2]))
  spend(a, a.id, -amount)
  keep(a)
end
${writeText}
local text = string.format('%.0f', amount)
call('SET', KEYS[2], text, 'PX', ${refundKeptMs})
return text
`),
};
