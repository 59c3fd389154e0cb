import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { ScriptReply, StoreConnection } from "../../store/connection.js";
import { type FleetCall, replyBytes, runFleetScript } from "../records/fleet-script.js";
import {
  fetchScript,
  gatherScript,
  publishScript,
  tellScript,
  withdrawScript,
} from "./snapshot-script.js";
import { parseRank, type SnapshotVersion } from "./snapshot-version.js";

/** What a `SnapshotStore` is made of. */
export interface SnapshotStoreOptions {
  /** One that may carry megabytes, and may repeat a call. */
  readonly connection: StoreConnection;
  readonly clock: Clock;
  /** This replica: lower-case hexadecimal. */
  readonly id: string;
  readonly keyPrefix: string;
}

/** One replica's report, as the leader finds it. */
export interface FoundReport {
  readonly replicaId: string;
  /** Grows with each report of a replica. */
  readonly number: number;
  /** When it was made, on the clock of who reads it. */
  readonly atMs: number;
  readonly bytes: Buffer;
}

/** A snapshot as the store has it. */
export interface FoundSnapshot {
  readonly rank: SnapshotVersion;
  /** When it was written, on the clock of who reads it. */
  readonly atMs: number;
  readonly bytes: Buffer;
}

/**
 * How long a snapshot is kept that nobody renews, in milliseconds: a day. It holds for seconds, but
 * who leads after an outage, or after all have stopped, begins with its limits.
 */
const snapshotKeptMs = 86_400_000;

/** How long a report counts whose replica says nothing more, in milliseconds. */
export const reportKeptMs = 3_000;

/** The most bytes of reports that a leader reads at a time. */
export const gatherBytesMax = 16_777_216;

/** The most replicas whose reports a leader takes. */
export const gatheredMax = 1_000;

/** Reports and snapshots in the store: bytes, and what the store itself has to know of them. */
export class SnapshotStore {
  readonly #options: SnapshotStoreOptions;

  constructor(options: SnapshotStoreOptions) {
    this.#options = options;
  }

  /** Puts this replica's report there, in the place of the one before. */
  async tell(number: number, bytes: Buffer): Promise<void> {
    const { id } = this.#options;
    // The others' are in the same hash: it goes when all of them have been silent.
    const args = [id, String(number), String(reportKeptMs), bytes];
    await this.#run({ script: tellScript, keys: ["reports"], args });
  }

  /** All reports that count, the own one included. */
  async gather(): Promise<readonly FoundReport[]> {
    const sentMs = this.#options.clock.monotonicMs();
    const args = [String(reportKeptMs), String(gatherBytesMax)];
    const reply = await this.#run({ script: gatherScript, keys: ["reports"], args });
    if (reply === undefined) return [];
    return parseReports(replyBytes(reply), sentMs);
  }

  /** The newest snapshot there is. */
  async fetch(): Promise<FoundSnapshot | undefined> {
    const sentMs = this.#options.clock.monotonicMs();
    const reply = await this.#run({ script: fetchScript, keys: ["snapshot"], args: [] });
    return reply === undefined ? undefined : parseSnapshot(replyBytes(reply), sentMs);
  }

  /**
   * Puts a snapshot in the place of the one before. False where the store knows another leader, or
   * a newer snapshot.
   *
   * @param untilMs end of the term: nothing is sent after it
   */
  async publish(rank: SnapshotVersion, bytes: Buffer, untilMs: number): Promise<boolean> {
    const { term, leaderId, version } = rank;
    const numbers = [String(version), String(snapshotKeptMs)];
    const args = [String(term), leaderId, ...numbers, bytes];
    const keys = ["lease", "snapshot", "rank"];
    return (await this.#run({ script: publishScript, keys, args, untilMs })) === 1;
  }

  /** This replica goes: its report counts no more. */
  async withdraw(): Promise<void> {
    await this.#run({ script: withdrawScript, keys: ["reports"], args: [this.#options.id] });
  }

  #run(call: FleetCall): Promise<ScriptReply> {
    return runFleetScript(this.#options, call);
  }
}

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
