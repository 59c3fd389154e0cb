import type { StoreScript } from "../../store/connection.js";

/** How long the store remembers the last epoch when nobody leads, in milliseconds: a week. */
const epochKeptMs = 604_800_000;

/**
 * One heartbeat of one replica: renews its lease, or takes the lease that nobody has.
 *
 * KEYS: the lease (who leads: epoch, name, and the number of the heartbeat by which it was last
 * renewed), the last epoch, the rank of the newest sheet. All carry one hash tag. ARGV: this
 * replica, the number of this heartbeat, the epoch of its reign or 0, the lease in ms, and of the
 * highest rank that it has seen the epoch and the name. Answers the epoch of its reign, 0 when it
 * does not lead, and behind it the rank of the newest sheet, if there is one.
 *
 * - An epoch is given once: it grows with each reign. A store that has lost what it was told (a
 *   primary that died before its replica had it) hears from all replicas which epoch they have
 *   seen, and goes on above it.
 * - A lease whose epoch and name are below what somebody has seen is ended: nobody would take the
 *   sheets of that leader.
 * - A replica that takes its own lease once more has let it lapse: that begins another reign.
 * - The same heartbeat twice is one, since a call may be repeated; one that arrives after a later
 *   one of the same replica changes nothing.
 */
export const leaseScript: StoreScript = {
  name: "fleet-lease",
  text: `
local me, beat, reign, leaseMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local seenEpoch, seenName = tonumber(ARGV[5]), ARGV[6]
local stored = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local rank = stored[3] or ''
local last = tonumber(stored[2] or '') or 0
if last < seenEpoch then last = seenEpoch end

local epoch, name, renewed
if stored[1] then epoch, name, renewed = string.match(stored[1], '^(%d+) (%x+) (%d+)$') end
epoch, renewed = tonumber(epoch), tonumber(renewed)
if epoch and (epoch < seenEpoch or (epoch == seenEpoch and name < seenName)) then epoch = nil end
if epoch and epoch > last then last = epoch end

local function answer(mine) return string.format('%.0f', mine) .. ' ' .. rank end

if epoch and name ~= me then return answer(0) end
if epoch and renewed > beat then return answer(0) end
local isSame = epoch and (epoch == reign or renewed == beat)
if not isSame then epoch = last + 1 end
local epochText = string.format('%.0f', epoch)
redis.call('SET', KEYS[1], epochText .. ' ' .. me .. ' ' .. ARGV[2], 'PX', leaseMs)
redis.call('SET', KEYS[2], epochText, 'PX', ${epochKeptMs})
return answer(epoch)
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
