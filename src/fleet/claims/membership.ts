import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, ServiceError, toServiceError } from "../../core/base/errors.js";
import type { StoreConnection, StoreScript } from "../../store/connection.js";

/** What happens to a replica's membership; each is told once, not at every heartbeat. */
export type MembershipEvent =
  | { readonly kind: "fleetSizeChanged"; readonly liveReplicaCount: number }
  /** Heartbeats stopped getting through; the last known number stays active. */
  | { readonly kind: "fleetLost"; readonly code: ErrorCode }
  | { readonly kind: "fleetFound" };

/** What a `Membership` is made of. */
export interface MembershipOptions {
  /** The fleet connection: heartbeats may be repeated, and never wait behind decisions. */
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
  /** The store's key prefix; replicas with the same one on the same store know of each other. */
  readonly keyPrefix: string;
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
  readonly #key: string;
  #liveReplicaCount = 1;
  #isLost = false;
  #isStopped = false;
  #cancelNext: Cancel | undefined;
  #heartbeat: Promise<void>;

  /** Joins at once and keeps the heartbeat going until `stop`. */
  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#id = options.random.id();
    this.#key = `${options.keyPrefix}fleet:replicas`;
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
      await this.#run(leaveScript, leaveMsMax);
    } catch (thrown) {
      this.#noteFailure(thrown);
    }
  }

  async #beat(): Promise<void> {
    const { clock, heartbeatMs = defaultHeartbeatMs } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      this.#noteCount(await this.#run(joinScript, heartbeatMs));
    } catch (thrown) {
      this.#noteFailure(thrown);
    }
    if (this.#isStopped) return;
    const delayMs = Math.max(0, startMs + heartbeatMs - clock.monotonicMs());
    this.#cancelNext = clock.schedule(delayMs, () => {
      this.#heartbeat = this.#beat();
    });
  }

  async #run(script: StoreScript, withinMs: number): Promise<number> {
    const { connection, clock, leaseMs = defaultLeaseMs } = this.#options;
    const reply = await connection.run({
      script,
      keys: [this.#key],
      args: [this.#id, String(leaseMs)],
      deadlineMs: clock.monotonicMs() + withinMs,
    });
    if (typeof reply !== "number") throw new ServiceError("STORE_PROTOCOL");
    return reply;
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

/**
 * KEYS[1]: the replicas, scored by when they were last heard, in ms of the store's clock. ARGV:
 * this replica, the lease in ms. Answers how many are live. A clock that stepped back leaves times
 * in the future; they become now, or the dead among them would be counted until the clock has
 * caught up.
 */
const joinScript: StoreScript = {
  name: "fleet-join",
  text: `
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local key, leaseMs = KEYS[1], tonumber(ARGV[2])
local now = string.format('%.0f', nowMs)
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', nowMs - leaseMs))
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
  redis.call('ZADD', key, now, id)
end
redis.call('ZADD', key, now, ARGV[1])
redis.call('PEXPIRE', key, ARGV[2])
return redis.call('ZCARD', key)
`,
};

const leaveScript: StoreScript = {
  name: "fleet-leave",
  text: "return redis.call('ZREM', KEYS[1], ARGV[1])",
};
