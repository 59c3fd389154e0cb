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
  /** Id of this replica, lower-case hexadecimal. */
  readonly id: string;
  readonly createMaker: LeaderTermParts["createMaker"];
  /** Returns the pressure on services at this replica now. */
  readonly pressures: () => readonly ServicePressure[];
  /** Settings of services that have a gate, by name of the service. */
  readonly gateSettings: LeaderTermParts["gateSettings"];
  /** How long a snapshot applies if it is not renewed. Default `snapshotAgeMsMax`. */
  readonly ageMsMax?: number;
  /** See `LeaderOptions`. */
  readonly heartbeatMs?: number;
  readonly leaseMs?: number;
  readonly onEvent?: (event: LoopEvent) => void;
  /** Called with an error that is a bug, not a failure of the environment. */
  readonly onBug: (thrown: unknown) => void;
}

/** An event of the loop, for logs. */
export type LoopEvent = LeaderEvent | SnapshotEvent | UnreadableEvent;

/** Data of replicas of another version was ignored. Reported once. */
interface UnreadableEvent {
  readonly kind: "fleetUnreadable";
  readonly what: "report" | "snapshot";
}

/** Counts of the loop since its start. */
export interface LoopCounts {
  /** Snapshots that this replica made and published. */
  readonly published: number;
  /** Snapshots that it did not write, or that the store refused, because another replica leads. */
  readonly refused: number;
  /** Snapshots that arrived after newer ones. */
  readonly older: number;
  /** Failed calls of the loop to the store. */
  readonly failed: number;
  /** Reports and snapshots that are invalid or of another version. */
  readonly unreadable: number;
  /** Rows of reports, whole reports, and services of snapshots, for which there was no room. */
  readonly leftOut: number;
}

/** Time between two snapshots, in milliseconds. */
export const snapshotEveryMs = 1_000;

/** Maximum rows of all replicas that a leader keeps: 10,000 Envoys with 100 services, 28 MB. */
const fleetRowsMax = 1_048_576;

/** Time after which a replica reports its services although no Envoy reports, in milliseconds. */
export const quietReportMs = 1_500;

/**
 * The loop of a fleet: every replica writes what it knows to the store, the leader makes a snapshot
 * of it, and every replica hands it out. Without the store none leads, and snapshots expire.
 */
export class SharedLoop {
  readonly board: SnapshotHolder;
  readonly #options: SharedLoopOptions;
  readonly #leader: Leader;
  readonly #cancels = new Map<"lead" | "tell", Cancel>();
  readonly #underWay = new Map<"lead" | "tell" | "fetch", Promise<void>>();
  #leaderTerm: LeaderTerm | undefined;
  /** By replica id, while this replica leads. */
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

  /** Returns the snapshot that applies now. Undefined if there is none, or it is too old. */
  current(): ShareSnapshot | undefined {
    return this.board.current();
  }

  /** Calls back after every new snapshot. The returned function unsubscribes. */
  onSnapshot(listener: () => void): () => void {
    return this.board.onSnapshot(listener);
  }

  /** Takes the latest reports of this replica's Envoys, and sends them at once. */
  report(reports: readonly NodeReport[]): void {
    if (this.#isStopped) return;
    this.#waiting = reports;
    this.#tell();
  }

  /** Leaves, if the store can be reached. Never rejects. */
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

  /** Runs one task of a kind at a time. Its errors never reach a timer. */
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
      // The store has lost the full record that the report is based on, so a full one is sent.
      this.#writer.forget();
      // While a newer one waits, this report's objects may be reused (`rpc/nodes/open-report`).
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
      // Even if it could not be fetched, what this replica has is known to be older.
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

  /** Takes one report at a time, so that its decoded form is gone before the next one is read. */
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

  /** Reads a report once for its nodes. What it says about services applies until the next one. */
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
    // A report whose full record is lost is followed by a full one.
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

  /** Returns how many rows a replica may report, besides those of all others. */
  #rowsLeft(replicaId: string): number {
    let left = fleetRowsMax;
    for (const [id, { base }] of this.#replicas) {
      if (id !== replicaId) left -= base?.report.table.rowNodes.length ?? 0;
    }
    return Math.max(0, left);
  }

  /** Runs work in turns. The largest takes a tenth of a second: calls are answered in between. */
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
    // Checked just before sending, because earlier steps may have taken longer than the lease.
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

/** What a leader knows about one replica. */
interface KnownReplica {
  /** Number of its last report. */
  readonly number: number;
  readonly services: readonly ServicePressure[];
  /** The full record that others are based on. */
  readonly base: KnownBase | undefined;
}

interface KnownBase {
  readonly number: number;
  readonly report: ReadReport;
}

/** Returns the full record that was found with another one, or otherwise the known one. */
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
