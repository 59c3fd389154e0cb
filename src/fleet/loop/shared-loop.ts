import type { Cancel, Clock } from "../../core/base/clock.js";
import { isServiceError } from "../../core/base/errors.js";
import type { NodeReport, ShareSnapshot } from "../../core/feedback/feedback.js";
import type { FoundReport, KnownReport, LoopStore } from "../../store/coordination/loop-store.js";
import { compareRanks, type SnapshotVersion } from "../../store/coordination/snapshot-version.js";
import { turnBytes } from "./byte-fields.js";
import { Leader, type LeaderEvent } from "./leader.js";
import { LeaderTerm, type LeaderTermParts } from "./leader-term.js";
import type { ServicePressure } from "./report-format.js";
import { baseNumberOf, type ReadReport, readReport } from "./report-reader.js";
import { type ReplicaReport, ReportWriter } from "./report-writer.js";
import { decodeSnapshot, encodeSnapshot, type FleetSnapshot } from "./snapshot-codec.js";
import { type SnapshotEvent, SnapshotHolder, snapshotAgeMsMax } from "./snapshot-holder.js";

interface SharedLoopOptions {
  readonly store: LoopStore;
  readonly clock: Clock;
  /** This replica: lower-case hexadecimal. */
  readonly id: string;
  readonly createMaker: LeaderTermParts["createMaker"];
  /** How hard services are pressed here, now. */
  readonly pressures: () => readonly ServicePressure[];
  /** Of services that have a gate, by name. */
  readonly gateSettings: LeaderTermParts["gateSettings"];
  /** How long a snapshot holds that nobody renews. Default `snapshotAgeMsMax`. */
  readonly ageMsMax?: number;
  /** See `LeaderOptions`. */
  readonly heartbeatMs?: number;
  readonly leaseMs?: number;
  readonly onEvent?: (event: LoopEvent) => void;
  /** Something threw that is no failure of the environment. */
  readonly onBug: (thrown: unknown) => void;
}

/** What happens to the loop, for logs. */
export type LoopEvent = LeaderEvent | SnapshotEvent | UnreadableEvent;

/** Replicas of another version are there, which are left out; it is told once. */
interface UnreadableEvent {
  readonly kind: "fleetUnreadable";
  readonly what: "report" | "snapshot";
}

/** What has gone wrong or was left out since the start. */
export interface LoopCounts {
  /** Snapshots that this replica made, and that hold. */
  readonly published: number;
  /** Snapshots that it made and did not write, or that the store refused: another one leads. */
  readonly refused: number;
  /** Snapshots that came after newer ones. */
  readonly older: number;
  /** Calls of the loop to the store that failed. */
  readonly failed: number;
  /** Reports and snapshots of a program of another version, or of nobody's. */
  readonly unreadable: number;
  /** Rows of reports, whole reports, and services of snapshots, for which there was no room. */
  readonly leftOut: number;
}

/** Time between two snapshots, in milliseconds. */
export const snapshotEveryMs = 1_000;

/** Rows of all replicas that a leader keeps: of 10,000 Envoys with 100 services, 28 MB. */
const fleetRowsMax = 1_048_576;

/** After how long a replica tells of its services whose Envoys say nothing, in milliseconds. */
export const quietReportMs = 1_500;

/**
 * The loop of a fleet: every replica puts what it knows into the store, the leader makes a snapshot
 * of it, and every replica hands that out. Without the store nobody leads, and snapshots grow old.
 */
export class SharedLoop {
  readonly board: SnapshotHolder;
  readonly #options: SharedLoopOptions;
  readonly #leader: Leader;
  readonly #cancels = new Map<"lead" | "tell", Cancel>();
  readonly #underWay = new Map<"lead" | "tell" | "fetch", Promise<void>>();
  #leaderTerm: LeaderTerm | undefined;
  /** By name, while this one leads. */
  readonly #replicas = new Map<string, KnownReplica>();
  readonly #writer = new ReportWriter();
  #waiting: readonly NodeReport[] | undefined;
  #reportNumber = 0;
  #isStopped = false;
  readonly #reportedUnreadable = new Set<UnreadableEvent["what"]>();
  readonly #counts = { published: 0, refused: 0, failed: 0, unreadable: 0, leftOut: 0 };

