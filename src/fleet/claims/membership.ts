import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import type { MemberStore } from "../../store/coordination/member-store.js";

/** A change of a replica's membership. Sent once, not at every heartbeat. */
export type MembershipEvent =
  | { readonly kind: "fleetSizeChanged"; readonly liveReplicaCount: number }
  /** Heartbeats fail. The last known number of replicas stays active. */
  | { readonly kind: "fleetLost"; readonly code: ErrorCode }
  | { readonly kind: "fleetFound" };

interface MembershipOptions {
  readonly store: MemberStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Heartbeat interval. Default 1,000. */
  readonly heartbeatMs?: number;
  /** How long a silent replica counts as live, by the store's clock. Default 3,000. */
  readonly leaseMs?: number;
  readonly onEvent?: (event: MembershipEvent) => void;
}

/** Defaults of `MembershipOptions`: a dead replica is forgotten after three missed heartbeats. */
export const defaultHeartbeatMs = 1_000;
/** See `defaultHeartbeatMs`. */
export const defaultLeaseMs = 3_000;

/**
 * How long a stopping replica waits for its departure to be stored. Its lease expires a little
 * later.
 */
const leaveMsMax = 500;

/**
 * The number of live replicas, which announce themselves by heartbeats in the store. During an
 * outage of the store, the last known number stays active. It divides limits that are enforced
 * locally, where too small a number would admit too much.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #id: string;
  #liveReplicaCount = 1;
  #isLost = false;
  #isStopped = false;
  #cancelNext: Cancel | undefined;
  #heartbeat: Promise<void>;

  /** Joins at once, and sends heartbeats until `stop`. */
  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#id = options.random.id();
    this.#heartbeat = this.#beat();
  }

  /** The number of live replicas including this one, at least 1. */
  liveReplicas(): number {
    return this.#liveReplicaCount;
  }

  /** Leaves, if the store can be reached. Never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelNext?.();
    // A heartbeat in progress would join again afterwards. It ends by its own deadline.
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
