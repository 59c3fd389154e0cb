import type { Cancel, Clock } from "../../core/base/clock.js";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import type { LeaseAnswer, LoopStore } from "../../store/coordination/loop-store.js";
import type { SnapshotVersion } from "../../store/coordination/snapshot-version.js";

/** What happens to who leads; each is told once, not at every heartbeat. */
export type LeaderEvent =
  | { readonly kind: "leadingBegan"; readonly term: number }
  | { readonly kind: "leadingEnded"; readonly term: number; readonly cause: EndOfTerm }
  /** Heartbeats stopped getting through: nobody can lead from here. */
  | { readonly kind: "leaseLost"; readonly code: ErrorCode }
  | { readonly kind: "leaseFound" };

/** Nobody renewed the lease in time, the store knows another leader, or this replica goes. */
type EndOfTerm = "lapsed" | "outranked" | "stopped";

/** What a `Leader` is made of. */
export interface LeaderOptions {
  readonly store: Pick<LoopStore, "beat" | "resign">;
  readonly clock: Clock;
  /** This replica: lower-case hexadecimal. */
  readonly id: string;
  /** Time between two heartbeats. Default 250. */
  readonly heartbeatMs?: number;
  /** How long a lease lasts after the last heartbeat that was answered. Default 3,000. */
  readonly leaseMs?: number;
  /** The highest rank that was seen here. */
  readonly seen: () => SnapshotVersion;
  /** Each heartbeat that was answered brings the rank of the newest snapshot; undefined: none. */
  readonly onBeat: (newest: SnapshotVersion | undefined) => void;
  readonly onEvent?: (event: LeaderEvent) => void;
}

/** Default of `LeaderOptions.heartbeatMs`: how long a new snapshot waits to be noticed. */
export const defaultLeaderHeartbeatMs = 250;

/** Default of `LeaderOptions.leaseMs`: how long a dead leader is missed at most. */
export const defaultLeaderLeaseMs = 3_000;

/** The part of a lease after which a heartbeat is given up, so that two more fit into it. */
const patienceRatio = 1 / 3;

/** The longest that a stopping leader waits to say goodbye; its lease says the same later. */
const resignMsMax = 500;

/**
 * Elects one of the replicas, by a lease in the store. A term has a number that no other one
 * has; it lasts until its lease ends by this replica's own monotonic clock, counted from before the
 * heartbeat left. The store's lease began later, so nobody else has been elected by then.
 *
 * A process that stands still may believe itself the leader for as long as it does not look: so
 * whoever writes as the leader looks just before, and the store refuses who was outranked by then.
 */
export class Leader {
  readonly #options: LeaderOptions;
  #leaderTerm: { readonly term: number; readonly untilMs: number } | undefined;
  #beatCount = 0;
  #isLost = false;
  #isStopped = false;
  #cancelNext: Cancel | undefined;
  #heartbeat: Promise<void>;

  /** Takes part at once, until `stop`. */
  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#heartbeat = this.#beat();
  }

  /** This replica's term; undefined while it does not lead. Looks at the clock. */
  get term(): number | undefined {
    return this.untilMs === undefined ? undefined : this.#leaderTerm?.term;
  }

  /** When the term ends unless it is renewed; undefined while this replica does not lead. */
  get untilMs(): number | undefined {
    const leaderTerm = this.#leaderTerm;
    if (leaderTerm === undefined) return undefined;
    if (this.#options.clock.monotonicMs() < leaderTerm.untilMs) return leaderTerm.untilMs;
    this.#end("lapsed");
    return undefined;
  }

  /** The store says that another one leads. @param term that it said it of */
  noteOutranked(term: number): void {
    if (this.#leaderTerm?.term === term) this.#end("outranked");
  }

  /** Gives the lease back, as far as the store can be reached now. Never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelNext?.();
    this.#end("stopped");
    // A heartbeat under way would take the lease again; it ends by its own deadline.
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
      // A term that ended while it was renewed is over: the next heartbeat begins another one.
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
  /** The term that was to be renewed; 0: none. */
  readonly askedTerm: number;
}
