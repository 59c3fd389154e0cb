import { termKeptMs } from "../../coordination/loop-store.js";
import type { StoreScript } from "../scripts/connection.js";

/**
 * One heartbeat of one replica: renews its lease, or takes the lease that nobody has.
 *
 * KEYS: the lease (who leads: term, name, and the number of the heartbeat by which it was last
 * renewed), the last term, the rank of the newest snapshot. All carry one hash tag. ARGV: this
 * replica, the number of this heartbeat, its term or 0, the lease in ms, and of the
 * highest rank that it has seen the term and the name. Answers its term, 0 when it
 * does not lead, and behind it the rank of the newest snapshot, if there is one.
 *
 * - A term is given once: it grows with each term. A store that has lost what it was told (a
 *   primary that died before its replica had it) hears from all replicas which term they have
 *   seen, and goes on above it.
 * - A lease whose term and name are below what somebody has seen is ended: nobody would take the
 *   snapshots of that leader.
 * - A replica that takes its own lease once more has let it lapse: that begins another term.
 * - The same heartbeat twice is one, since a call may be repeated; one that arrives after a later
 *   one of the same replica changes nothing.
 */
export const leaseScript: StoreScript = {
  name: "fleet-lease",
  text: `
local me, beat, leaderTerm, leaseMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local seenTerm, seenName = tonumber(ARGV[5]), ARGV[6]
local stored = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local rank = stored[3] or ''
local last = tonumber(stored[2] or '') or 0
if last < seenTerm then last = seenTerm end

local term, name, renewed
if stored[1] then term, name, renewed = string.match(stored[1], '^(%d+) (%x+) (%d+)$') end
term, renewed = tonumber(term), tonumber(renewed)
if term and (term < seenTerm or (term == seenTerm and name < seenName)) then term = nil end
if term and term > last then last = term end

local function answer(mine) return string.format('%.0f', mine) .. ' ' .. rank end

if term and name ~= me then return answer(0) end
if term and renewed > beat then return answer(0) end
local isSame = term and (term == leaderTerm or renewed == beat)
if not isSame then term = last + 1 end
local termText = string.format('%.0f', term)
redis.call('SET', KEYS[1], termText .. ' ' .. me .. ' ' .. ARGV[2], 'PX', leaseMs)
redis.call('SET', KEYS[2], termText, 'PX', ${termKeptMs})
return answer(term)
`,
};

/** KEYS: the lease. ARGV: the replica that goes. If it leads, nobody does from now on. */
export const resignScript: StoreScript = {
  name: "fleet-resign",
  text: `
local stored = redis.call('MGET', KEYS[1])[1]
if stored and string.match(stored, '^%d+ (%x+) %d+$') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`,
};