  /** Takes part at once, until `stop`. */
  constructor(options: SharedLoopOptions) {
    this.#options = options;
    const { store, clock, id, heartbeatMs, leaseMs } = options;
    const { ageMsMax = snapshotAgeMsMax } = options;
    const onEvent = (event: SnapshotEvent): void => options.onEvent?.(event);
    this.board = new SnapshotHolder({ clock, ageMsMax, onEvent });
    this.#leader = new Leader({
      store,
      clock,
      id,
      ...(heartbeatMs === undefined ? {} : { heartbeatMs }),
      ...(leaseMs === undefined ? {} : { leaseMs }),
      seen: () => this.board.seen,
      onBeat: (newest) => this.#noteNewest(newest),
      onEvent: (event) => this.#noteLeader(event),
    });
    this.#schedule("tell", quietReportMs);
  }

  /** Whether this replica leads now. */
  get isLeading(): boolean {
    return this.#leader.term !== undefined;
  }

  get counts(): LoopCounts {
    return { ...this.#counts, older: this.board.olderCount };
  }

  /** The snapshot that holds now; undefined: none, or nobody has renewed it for too long. */
  current(): ShareSnapshot | undefined {
    return this.board.current();
  }

  /** Calls back after every new snapshot, until the answer is called. */
  onSnapshot(listener: () => void): () => void {
    return this.board.onSnapshot(listener);
  }

  /** Takes what this replica's Envoys did since the last time, and tells it at once. */
  report(reports: readonly NodeReport[]): void {
    if (this.#isStopped) return;
    this.#waiting = reports;
    this.#tell();
  }

  /** Leaves, as far as the store can be reached now. Never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    for (const cancel of this.#cancels.values()) cancel();
    await Promise.all([this.#leader.stop(), ...this.#underWay.values()]);
    const { store, id } = this.#options;
    await store.withdraw(id).catch((thrown: unknown) => this.#noteFailure(thrown));
  }

  #schedule(work: "lead" | "tell", delayMs: number): void {
    this.#cancels.get(work)?.();
    if (this.#isStopped) return;
    const begin = work === "lead" ? () => this.#lead() : () => this.#tell();
    this.#cancels.set(work, this.#options.clock.schedule(delayMs, begin));
  }

  /** One of a kind at a time; what it throws never reaches a timer. */
  #begin(work: "lead" | "tell" | "fetch", run: () => Promise<void>): void {
    if (this.#isStopped || this.#underWay.has(work)) return;
    const done = run()
      .catch((thrown: unknown) => this.#noteFailure(thrown))
      .finally(() => {
        this.#underWay.delete(work);
        if (work === "tell" && this.#waiting !== undefined) this.#tell();
      });
    this.#underWay.set(work, done);
  }

  #noteFailure(thrown: unknown): void {
    if (isServiceError(thrown)) this.#counts.failed += 1;
    else this.#options.onBug(thrown);
  }

  #tell(): void {
    this.#schedule("tell", quietReportMs);
    this.#begin("tell", async () => {
      const nodes = this.#waiting ?? [];
      this.#waiting = undefined;
      const report = { nodes, services: this.#options.pressures() };
      if (await this.#write(report)) return;
      // The store has lost what the report differs from: it says all then.
      this.#writer.forget();
      // While a newer one waits, those of this one may be filled in anew (`rpc/nodes/open-report`).
      if (this.#waiting === undefined) await this.#write(report);
    });
  }

  async #write(report: ReplicaReport): Promise<boolean> {
    this.#reportNumber += 1;
    const number = this.#reportNumber;
    const { store, id: replicaId, clock } = this.#options;
    const turns = this.#writer.encode(report, { number, now: () => clock.monotonicMs() });
    const { bytes, baseNumber, leftOutCount } = await this.#inTurns(turns);
    const isWritten = await store.tell({ replicaId, number, baseNumber, bytes });
    if (!isWritten) return false;
    this.#writer.confirm();
    this.#counts.leftOut += leftOutCount;
    return true;
  }

  #noteNewest(newest: SnapshotVersion | undefined): void {
    if (newest === undefined || compareRanks(newest, this.board.seen) <= 0) return;
    this.#begin("fetch", () => this.#fetch(newest));
  }

  async #fetch(known?: SnapshotVersion): Promise<void> {
    try {
      const found = await this.#options.store.fetch();
      if (found === undefined) return;
      const fleet = await this.#inTurns(decodeSnapshot(found.bytes, found.rank));
      if (fleet !== undefined) {
        this.board.take(fleet, found.atMs);
      } else {
        this.#noteUnreadable("snapshot");
        this.board.noteSeen(found.rank);
      }
    } finally {
      // There is one: who cannot have it knows at least that what it has is older.
      if (known !== undefined) this.board.noteSeen(known);
    }
  }

  #noteLeader(event: LeaderEvent): void {
    this.#options.onEvent?.(event);
    if (event.kind === "leadingBegan") this.#schedule("lead", 0);
    if (event.kind === "leadingEnded") this.#cancels.get("lead")?.();
  }

  #lead(): void {
    const { term } = this.#leader;
    if (term === undefined) return;
    this.#schedule("lead", snapshotEveryMs);
    this.#begin("lead", async () => {
      if (this.#leaderTerm?.term !== term) this.#leaderTerm = await this.#beginTerm(term);
      const leaderTerm = this.#leaderTerm;
      await this.#gather(leaderTerm);
      const pressures = [...this.#replicas.values()].flatMap(({ services }) => services);
      const nowMs = this.#options.clock.monotonicMs();
      await this.#publish(await this.#inTurns(leaderTerm.decide(pressures, nowMs)));
    });
  }

  async #beginTerm(term: number): Promise<LeaderTerm> {
    await this.#fetch();
    this.#replicas.clear();
    const { id: leaderId, clock, createMaker, gateSettings } = this.#options;
    const last = this.board.lastKnown();
    const nowMs = clock.monotonicMs();
    return new LeaderTerm({ term, leaderId, nowMs, createMaker, gateSettings, last });
  }

  async #gather(leaderTerm: LeaderTerm): Promise<void> {
    const known = new Map<string, KnownReport>();
    for (const [id, { number, base }] of this.#replicas) {
      known.set(id, { number, baseNumber: base?.number ?? 0 });
    }
    const found = await this.#options.store.gather(known);
    const live = new Set(found.map(({ replicaId }) => replicaId));
    for (const id of this.#replicas.keys()) if (!live.has(id)) this.#replicas.delete(id);
    await this.#inTurns(this.#takeAll(found, leaderTerm));
  }

  /** One after the other, so that what was read of one is gone before the next one. */
  *#takeAll(found: readonly FoundReport[], leaderTerm: LeaderTerm): Generator<undefined, void> {
    let bytes = 0;
    for (const report of found) {
      const read = yield* this.#read(report);
      if (read === undefined) continue;
      yield* leaderTerm.take(read, report.replicaId, this.#options.clock.monotonicMs());
      bytes += report.bytes.length;
      if (bytes < turnBytes) continue;
      bytes = 0;
      yield;
    }
  }

  /** What a report says of nodes, once; what it says of services holds until the next one. */
  *#read(found: FoundReport): Generator<undefined, ReadReport | undefined> {
    const { replicaId, number, bytes } = found;
    const known = this.#replicas.get(replicaId);
    if (known !== undefined && number <= known.number) return undefined;
    const rowsMax = this.#rowsLeft(replicaId);
    const base = yield* readBase(found, known?.base, rowsMax);
    const baseNumber = baseNumberOf(bytes);
    const isFull = baseNumber === 0;
    const isThere = isFull || base?.number === baseNumber;
    const report = isThere ? yield* readReport(found, base?.report, rowsMax) : undefined;
    // One whose full record is lost is followed by a full one.
    if (bytes.length === 0 || (baseNumber !== undefined && !isThere)) this.#counts.leftOut += 1;
    else if (report === undefined) this.#noteUnreadable("report");
    const own = isFull && report !== undefined ? { number, report } : undefined;
    this.#replicas.set(replicaId, {
      number,
      services: report?.pressures ?? [],
      base: own ?? base,
    });
    return report;
  }

  /** Rows that a replica may tell of beside those of all others. */
  #rowsLeft(replicaId: string): number {
    let left = fleetRowsMax;
    for (const [id, { base }] of this.#replicas) {
      if (id !== replicaId) left -= base?.report.table.rowNodes.length ?? 0;
    }
    return Math.max(0, left);
  }

  /** The largest take a tenth of a second: calls are answered in between. */
  async #inTurns<T>(turns: Generator<undefined, T>): Promise<T> {
    for (;;) {
      const turn = turns.next();
      if (turn.done === true) return turn.value;
      await new Promise<void>((resolve) => this.#options.clock.scheduleTurn(resolve));
    }
  }

  #noteUnreadable(what: UnreadableEvent["what"]): void {
    this.#counts.unreadable += 1;
    if (this.#reportedUnreadable.has(what)) return;
    this.#reportedUnreadable.add(what);
    this.#options.onEvent?.({ kind: "fleetUnreadable", what });
  }

  async #publish(fleet: FleetSnapshot): Promise<void> {
    const { snapshot } = fleet;
    const { term } = snapshot;
    const { bytes, leftOutCount } = await this.#inTurns(encodeSnapshot(fleet));
    this.#counts.leftOut += leftOutCount;
    // The last thing before it is sent: what came before may have taken longer than the lease.
    const { untilMs } = this.#leader;
    if (untilMs === undefined || this.#leader.term !== term) {
      this.#counts.refused += 1;
      return;
    }
    const sentMs = this.#options.clock.monotonicMs();
    if (await this.#options.store.publish(snapshot, bytes, untilMs)) {
      this.#counts.published += 1;
      this.board.take(fleet, sentMs);
    } else {
      this.#counts.refused += 1;
      this.#leader.noteOutranked(term);
    }
  }
}

/** What a leader knows of one replica. */
interface KnownReplica {
  /** Of its last report. */
  readonly number: number;
  readonly services: readonly ServicePressure[];
  /** The full record that others differ from. */
  readonly base: KnownBase | undefined;
}

interface KnownBase {
  readonly number: number;
  readonly report: ReadReport;
}

/** The full record that was found with another one, or else the one that is known. */
function* readBase(
  { base: found }: FoundReport,
  known: KnownBase | undefined,
  rowsMax: number,
): Generator<undefined, KnownBase | undefined> {
  if (found === undefined) return known;
  const { number, bytes } = found;
  const report = yield* readReport({ bytes, atMs: 0 }, undefined, rowsMax);
  return report && { number, report };
}
