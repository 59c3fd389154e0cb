import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import type { MemberStore } from "../../store/coordination/member-store.js";

/** What happens to a replica's membership; each is told once, not at every heartbeat. */
export type MembershipEvent =
  | { readonly kind: "fleetSizeChanged"; readonly liveReplicaCount: number }
  /** Heartbeats stopped getting through; the last known number stays active. */
  | { readonly kind: "fleetLost"; readonly code: ErrorCode }
  | { readonly kind: "fleetFound" };

interface MembershipOptions {
  readonly store: MemberStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Time between two heartbeats. Default 1,000. */
  readonly heartbeatMs?: number;
  /** How long a silent replica still counts as live, by the store's clock. Default 3,000. */
  readonly leaseMs?: number;
  readonly onEvent?: (event: MembershipEvent) => void;
}

/**
 * Defaults of `MembershipOptions`: a replica that died is forgotten after three missed heartbeats.
 */
export const defaultHeartbeatMs = 1_000;
/** See `defaultHeartbeatMs`. */
export const defaultLeaseMs = 3_000;

/**
 * The longest that a stopping replica waits to say goodbye; its lease says the same a little later.
 */
const leaveMsMax = 500;

/**
 * How many replicas there are, as each tells the others by a heartbeat in the store. While the
 * store is away nobody can tell, and the last known number stays: it divides limits that are kept
 * locally, where too small a number admits too much.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #id: string;
  #liveReplicaCount = 1;
  #isLost = false;
  #isStopped = false;
  #cancelNext: Cancel | undefined;
  #heartbeat: Promise<void>;

  /** Joins at once and keeps the heartbeat going until `stop`. */
  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#id = options.random.id();
    this.#heartbeat = this.#beat();
  }

  /** The replicas known to be live, this one included: at least 1. */
  liveReplicas(): number {
    return this.#liveReplicaCount;
  }

  /** Leaves, as far as the store can be reached now. Never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelNext?.();
    // A heartbeat under way would join again after the goodbye; it ends by its own deadline.
    await this.#heartbeat;
    try {
      const { store, clock } = this.#options;
      await store.leave(this.#id, clock.monotonicMs() + leaveMsMax);
    } catch (thrown) {
      this.#noteFailure(thrown);
    }
  }

  async #beat(): Promise<void> {
    const { store, clock } = this.#options;
    const { heartbeatMs = defaultHeartbeatMs, leaseMs = defaultLeaseMs } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      const member = { replicaId: this.#id, leaseMs };
      this.#noteCount(await store.join(member, startMs + heartbeatMs));
    } catch (thrown) {
      this.#noteFailure(thrown);
    }
    if (this.#isStopped) return;
    const delayMs = Math.max(0, startMs + heartbeatMs - clock.monotonicMs());
    this.#cancelNext = clock.schedule(delayMs, () => {
      this.#heartbeat = this.#beat();
    });
  }

  #noteCount(count: number): void {
    if (this.#isLost) this.#tell({ kind: "fleetFound" });
    this.#isLost = false;
    const liveReplicaCount = Math.max(1, count);
    if (liveReplicaCount === this.#liveReplicaCount) return;
    this.#liveReplicaCount = liveReplicaCount;
    this.#tell({ kind: "fleetSizeChanged", liveReplicaCount });
  }

  #noteFailure(thrown: unknown): void {
    if (!this.#isLost) this.#tell({ kind: "fleetLost", code: toServiceError(thrown).code });
    this.#isLost = true;
  }

  #tell(event: MembershipEvent): void {
    this.#options.onEvent?.(event);
  }
}
