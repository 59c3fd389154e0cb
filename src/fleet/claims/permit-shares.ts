import type {
  PermitHolder,
  PermitShare,
  SharesPermits,
} from "../../core/admission/permit-share.js";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import {
  type PermitAnswer,
  type PermitClaim,
  type PermitStore,
  permitClaimsMax,
} from "../../store/coordination/permit-store.js";

/** What happens to the shares of this replica; each is told once, not at every heartbeat. */
export type PermitSharesEvent =
  /** A lease ended unrenewed: limits are divided by the number of replicas until there is one. */
  { readonly kind: "sharesLost"; readonly code: ErrorCode } | { readonly kind: "sharesFound" };

interface PermitSharesOptions {
  readonly store: PermitStore;
  readonly clock: Clock;
  readonly random: Random;
  /** How many replicas share the limits, at least 1: what divides them while nobody can tell. */
  readonly replicaCount: () => number;
  /** Time between two heartbeats. Default 250. */
  readonly heartbeatMs?: number;
  /** How long a share lasts after the last heartbeat that was answered. Default 3,000. */
  readonly leaseMs?: number;
  readonly onEvent?: (event: PermitSharesEvent) => void;
}

/** Default of `PermitSharesOptions.heartbeatMs`: how long a burst waits for a larger share. */
export const defaultShareHeartbeatMs = 250;

/** Default of `PermitSharesOptions.leaseMs`: how long a dead replica's share is missing. */
export const defaultShareLeaseMs = 3_000;

/** The most limits that are shared; what is opened above is divided by the number of replicas. */
export const sharesMax = 1_000;

/** The part of a lease after which a heartbeat is given up, so that two more fit into it. */
const patienceRatio = 1 / 3;

/** The longest that a stopping replica waits to say goodbye; its leases say the same later. */
const leaveMsMax = 500;

/**
 * Divides limits of permits among the replicas by what each needs, so that all that they may have
 * in use together never exceeds the limit. A heartbeat says what is held and needed and brings back
 * what may be held; it counts until its lease ends by this replica's own clock, which is before the
 * store gives it to others, because the lease there begins later.
 *
 * Without a valid lease a replica holds `floor(limit / replicas)`, at least 1: together not more
 * than the limit while all are cut off, and that much more than it for each that is cut off alone.
 */
export class PermitShares implements SharesPermits {
  readonly #options: PermitSharesOptions;
  readonly #id: string;
  readonly #shares = new Set<Share>();
  #beatCount = 0;
  #isLost = false;
  #isStopped = false;
  #cancelNext: Cancel | undefined;
  /** The heartbeat under way. */
  #heartbeat: Promise<void> | undefined;

  constructor(options: PermitSharesOptions) {
    this.#options = options;
    this.#id = options.random.id();
  }

