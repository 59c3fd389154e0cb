import { ServiceError } from "../../../core/base/errors.js";
import {
  type FoundReport,
  type FoundSnapshot,
  gatherBytesMax,
  gatheredMax,
  type LeaseAnswer,
  type LeaseBeat,
  type LoopStore,
  type ReportRecord,
  reportKeptMs,
  snapshotKeptMs,
} from "../../coordination/loop-store.js";
import { parseRank, type SnapshotVersion } from "../../coordination/snapshot-version.js";
import type { ScriptReply } from "../scripts/connection.js";
import { type FleetCall, type FleetStore, replyBytes, runFleetScript } from "./fleet-script.js";
import { leaseScript, resignScript } from "./leader-script.js";
import {
  fetchScript,
  gatherScript,
  publishScript,
  tellScript,
  withdrawScript,
} from "./snapshot-script.js";

/** Names of keys are part of the wire format: replicas of other versions use the same ones. */
const leaseKey = "lease";
const termKey = "epoch";
const rankKey = "rank";
const snapshotKey = "sheet";

/** Who leads, and reports and snapshots, which are megabytes and never hold up heartbeats. */
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

  async tell({ replicaId, number, bytes }: ReportRecord): Promise<void> {
    // The others' are in the same hash: it goes when all of them have been silent.
    const args = [replicaId, String(number), String(reportKeptMs), bytes];
    await this.#run({ script: tellScript, keys: ["reports"], args });
  }

  async gather(): Promise<readonly FoundReport[]> {
    const sentMs = this.#bulk.clock.monotonicMs();
    const args = [String(reportKeptMs), String(gatherBytesMax)];
    const reply = await this.#run({ script: gatherScript, keys: ["reports"], args });
    if (reply === undefined) return [];
    return parseReports(replyBytes(reply), sentMs);
  }

  async withdraw(replicaId: string): Promise<void> {
    await this.#run({ script: withdrawScript, keys: ["reports"], args: [replicaId] });
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

const newline = 10;

/** The first line of a reply, and where what is behind it begins. */
function readLine(bytes: Buffer, at: number): { readonly line: string; readonly next: number } {
  const end = bytes.indexOf(newline, at);
  if (end < 0 || end - at > lineBytesMax) throw new ServiceError("STORE_PROTOCOL");
  return { line: bytes.toString("latin1", at, end), next: end + 1 };
}

const lineBytesMax = 200;

const reportLine = /^([0-9a-f]{1,64}) (\d{1,15}) (\d{1,15}) (\d{1,15})$/;

function parseReports(reply: Buffer, sentMs: number): readonly FoundReport[] {
  const reports: FoundReport[] = [];
  let at = 0;
  while (at < reply.length) {
    const { line, next } = readLine(reply, at);
    const [, replicaId, number, ageMs, length] = reportLine.exec(line) ?? [];
    at = next + Number(length);
    // What is missing is not a number, which is not larger than anything either.
    const isSound = replicaId !== undefined && at <= reply.length && reports.length < gatheredMax;
    if (!isSound) throw new ServiceError("STORE_PROTOCOL");
    const bytes = reply.subarray(next, at);
    reports.push({ replicaId, number: Number(number), atMs: sentMs - Number(ageMs), bytes });
  }
  return reports;
}

const snapshotLine = /^(\d{1,15}) (.*)$/;

function parseSnapshot(reply: Buffer, sentMs: number): FoundSnapshot {
  const { line, next } = readLine(reply, 0);
  const [, ageMs = "", rankPart = ""] = snapshotLine.exec(line) ?? [];
  const rank = parseRank(rankPart);
  if (rank === undefined) throw new ServiceError("STORE_PROTOCOL");
  return { rank, atMs: sentMs - Number(ageMs), bytes: reply.subarray(next) };
}
