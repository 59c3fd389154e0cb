import type { Cancel, Clock } from "../../core/base/clock.js";
import { isServiceError } from "../../core/base/errors.js";
import { LogInterval } from "../../core/base/log-interval.js";
import { Tally } from "../../core/collections/tally.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { RegionShare } from "../../core/limits/lending.js";
import type { Rule } from "../../core/limits/limit.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import {
  type LeasesQuotas,
  type QuotaChange,
  quotaBucketKey,
  quotaClassKey,
} from "../../core/quota/quota.js";
import type { Policy } from "../../policy/policy.js";
import { readQuotaBucket } from "../../policy/quotas/quota-bucket.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import type { LimitStore } from "../../store/limit-store.js";
import type { DecisionCounters } from "../rate-limit/counters.js";
import type { PolicySource } from "../rate-limit/policy-source.js";
import type { LimitSwitches } from "../rate-limit/switches.js";
import { WindowSource } from "../rate-limit/window-source.js";
import { QuotaBuckets } from "./quota-buckets.js";
import { type IgnoredBucket, QuotaCounts } from "./quota-counts.js";
import { poolsTickMs, type QuotaLeaseEvent, QuotaPools } from "./quota-pools.js";
import { findReach, type QuotaPlan, type QuotaReach, type ReachDescriptor } from "./quota-reach.js";
import type { DividesQuotas, QuotaCaller, QuotaSession } from "./quota-session.js";
import {
  OpenQuotaSession,
  type QuotaMember,
  type QuotaSessionHost,
  shortTtlMs,
} from "./quota-sessions.js";
import { QuotaView } from "./quota-view.js";

/** A quota event for the log. Contains nothing from callers. */
export type QuotaEvent =
  | QuotaLeaseEvent
  /** Buckets were ignored for this cause. Sent at most once per second. */
  | { readonly kind: "quotaBucketsIgnored"; readonly cause: IgnoredBucket }
  /** Two open streams have the same name. Both are served, but neither inherits from the other. */
  | { readonly kind: "quotaNodeTwice" };

/** The dependencies of a `QuotaRegistry`. */
export interface QuotaRegistryParts {
  readonly policies: PolicySource;
  /** The operators' overrides. */
  readonly overrides: { current(): OverrideTable };
  readonly store: Pick<LimitStore, "take">;
  readonly leases: LeasesQuotas;
  readonly clock: Clock;
  readonly counters: DecisionCounters;
  readonly switches: LimitSwitches;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** The current number of replicas that share the limits, at least 1. */
  readonly replicaCount: () => number;
  /** This region among those that share global limits. Absent: limits are not divided. */
  readonly region?: RegionShare | undefined;
  /** The percentage of all buckets that one identity may have, 1 to 100. Default 100. */
  readonly identityPercentMax?: number;
  /** Approximate maximum size of all buckets, in bytes. Default: unlimited. */
  readonly bucketsBytesMax?: number;
  readonly onEvent: (event: QuotaEvent) => void;
  /** Receives each internal error. */
  readonly onBug: (thrown: unknown) => void;
}

/** Minimum time between two events of one kind and cause, in milliseconds. */
const sameEventMsMin = 1_000;

/** Streams visited, and buckets instructed, per turn of the event loop. */
const visitsPerTurn = 2_000;

/** Buckets that are matched again per turn of the event loop. */
const renewalsPerTurn = 500;

/**
 * The quotas of this replica. Tracks the streams of Envoys, matches their buckets to limits, and
 * sends each bucket its assignment when it changes.
 */
export class QuotaRegistry implements DividesQuotas {
  readonly counts = new QuotaCounts();
  readonly #parts: QuotaRegistryParts;
  readonly #pools: QuotaPools;
  readonly #buckets: QuotaBuckets;
  readonly #sessions = new Set<OpenQuotaSession>();
  /** By holder. */
  readonly #members: (QuotaMember | undefined)[] = [];
  readonly #host: QuotaSessionHost;
  /** Open streams by Envoy and domain. */
  readonly #nodeDomains = new Tally<string>();
  readonly #lines = new LogInterval<string>(sameEventMsMin);
  readonly #windowSource = new WindowSource();
  #quotas: ReadonlyMap<string, QuotaPolicy> = new Map();
  /** The plans of the active policy's rules. */
  #plans = new Map<Rule, QuotaPlan>();
  /** Whether any bucket must be renewed between reports. */
  #hasShort = false;
  #policy: Policy | undefined;
  #overrides: OverrideTable | undefined;
  #cancelTick: Cancel | undefined;
  #cancelTurn: Cancel | undefined;
  /** The buckets that are still to be matched against the active policy. */
  #renewal: Generator<void, void> | undefined;
  #isClosed = false;

