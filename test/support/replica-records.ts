import type { NodeReport, ShareSnapshot } from "../../src/core/feedback/feedback.js";
import type { FleetLoop } from "../../src/core/feedback/feedback-loop.js";
import { LeaderTerm } from "../../src/fleet/loop/leader-term.js";
import { baseNumberOf, type ReadReport, readReport } from "../../src/fleet/loop/report-reader.js";
import { ReportWriter } from "../../src/fleet/loop/report-writer.js";
import { reportKeptMs } from "../../src/store/coordination/loop-store.js";
import { allTurns } from "./all-turns.js";

/** What becomes of a call that writes a record; `unknown`: it is written, and nobody answers. */
export type RecordFate = "written" | "lost" | "unknown";

interface KeptRecord {
  readonly number: number;
  readonly atMs: number;
  readonly bytes: Buffer;
  readonly base: { readonly number: number; readonly bytes: Buffer };
}

/**
 * One replica's records, written as differences, and the store that has the newest of them and the
 * full one that it differs from: as `SharedLoop` and `LoopStore` do, at once.
 */
export class ReplicaRecords {
  readonly #writer = new ReportWriter();
  #number = 0;
  #kept: KeptRecord | undefined;
  fullCount = 0;

  /** Writes what a replica's Envoys do, one report for an Envoy and service. */
  write(nodes: readonly NodeReport[], nowMs: number, fate: RecordFate = "written"): void {
    if (this.#tell(nodes, nowMs, fate)) return;
    this.#writer.forget();
    this.#tell(nodes, nowMs, fate);
  }

  /** The store loses all that it has. */
  lose(): void {
    this.#kept = undefined;
  }

  /** What the store has; undefined: nothing that still counts. */
  find(nowMs: number): KeptRecord | undefined {
    return nowMs - (this.#kept?.atMs ?? nowMs) < reportKeptMs ? this.#kept : undefined;
  }

  /** @returns false where the store has not what the record differs from */
  #tell(nodes: readonly NodeReport[], nowMs: number, fate: RecordFate): boolean {
    this.#number += 1;
    const number = this.#number;
    const terms = { number, now: () => nowMs };
    const { bytes, baseNumber } = allTurns(this.#writer.encode({ nodes, services: [] }, terms));
    if (fate === "lost") return true;
    const base = baseNumber === undefined ? { number, bytes } : this.#kept?.base;
    if (base === undefined || base.number !== (baseNumber ?? number)) return false;
    if (baseNumber === undefined) this.fullCount += 1;
    this.#kept = { number, atMs: nowMs, bytes, base };
    if (fate === "written") this.#writer.confirm();
    return true;
  }
}

/** What one leader has read of the records of all replicas: a new one has read nothing. */
export class RecordReader {
  readonly #known = new Map<ReplicaRecords, { number: number; base: KnownBase | undefined }>();

  /** What a replica has written since the last time; undefined: nothing. */
  read(records: ReplicaRecords, nowMs: number): ReadReport | undefined {
    const found = records.find(nowMs);
    const known = this.#known.get(records);
    if (found === undefined || found.number <= (known?.number ?? 0)) return undefined;
    const { number, bytes, atMs } = found;
    const isFull = baseNumberOf(bytes) === 0;
    const base = isFull ? undefined : this.#baseOf(found, known?.base);
    const report = allTurns(readReport({ bytes, atMs }, base?.report));
    if (report === undefined) throw new Error("a record that cannot be read");
    this.#known.set(records, { number, base: isFull ? { number, report } : base });
    return report;
  }

  #baseOf({ base }: KeptRecord, known: KnownBase | undefined): KnownBase {
    if (known?.number === base.number) return known;
    const report = allTurns(readReport({ bytes: base.bytes, atMs: 0 }, undefined));
    if (report === undefined) throw new Error("a full record that cannot be read");
    return { number: base.number, report };
  }
}

interface KnownBase {
  readonly number: number;
  readonly report: ReadReport;
}

/** A leader that decides by the records of all replicas. */
export class RecordLeader {
  readonly loop: FleetLoop;
  readonly #term: LeaderTerm;
  readonly #reader = new RecordReader();

  constructor(loop: FleetLoop, nowMs: number) {
    this.loop = loop;
    const createMaker = (): FleetLoop => loop;
    const start = { term: 1, leaderId: "leader", nowMs, last: undefined };
    this.#term = new LeaderTerm({ ...start, createMaker, gateSettings: () => new Map() });
  }

  /** What it makes of all that was written since the last time. */
  decide(all: readonly ReplicaRecords[], nowMs: number): ShareSnapshot {
    for (const [i, records] of all.entries()) {
      const read = this.#reader.read(records, nowMs);
      if (read !== undefined) allTurns(this.#term.take(read, `replica-${i}`, nowMs));
    }
    return allTurns(this.#term.decide([], nowMs)).snapshot;
  }
}
