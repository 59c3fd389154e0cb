import type { Cancel, Clock } from "../../core/base/clock.js";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import type { LeaseAnswer, LoopStore } from "../../store/coordination/loop-store.js";
import type { SnapshotVersion } from "../../store/coordination/snapshot-version.js";

/** A change of leadership. Each is reported once, not at every heartbeat. */
export type LeaderEvent =
  | { readonly kind: "leadingBegan"; readonly term: number }
  | { readonly kind: "leadingEnded"; readonly term: number; readonly cause: EndOfTerm }
  /** Heartbeats fail. Without them, this replica cannot lead. */
  | { readonly kind: "leaseLost"; readonly code: ErrorCode }
  | { readonly kind: "leaseFound" };

/** The lease was not renewed in time, the store knows another leader, or this replica stops. */
type EndOfTerm = "lapsed" | "outranked" | "stopped";

/** Dependencies and settings of a `Leader`. */
export interface LeaderOptions {
  readonly store: Pick<LoopStore, "beat" | "resign">;
  readonly clock: Clock;
  /** Id of this replica, lower-case hexadecimal. */
  readonly id: string;
  /** Heartbeat interval, in milliseconds. Default 250. */
  readonly heartbeatMs?: number;
  /** Duration of a lease after the last answered heartbeat, in milliseconds. Default 3,000. */
  readonly leaseMs?: number;
  /** Returns the highest rank that was seen here. */
  readonly seen: () => SnapshotVersion;
  /** Gets the newest snapshot's rank with each answered heartbeat; undefined if there is none. */
  readonly onBeat: (newest: SnapshotVersion | undefined) => void;
  readonly onEvent?: (event: LeaderEvent) => void;
}

/** Default of `LeaderOptions.heartbeatMs`: how long a new snapshot may stay unnoticed. */
export const defaultLeaderHeartbeatMs = 250;

/** Default of `LeaderOptions.leaseMs`: the maximum time without a leader after one dies. */
export const defaultLeaderLeaseMs = 3_000;

/** The fraction of a lease after which a heartbeat times out, so that two more fit into it. */
const patienceRatio = 1 / 3;

/** How long a stopping leader waits for its resignation to be stored. Its lease expires later. */
const resignMsMax = 500;

/**
 * Elects one of the replicas, by a lease in the store. The number of a term is unique. A term lasts
 * until its lease ends by this replica's own monotonic clock, counted from before the heartbeat
 * left. The store's lease began later, so no other leader has been elected by then.
 *
 * A paused process may believe itself the leader until it checks the clock. So a leader checks just
 * before it writes, and the store refuses one that is outranked by then.
 */
export class Leader {
  readonly #options: LeaderOptions;
  #leaderTerm: { readonly term: number; readonly untilMs: number } | undefined;
  #beatCount = 0;
  #isLost = false;
  #isStopped = false;
  #cancelNext: Cancel | undefined;
  #heartbeat: Promise<void>;

  /** Takes part in the election at once, until `stop`. */
  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#heartbeat = this.#beat();
  }

  /** This replica's term. Undefined while it does not lead. Checks the clock. */
  get term(): number | undefined {
    return this.untilMs === undefined ? undefined : this.#leaderTerm?.term;
  }

  /** When the term ends unless it is renewed. Undefined while this replica does not lead. */
  get untilMs(): number | undefined {
    const leaderTerm = this.#leaderTerm;
    if (leaderTerm === undefined) return undefined;
    if (this.#options.clock.monotonicMs() < leaderTerm.untilMs) return leaderTerm.untilMs;
    this.#end("lapsed");
    return undefined;
  }

  /** Ends a term because the store knows another leader. @param term that the store refused */
  noteOutranked(term: number): void {
    if (this.#leaderTerm?.term === term) this.#end("outranked");
  }

  /** Releases the lease, if the store can be reached. Never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelNext?.();
    this.#end("stopped");
    // A heartbeat in progress would take the lease again. It ends by its own deadline.
    await this.#heartbeat;
    const { store, clock, id } = this.#options;
    const deadlineMs = clock.monotonicMs() + resignMsMax;
    await store.resign(id, deadlineMs).catch((thrown: unknown) => this.#noteFailure(thrown));
  }

  async #beat(): Promise<void> {
    const { clock, heartbeatMs = defaultLeaderHeartbeatMs } = this.#options;
    const startMs = clock.monotonicMs();
    const askedTerm = this.term ?? 0;
    try {
      const answer = await this.#ask(startMs, askedTerm);
      this.#hear(answer, { sentMs: startMs, askedTerm });
    } catch (thrown) {
      this.#noteFailure(thrown);
    }
    if (this.#isStopped) return;
    const delayMs = Math.max(0, startMs + heartbeatMs - clock.monotonicMs());
    this.#cancelNext = clock.schedule(delayMs, () => {
      this.#heartbeat = this.#beat();
    });
  }

  #ask(sentMs: number, askedTerm: number): Promise<LeaseAnswer> {
    const { store, id: replicaId, leaseMs = defaultLeaderLeaseMs, seen } = this.#options;
    this.#beatCount += 1;
    const facts = { number: this.#beatCount, term: askedTerm, leaseMs, seen: seen() };
    return store.beat({ replicaId, ...facts }, sentMs + leaseMs * patienceRatio);
  }

  #hear({ term, newest }: LeaseAnswer, { sentMs, askedTerm }: Asked): void {
    if (this.#isLost) this.#tell({ kind: "leaseFound" });
    this.#isLost = false;
    if (this.#isStopped) return;
    const { leaseMs = defaultLeaderLeaseMs, onBeat } = this.#options;
    const leaderTerm = { term, untilMs: sentMs + leaseMs };
    if (this.#leaderTerm?.term === term) {
      this.#leaderTerm = leaderTerm;
    } else {
      this.#end("outranked");
      // A term that ended during its renewal is over. The next heartbeat begins another one.
      if (term !== 0 && term !== askedTerm) {
        this.#leaderTerm = leaderTerm;
        this.#tell({ kind: "leadingBegan", term });
      }
    }
    onBeat(newest);
  }

  #end(cause: EndOfTerm): void {
    const leaderTerm = this.#leaderTerm;
    if (leaderTerm === undefined) return;
    this.#leaderTerm = undefined;
    this.#tell({ kind: "leadingEnded", term: leaderTerm.term, cause });
  }

  #noteFailure(thrown: unknown): void {
    if (!this.#isLost) this.#tell({ kind: "leaseLost", code: toServiceError(thrown).code });
    this.#isLost = true;
  }

  #tell(event: LeaderEvent): void {
    this.#options.onEvent?.(event);
  }
}

interface Asked {
  readonly sentMs: number;
  /** The term to be renewed; 0 for none. */
  readonly askedTerm: number;
}