  constructor(parts: QuotaRegistryParts) {
    this.#parts = parts;
    const { counts } = this;
    this.#pools = new QuotaPools({
      ...parts,
      counts,
      tell: (change) => this.#tell(change),
      onEvent: (event) => parts.onEvent(event),
    });
    this.#buckets = new QuotaBuckets(parts.identityPercentMax);
    this.#host = this.#createHost();
  }

  open(caller: QuotaCaller): QuotaSession {
    const session = new OpenQuotaSession(this.#host, caller);
    this.#sessions.add(session);
    this.#startTicking();
    return session;
  }

  /** The number of open streams. */
  get sessionCount(): number {
    return this.#sessions.size;
  }

  get poolCount(): number {
    return this.#pools.count;
  }

  /** The number of buckets with a share, including those with a recently closed stream. */
  get holderCount(): number {
    return this.#pools.holders.count;
  }

  /** The current assignments of this replica. */
  view(): QuotaView {
    const nowMs = (): number => this.#parts.clock.monotonicMs();
    return new QuotaView({
      pools: this.#pools,
      nowMs,
      memberOf: (holder) => this.#members[holder],
    });
  }

  /** Stops charging and claiming. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTick?.();
    this.#cancelTurn?.();
    this.#pools.close();
  }

  #createHost(): QuotaSessionHost {
    const { clock, digest } = this.#parts;
    return {
      digest,
      counts: this.counts,
      buckets: this.#buckets,
      nowMs: () => clock.monotonicMs(),
      quotaOf: (name) => {
        this.#follow();
        return this.#quotas.get(name);
      },
      isFullFor: (identity, bytes) => this.#pools.holders.isFullFor(identity, bytes),
      handOver: (from, to) => this.#pools.holders.handOver(from, to),
      hasPolicy: () => this.#policy !== undefined,
      poolOf: (descriptor, quota) => this.#poolOf(descriptor, quota),
      noteMember: (holder, member) => {
        this.#members[holder] = member;
      },
      countsUntilMs: (holder) => {
        const { untilMs, heldUntilMs } = this.#pools.holders;
        return Math.max(untilMs[holder] ?? 0, heldUntilMs[holder] ?? 0);
      },
      noteIgnored: (cause) => this.noteIgnored(cause),
      noteNodeTwice: () => {
        this.counts.add(this.counts.unusual, "node_twice");
        this.#say({ kind: "quotaNodeTwice" });
      },
      onDomain: (node, domain) => {
        const name = JSON.stringify([node, domain]);
        return this.#nodeDomains.add(name, 1) === 1;
      },
      onDomainOver: (node, domain) => {
        const name = JSON.stringify([node, domain]);
        this.#nodeDomains.add(name, -1);
      },
      onClosed: (session) => this.#sessions.delete(session),
    };
  }

  /** Counts a bucket without a share whose cause another module has found. */
  noteIgnored(cause: IgnoredBucket): void {
    this.counts.add(this.counts.ignored, cause);
    this.#say({ kind: "quotaBucketsIgnored", cause });
  }

  #say(event: QuotaEvent): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const subject = event.kind === "quotaBucketsIgnored" ? event.cause : event.kind;
    if (this.#lines.begins(subject, nowMs)) this.#parts.onEvent(event);
  }

  #startTicking(): void {
    if (this.#cancelTick !== undefined || this.#isClosed) return;
    const tick = this.#tick();
    this.#cancelTick = this.#parts.clock.schedule(poolsTickMs, () => this.#goOn(tick));
  }

  /** Runs one turn of a tick, then schedules the next turn or the next tick. */
  #goOn(tick: Generator<undefined, void>): void {
    this.#cancelTick = undefined;
    let isDone: boolean | undefined = true;
    try {
      isDone = tick.next().done;
    } catch (thrown) {
      this.#parts.onBug(thrown);
    }
    if (this.#isClosed) return;
    if (isDone !== true) {
      this.#cancelTick = this.#parts.clock.scheduleTurn(() => this.#goOn(tick));
    } else if (this.#sessions.size > 0 || this.#pools.count > 0) this.#startTicking();
  }

  *#tick(): Generator<undefined, void> {
    this.#follow();
    this.#buckets.forgetLeft(this.#parts.clock.monotonicMs());
    yield* this.#pools.tick();
    let visitCount = 0;
    for (const session of this.#sessions) {
      visitCount += 1 + session.pendingCount;
      if (this.#hasShort) {
        visitCount += session.memberCount;
        session.renewShort(this.#parts.clock.monotonicMs());
      }
      session.wake();
      if (visitCount < visitsPerTurn) continue;
      yield undefined;
      visitCount = 0;
    }
  }

  /** Starts to match all buckets again after a change of the policy or the overrides. */
  #follow(): void {
    const policy = this.#parts.policies.current();
    const overrides = this.#parts.overrides.current();
    if (policy === this.#policy && overrides === this.#overrides) return;
    const isOtherPolicy = policy !== this.#policy;
    this.#policy = policy;
    this.#overrides = overrides;
    if (isOtherPolicy) {
      this.#plans = new Map();
      this.#quotas = new Map(policy?.quotas.map((quota) => [quota.name, quota]));
      const quotas = [...this.#quotas.values()];
      this.#hasShort = quotas.some(({ ttlSeconds }) => ttlSeconds * 1_000 < shortTtlMs);
    }
    this.#renewal = this.#renewals();
    this.#renewSome();
  }

  *#renewals(): Generator<void, void> {
    for (const session of [...this.#sessions]) {
      for (const member of [...session.members()]) {
        this.#renew(session, member);
        yield;
      }
    }
  }

  /** Matches some of them at a time, so that decisions and reports can proceed. */
  #renewSome(): void {
    for (let i = 0; i < renewalsPerTurn; i += 1) {
      if (this.#renewal?.next().done !== false) {
        this.#renewal = undefined;
        break;
      }
    }
    for (const session of this.#sessions) session.wake();
    if (this.#renewal === undefined || this.#isClosed) return;
    this.#cancelTurn?.();
    this.#cancelTurn = this.#parts.clock.scheduleTurn(() => {
      try {
        this.#renewSome();
      } catch (thrown) {
        this.#parts.onBug(thrown);
      }
    });
  }

  #renew(session: OpenQuotaSession, member: QuotaMember): void {
    const { bucket, className } = member;
    const quota = this.#quotas.get(bucket.quotaName);
    const id = idOf(bucket.quotaName, { entries: bucket.entries, className });
    const read = quota && readQuotaBucket(quota, id);
    if (quota === undefined || read?.kind !== "bucket" || quota.domain !== bucket.domain) {
      // Assignments of a removed quota no longer apply.
      session.drop(member);
      return;
    }
    const pool = this.#poolOf(bucket, quota);
    if (pool !== undefined) session.move(member, { pool, weight: read.bucket.weight });
  }

  #poolOf(descriptor: ReachDescriptor, quota: QuotaPolicy) {
    const reach = this.#reachOf(descriptor);
    return reach && this.#pools.reach(reach, descriptor, quota);
  }

  #reachOf(descriptor: ReachDescriptor): QuotaReach | undefined {
    const { clock, counters, switches, digest, region } = this.#parts;
    const windowSource = this.#windowSource;
    const policy = this.#policy;
    const overrides = this.#overrides;
    if (policy === undefined || overrides === undefined) return undefined;
    try {
      return findReach(descriptor, {
        policy,
        overrides,
        counters,
        switches,
        digest,
        region,
        windowSource,
        plans: this.#plans,
        nowMs: clock.monotonicMs(),
        epochUs: clock.epochUs(),
      });
    } catch (thrown) {
      if (!isServiceError(thrown)) throw thrown;
      this.noteIgnored("too_many_limits");
      return undefined;
    }
  }

  #tell(change: QuotaChange): void {
    const member = this.#members[change.holder];
    if (change.kind === "abandon") this.#members[change.holder] = undefined;
    if (member === undefined) return;
    if (change.kind === "assign") {
      member.session.tell(member.id, { kind: "assign", assignment: change.assignment });
    } else member.session.abandon(member);
  }
}

/** Rebuilds a bucket's id from its parsed form. */
function idOf(
  quotaName: string,
  {
    entries,
    className,
  }: {
    readonly entries: readonly DescriptorEntry[];
    readonly className: string | undefined;
  },
): Readonly<Record<string, string>> {
  const id = Object.fromEntries(entries.map(({ key, value }) => [key, value]));
  id[quotaBucketKey] = quotaName;
  if (className !== undefined) id[quotaClassKey] = className;
  return id;
}
