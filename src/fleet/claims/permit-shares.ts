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

/** A change of this replica's shares. Sent once, not at every heartbeat. */
export type PermitSharesEvent =
  /** A lease expired. Until there is a new one, limits are divided by the number of replicas. */
  { readonly kind: "sharesLost"; readonly code: ErrorCode } | { readonly kind: "sharesFound" };

interface PermitSharesOptions {
  readonly store: PermitStore;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * The number of replicas that share the limits, at least 1. Divides the limits without a lease.
   */
  readonly replicaCount: () => number;
  /** Heartbeat interval. Default 250. */
  readonly heartbeatMs?: number;
  /** How long a share is valid after the last answered heartbeat. Default 3,000. */
  readonly leaseMs?: number;
  readonly onEvent?: (event: PermitSharesEvent) => void;
}

/** Default of `PermitSharesOptions.heartbeatMs`: how long a burst waits for a larger share. */
export const defaultShareHeartbeatMs = 250;

/** Default of `PermitSharesOptions.leaseMs`: how long a dead replica's share is unavailable. */
export const defaultShareLeaseMs = 3_000;

/** Maximum number of shared limits. Further ones are divided by the number of replicas. */
export const sharesMax = 1_000;

/** The fraction of a lease after which a heartbeat times out, so that two more fit into it. */
const patienceRatio = 1 / 3;

/** How long a stopping replica waits for its departure to be stored. Its leases expire later. */
const leaveMsMax = 500;

/**
 * Divides permit limits among the replicas by demand, so that the permits in use never exceed the
 * limit. A heartbeat reports what is held and needed, and returns what may be held. The share is
 * valid until its lease expires by this replica's clock. That is before the store assigns it to
 * others, because the store's lease starts later.
 *
 * Without a valid lease, a replica holds `floor(limit / replicas)`, at least 1. If all replicas are
 * disconnected, the sum does not exceed the limit. Each replica that is disconnected alone can add
 * its part on top.
 */
export class PermitShares implements SharesPermits {
  readonly #options: PermitSharesOptions;
  readonly #id: string;
  readonly #shares = new Set<Share>();
  #beatCount = 0;
  #isLost = false;
  #isStopped = false;
  #cancelNext: Cancel | undefined;
  /** The heartbeat in progress. */
  #heartbeat: Promise<void> | undefined;

  constructor(options: PermitSharesOptions) {
    this.#options = options;
    this.#id = options.random.id();
  }

  /** Shares a limit, starting with an immediate heartbeat. */
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
    // A heartbeat in progress checks for new limits when it ends.
    if (this.#heartbeat === undefined) this.#schedule(0);
    return share;
  }

  /**
   * Resolves when each open limit has a share, the store is unavailable, or a lease has passed.
   * Others release their excess with their next heartbeats. Until then, a new replica would refuse
   * every request, and would appear to be the least loaded one.
   */
  async settled(): Promise<void> {
    await Promise.all([...this.#shares].map((share) => share.whenSettled));
  }

  /** Releases all shares, if the store can be reached. Never rejects. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelNext?.();
    for (const share of this.#shares) share.settle();
    // A heartbeat in progress would take the shares again. It ends by its own deadline.
    await this.#heartbeat;
    const { store, clock } = this.#options;
    const deadlineMs = clock.monotonicMs() + leaveMsMax;
    for (const shares of this.#batches()) {
      const holder = { replicaId: this.#id, names: shares.map(({ holder: { name } }) => name) };
      // If the store cannot be reached, the leases expire.
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
    // Reported for all limits together. Otherwise, if one of them fails, the shares would be
    // reported as lost and found at each heartbeat.
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

  /** Returns the error, or undefined if there was none. */
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
  /** When the last response expires. */
  readonly untilMs: number;
  readonly leaseMs: number;
}

class Share implements PermitShare {
  readonly holder: PermitHolder;
  readonly whenSettled: Promise<void>;
  readonly #parts: ShareParts;
  #settle: () => void = () => {};
  /** When a heartbeat first reported it. Undefined if none has. */
  #reportedMs: number | undefined;
  #answer: PermitAnswer = { grantedCount: 0, othersInUseCount: 0, limit: 0 };
  #untilMs = Number.NEGATIVE_INFINITY;
  /** The maximum need since the last answered heartbeat. */
  #neededCount = 0;

  constructor(parts: ShareParts) {
    this.#parts = parts;
    this.holder = parts.holder;
    this.whenSettled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Whether a heartbeat has reported it, successfully or not. */
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

  /** Without a lease, other replicas are assumed to use as many permits as this one. */
  othersInUse(nowMs: number): number {
    if (this.isLeased(nowMs)) return this.#answer.othersInUseCount;
    return (this.#parts.replicaCount() - 1) * this.holder.inUseCount();
  }

  close(): void {
    this.#parts.onClose();
    this.settle();
  }

  /** Ends the wait for it. */
  settle(): void {
    this.#settle();
  }

  /** The content of the next heartbeat. */
  tell(nowMs: number): PermitClaim {
    const { holder } = this;
    this.#reportedMs ??= nowMs;
    const inUseCount = holder.inUseCount();
    // Before the first response, only permits in use are held.
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

  /** @param answer what may be held; undefined if a later heartbeat was answered first */
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
