import { ServiceError } from "../../../core/base/errors.js";
import {
  baseNumberAtByte,
  type FoundReport,
  type FoundSnapshot,
  gatherBytesMax,
  gatheredMax,
  type KnownReport,
  type LeaseAnswer,
  type LeaseBeat,
  type LoopStore,
  type ReportRecord,
  reportKeptMs,
  snapshotKeptMs,
  termKeptMs,
} from "../../coordination/loop-store.js";
import { parseRank, type SnapshotVersion } from "../../coordination/snapshot-version.js";
import type { ScriptReply, StoreScript } from "../scripts/connection.js";
import { type FleetCall, type FleetStore, replyBytes, runFleetScript } from "./fleet-script.js";
import { PageReader } from "./page-reader.js";

/** Key names are part of the wire format, since replicas of other versions use the same ones. */
const leaseKey = "lease";
const termKey = "epoch";
const rankKey = "rank";
const snapshotKey = "sheet";

/** The newest report of each replica, and the full reports that they are deltas of. */
const reportKeys = ["reports", "full-reports"];

/** The loop in Redis. Reports and snapshots take megabytes but never delay heartbeats. */
export class RedisLoop implements LoopStore {
  readonly #heartbeats: FleetStore;
  readonly #bulk: FleetStore;

  constructor(parts: { readonly heartbeats: FleetStore; readonly bulk: FleetStore }) {
    this.#heartbeats = parts.heartbeats;
    this.#bulk = parts.bulk;
  }