  /** Shares a limit, from a heartbeat on that comes at once. */
  open(holder: PermitHolder): PermitShare {
    const { replicaCount } = this.#options;
    const onClose = (): void => {
      this.#shares.delete(share);
    };
    const share = new Share({ holder, replicaCount, onClose });
    if (this.#isStopped || this.#shares.size >= sharesMax) {
      share.settle();
      return share;
    }
    this.#shares.add(share);
    // One that is under way looks for it at its end.
    if (this.#heartbeat === undefined) this.#schedule(0);
    return share;
  }

  /**
   * Resolves when each limit that is open now has a share, or nobody can tell, or a lease has
   * passed: what others hold comes back with their next heartbeats, and until then a newcomer would
   * refuse whatever it is asked. Who refuses at once looks the least busy, too.
   */
  async settled(): Promise<void> {
    await Promise.all([...this.#shares].map((share) => share.whenSettled));
  }

  /** Gives everything back, as far as the store can be reached now. Never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelNext?.();
    for (const share of this.#shares) share.settle();
    // A heartbeat under way would take the shares again; it ends by its own deadline.
    await this.#heartbeat;
    const { store, clock } = this.#options;
    const deadlineMs = clock.monotonicMs() + leaveMsMax;
    for (const shares of this.#batches()) {
      const holder = { replicaId: this.#id, names: shares.map(({ holder: { name } }) => name) };
      // Who cannot be told sees it by the end of the leases.
      await store.leave(holder, deadlineMs).catch((thrown: unknown) => this.#noteFailure(thrown));
    }
  }

  #schedule(delayMs: number): void {
    this.#cancelNext?.();
    this.#cancelNext = this.#options.clock.schedule(delayMs, () => {
      this.#heartbeat = this.#beat();
    });
  }

  async #beat(): Promise<void> {
    const { clock, heartbeatMs = defaultShareHeartbeatMs } = this.#options;
    const dueMs = clock.monotonicMs() + heartbeatMs;
    let failure: unknown;
    const batches = this.#batches();
    for (const shares of batches) failure = (await this.#renew(shares)) ?? failure;
    // Told of all together: else those of which one fails would be lost and found at each beat.
    if (failure !== undefined) this.#noteFailure(failure);
    else if (batches.length > 0) this.#noteSuccess();
    this.#heartbeat = undefined;
    if (this.#isStopped || this.#shares.size === 0) return;
    const isComplete = [...this.#shares].every((share) => share.isReported);
    this.#schedule(isComplete ? Math.max(0, dueMs - clock.monotonicMs()) : 0);
  }

  #batches(): readonly (readonly Share[])[] {
    const shares = [...this.#shares];
    const count = Math.ceil(shares.length / permitClaimsMax);
    return Array.from({ length: count }, (_, i) =>
      shares.slice(i * permitClaimsMax, (i + 1) * permitClaimsMax),
    );
  }

  /** Answers what was thrown; undefined: nothing. */
  async #renew(shares: readonly Share[]): Promise<unknown> {
    const { store, clock, leaseMs = defaultShareLeaseMs } = this.#options;
    const sentMs = clock.monotonicMs();
    this.#beatCount += 1;
    const claims = shares.map((share) => share.tell(sentMs));
    const beat = { replicaId: this.#id, number: this.#beatCount, leaseMs, claims };
    try {
      const answers = await store.claim(beat, sentMs + leaseMs * patienceRatio);
      const times = { nowMs: clock.monotonicMs(), untilMs: sentMs + leaseMs, leaseMs };
      for (const [i, share] of shares.entries()) share.hear(answers[i], times);
      return undefined;
    } catch (thrown) {
      for (const share of shares) share.settle();
      return thrown;
    }
  }

  #noteSuccess(): void {
    if (this.#isLost) this.#options.onEvent?.({ kind: "sharesFound" });
    this.#isLost = false;
  }

  #noteFailure(thrown: unknown): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#isLost || [...this.#shares].every((share) => share.isLeased(nowMs))) return;
    this.#isLost = true;
    this.#options.onEvent?.({ kind: "sharesLost", code: toServiceError(thrown).code });
  }
}

interface ShareParts {
  readonly holder: PermitHolder;
  readonly replicaCount: () => number;
  readonly onClose: () => void;
}

interface HearingTimes {
  readonly nowMs: number;
  /** When what was heard is over. */
  readonly untilMs: number;
  readonly leaseMs: number;
}

class Share implements PermitShare {
  readonly holder: PermitHolder;
  readonly whenSettled: Promise<void>;
  readonly #parts: ShareParts;
  #settle: () => void = () => {};
  /** When a heartbeat has told of it first; undefined: none has. */
  #reportedMs: number | undefined;
  #answer: PermitAnswer = { grantedCount: 0, othersInUseCount: 0, limit: 0 };
  #untilMs = Number.NEGATIVE_INFINITY;
  /** What was needed since the last heartbeat that was answered. */
  #neededCount = 0;

  constructor(parts: ShareParts) {
    this.#parts = parts;
    this.holder = parts.holder;
    this.whenSettled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Whether a heartbeat has told of it, well or not. */
  get isReported(): boolean {
    return this.#reportedMs !== undefined;
  }

  isLeased(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  permits(nowMs: number): number {
    if (this.isLeased(nowMs)) return this.#answer.grantedCount;
    return Math.max(1, Math.floor(this.holder.fleetLimit() / this.#parts.replicaCount()));
  }

  /** While nobody tells, others are taken to have as much in use as this replica. */
  othersInUse(nowMs: number): number {
    if (this.isLeased(nowMs)) return this.#answer.othersInUseCount;
    return (this.#parts.replicaCount() - 1) * this.holder.inUseCount();
  }

  close(): void {
    this.#parts.onClose();
    this.settle();
  }

  /** Nobody is to wait for it any more. */
  settle(): void {
    this.#settle();
  }

  /** What a heartbeat says. */
  tell(nowMs: number): PermitClaim {
    const { holder } = this;
    this.#reportedMs ??= nowMs;
    const inUseCount = holder.inUseCount();
    // Before the first answer nothing is anybody's but what is in use.
    const heldCount = this.#isHeard ? this.permits(nowMs) : 0;
    this.#neededCount = Math.max(this.#neededCount, holder.takeDemand());
    return {
      name: holder.name,
      limit: holder.fleetLimit(),
      heldCount: Math.max(inUseCount, heldCount),
      neededCount: this.#neededCount,
      isLearned: holder.agreed !== undefined,
    };
  }

  /** @param answer what may be held; undefined: a later heartbeat was answered before */
  hear(answer: PermitAnswer | undefined, { nowMs, untilMs, leaseMs }: HearingTimes): void {
    if ((answer?.grantedCount ?? 0) > 0 || nowMs - (this.#reportedMs ?? nowMs) >= leaseMs)
      this.settle();
    if (answer === undefined) return;
    const before = this.permits(nowMs);
    this.#answer = answer;
    this.#untilMs = untilMs;
    this.#neededCount = 0;
    this.holder.agreed?.(answer.limit);
    if (this.permits(nowMs) > before) this.holder.shareGrew();
  }

  get #isHeard(): boolean {
    return this.#untilMs !== Number.NEGATIVE_INFINITY;
  }
}