  async beat(beat: LeaseBeat, deadlineMs: number): Promise<LeaseAnswer> {
    const { replicaId, number, term, leaseMs, seen } = beat;
    const reply = await runFleetScript(this.#heartbeats, {
      script: leaseScript,
      keys: [leaseKey, termKey, rankKey],
      args: [replicaId, ...[number, term, leaseMs, seen.term].map(String), seen.leaderId],
      untilMs: deadlineMs,
    });
    return parseAnswer(reply);
  }

  async resign(replicaId: string, deadlineMs: number): Promise<void> {
    const call = { script: resignScript, keys: [leaseKey], args: [replicaId], untilMs: deadlineMs };
    await runFleetScript(this.#heartbeats, call);
  }

  async tell({ replicaId, number, baseNumber = 0, bytes }: ReportRecord): Promise<boolean> {
    // Reports of all replicas are in the same hashes, which expire once all of them are silent.
    const args = [replicaId, String(number), String(reportKeptMs), bytes, String(baseNumber)];
    return (await this.#run({ script: tellScript, keys: reportKeys, args })) === 1;
  }

  async gather(known: ReadonlyMap<string, KnownReport>): Promise<readonly FoundReport[]> {
    const sentMs = this.#bulk.clock.monotonicMs();
    const lines = [...known].map(
      ([id, { number, baseNumber }]) => `${id} ${number} ${baseNumber}\n`,
    );
    const args = [String(reportKeptMs), String(gatherBytesMax), lines.join("")];
    const reply = await this.#run({ script: gatherScript, keys: reportKeys, args });
    if (reply === undefined) return [];
    return parseReports(replyBytes(reply), sentMs);
  }

  async withdraw(replicaId: string): Promise<void> {
    await this.#run({ script: withdrawScript, keys: reportKeys, args: [replicaId] });
  }

  async fetch(): Promise<FoundSnapshot | undefined> {
    const sentMs = this.#bulk.clock.monotonicMs();
    const reply = await this.#run({ script: fetchScript, keys: [snapshotKey], args: [] });
    return reply === undefined ? undefined : parseSnapshot(replyBytes(reply), sentMs);
  }

  async publish(rank: SnapshotVersion, bytes: Buffer, untilMs: number): Promise<boolean> {
    const { term, leaderId, version } = rank;
    const args = [String(term), leaderId, String(version), String(snapshotKeptMs), bytes];
    const keys = [leaseKey, snapshotKey, rankKey];
    return (await this.#run({ script: publishScript, keys, args, untilMs })) === 1;
  }

  #run(call: FleetCall): Promise<ScriptReply> {
    return runFleetScript(this.#bulk, call);
  }
}

function parseAnswer(reply: ScriptReply): LeaseAnswer {
  const text = Buffer.isBuffer(reply) ? reply.toString("latin1") : "";
  const [, term, rank = ""] = answerPattern.exec(text) ?? [];
  const newest = parseRank(rank);
  if (term === undefined || (newest === undefined && rank !== "")) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  return { term: Number(term), newest };
}

const answerPattern = /^(\d{1,15}) (.*)$/;

/** Replica, number, age and length of the report, and the number and length of its base. */
const reportLine = /^([0-9a-f]{1,64}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15})$/;

function parseReports(reply: Buffer, sentMs: number): readonly FoundReport[] {
  const page = new PageReader(reply);
  const reports: FoundReport[] = [];
  while (!page.isAtEnd) {
    const [replicaId = "", ...numbers] = page.line(reportLine);
    const [number = 0, ageMs = 0, length = 0, baseNumber = 0, baseLength = 0] = numbers.map(Number);
    const bytes = page.bytes(length);
    const baseBytes = page.bytes(baseLength);
    if (reports.length >= gatheredMax) throw new ServiceError("STORE_PROTOCOL");
    const base = baseLength === 0 ? undefined : { number: baseNumber, bytes: baseBytes };
    reports.push({ replicaId, number, atMs: sentMs - ageMs, bytes, base });
  }
  return reports;
}

function parseSnapshot(reply: Buffer, sentMs: number): FoundSnapshot {
  const page = new PageReader(reply);
  const [ageMs, rankPart = ""] = page.line(/^(\d{1,15}) (.*)$/);
  const rank = parseRank(rankPart);
  if (rank === undefined) throw new ServiceError("STORE_PROTOCOL");
  return { rank, atMs: sentMs - Number(ageMs), bytes: page.rest() };
}

/**
 * One heartbeat of a replica: renews its lease, or takes the lease if it is free.
 *
 * KEYS: the lease (term and id of the leader, and the number of the heartbeat that last renewed
 * it), the last term, the rank of the newest snapshot. All have the same hash tag. ARGV: this
 * replica, the number of this heartbeat, its term or 0, the lease in ms, and the term and leader id
 * of the highest rank that it has seen. Returns its term, or 0 if it does not lead, followed by the
 * rank of the newest snapshot, if there is one.
 *
 * - Each term is given once, and terms increase. If the store has lost data (a primary died before
 *   replicating it), replicas report the term that they have seen, and terms continue above it.
 * - A lease is ended if its term and leader id are below what a replica has seen, since replicas
 *   would reject the snapshots of that leader.
 * - A replica that takes its own expired lease again begins another term.
 * - A repeated heartbeat counts once, since a call may be repeated. A heartbeat that arrives after
 *   a later one of the same replica changes nothing.
 */
const leaseScript: StoreScript = {
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

/** KEYS: the lease. ARGV: a replica, which gives up the lead if it has it. */
const resignScript: StoreScript = {
  name: "fleet-resign",
  text: `
local stored = redis.call('MGET', KEYS[1])[1]
if stored and string.match(stored, '^%d+ (%x+) %d+$') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`,
};

/**
 * Stores a replica's report for the leader. KEYS: the newest reports, a hash by replica, and the
 * full reports, a hash of their numbers and bytes. ARGV: this replica, a number that increases with
 * each of its reports, how long reports are kept in ms, the report, and the number of the full
 * report that it is a delta of, or 0. Returns 1, or writes nothing and returns 0 if that full
 * report is missing.
 *
 * For a full report, the newest reports contain only its head, so that it is stored once. A late
 * report may replace a later one, which the leader detects by the number. A late full report also
 * invalidates deltas of the later full one; the next such delta returns 0.
 */
const tellScript: StoreScript = {
  name: "fleet-tell",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local head = string.format('%.0f', nowMs) .. ' ' .. ARGV[2] .. '\\n'
if ARGV[5] == '0' then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2], ARGV[1] .. ' full', ARGV[4])
  redis.call('HSET', KEYS[1], ARGV[1], head .. string.sub(ARGV[4], 1, ${baseNumberAtByte + 4}))
else
  if redis.call('HMGET', KEYS[2], ARGV[1])[1] ~= ARGV[5] then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], head .. ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
`,
};

/**
 * Returns all reports that are not too old, for the leader. KEYS: as above. ARGV: how long reports
 * are kept in ms, the maximum number of bytes to return, and a line for each replica known to the
 * leader: its id, the number of its newest report, and that of its full report. Returns for each
 * replica a line with its id, the number of the report, its age in ms, its length in bytes, and the
 * number and the length of the full report that it is a delta of; then both. A report for which
 * there is no room, or that the leader has, is returned without bytes; so is a full report that the
 * leader has, or that is lost. Reports that are too old are removed. A time in the future, the
 * result of a clock that stepped back, becomes the current time.
 */
const gatherScript: StoreScript = {
  name: "fleet-gather",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local keptMs, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local known, bases = {}, {}
for id, number, base in string.gmatch(ARGV[3], '(%x+) (%d+) (%d+)\\n') do
  known[id], bases[id] = tonumber(number), tonumber(base)
end
local flat, parts = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #flat, 2 do
  local id, value = flat[i], flat[i + 1]
  local at, number, last = string.match(value, '^(%d+) (%d+)()\\n')
  local ageMs = at and nowMs - tonumber(at)
  if not ageMs or ageMs >= keptMs then
    redis.call('HDEL', KEYS[1], id)
    redis.call('HDEL', KEYS[2], id, id .. ' full')
  else
    if ageMs < 0 then
      local now = string.format('%.0f', nowMs)
      redis.call('HSET', KEYS[1], id, now .. string.sub(value, #at + 1))
      ageMs = 0
    end
    local bytes, full, base = '', '', 0
    if tonumber(number) > (known[id] or 0) then
      bytes = string.sub(value, last + 1)
      local a, b, c, d = string.byte(bytes, ${baseNumberAtByte + 1}, ${baseNumberAtByte + 4})
      base = d and a + 256 * b + 65536 * c + 16777216 * d or 0
      local isFull = base == 0
      if isFull then base = tonumber(number) end
      if isFull or base ~= bases[id] then
        local kept = redis.call('HMGET', KEYS[2], id, id .. ' full')
        if tonumber(kept[1] or '') == base then full = kept[2] or '' end
      end
      if isFull and full ~= '' then bytes, full = full, '' end
      if #bytes + #full > room then bytes, full = '', '' end
      room = room - #bytes - #full
    end
    local line = '%s %s %.0f %.0f %.0f %.0f\\n'
    parts[#parts + 1] = string.format(line, id, number, ageMs, #bytes, base, #full)
    parts[#parts + 1] = bytes
    parts[#parts + 1] = full
  end
end
return table.concat(parts)
`,
};

/**
 * Replaces the snapshot. KEYS: the lease, the snapshot, its rank. ARGV: the term and the id of the
 * leader, the snapshot's version, how long it is kept in ms, the snapshot. Returns 1, or writes
 * nothing and returns 0 if the replica does not hold the lease, or if its snapshot is older than
 * the stored one. The same snapshot may be published twice, since a call may be repeated.
 */
export const publishScript: StoreScript = {
  name: "fleet-publish",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now = string.format('%.0f', nowMs)
local term, name, version = ARGV[1], ARGV[2], ARGV[3]
local stored = redis.call('MGET', KEYS[1], KEYS[3])
local heldEpoch, holder
if stored[1] then heldEpoch, holder = string.match(stored[1], '^(%d+) (%x+) %d+$') end
if heldEpoch ~= term or holder ~= name then return 0 end
local rank = term .. ' ' .. name .. ' ' .. version
if stored[2] then
  local e, n, v = string.match(stored[2], '^(%d+) (%x+) (%d+)$')
  e, v = tonumber(e), tonumber(v)
  local mine = tonumber(term)
  if e and (e > mine or (e == mine and n > name)) then return 0 end
  if e == mine and n == name and v > tonumber(version) then return 0 end
end
redis.call('SET', KEYS[2], now .. ' ' .. rank .. '\\n' .. ARGV[5], 'PX', ARGV[4])
redis.call('SET', KEYS[3], rank, 'PX', ARGV[4])
return 1
`,
};

/**
 * Returns the newest snapshot. KEYS: the snapshot. Returns a line with its age in ms and its rank,
 * then the snapshot; nothing if there is none.
 */
const fetchScript: StoreScript = {
  name: "fleet-fetch",
  text: `
local value = redis.call('MGET', KEYS[1])[1]
local at, last = string.match(value or '', '^(%d+)() ')
if not at then return false end
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local ageMs = nowMs - tonumber(at)
if ageMs < 0 then ageMs = 0 end
return string.format('%.0f', ageMs) .. string.sub(value, last)
`,
};

/** Removes the reports of a replica. KEYS: the two hashes of reports. ARGV: the replica. */
const withdrawScript: StoreScript = {
  name: "fleet-withdraw",
  text: `
redis.call('HDEL', KEYS[2], ARGV[1], ARGV[1] .. ' full')
return redis.call('HDEL', KEYS[1], ARGV[1])
`,
};
