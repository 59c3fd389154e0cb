import { hitsMax } from "../../core/limits/limit.js";
import {
  type QuotaHolder,
  type QuotaUsage,
  quotaBucketKey,
  quotaClassKey,
  quotaReportMs,
  unlimitedQuotaTtlMs,
} from "../../core/quota/quota.js";
import { readQuotaBucket } from "../../policy/quotas/quota-bucket.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import type { RuleCounters } from "../rate-limit/counters.js";
import type { DrivenPool } from "./driven-pool.js";
import type { QuotaBucketRecord, QuotaBuckets } from "./quota-buckets.js";
import type {
  IgnoredBucket,
  QuotaCounts,
  QuotaInstructionKind,
  QuotaOverflow,
} from "./quota-counts.js";
import type { ReachDescriptor } from "./quota-reach.js";
import type {
  BucketId,
  BucketReport,
  QuotaAction,
  QuotaCaller,
  QuotaInstruction,
  QuotaSession,
} from "./quota-session.js";

/**
 * Maximum number of buckets with a share per stream. Further ones behave as without an assignment.
 */
export const bucketsPerStreamMax = 1_000;

/**
 * Assignments with a shorter ttl than this are renewed between reports, which arrive every 5 s, as
 * long as reports arrive.
 */
export const shortTtlMs = 2 * quotaReportMs;

/** The cost of an id that is new on its stream, in reports of known ones. */
const newBucketUnits = 10;

/** Hexadecimal digits of an identity's digest: 64 bits. */
const identityDigits = 16;

/**
 * Approximate heap that a bucket of a stream takes, without its texts, and that a pool takes on
 * top, in bytes. `test/bench/quota-path.ts` measures both.
 */
export const bucketBytes = 400;
/** See `bucketBytes`. */
export const poolBytes = 1_900;

/** Memory per byte of its id: as received, as names, and as entries in UTF-16. */
export const bytesPerIdByte = 8;

/** One bucket of one stream that has a share. */
export interface QuotaMember {
  readonly session: OpenQuotaSession;
  /** Identifies it within its stream. */
  readonly key: string;
  /** As the Envoy encoded it, each byte as one character. */
  readonly id: string;
  readonly bucket: QuotaBucketRecord;
  /** The class in its id. Undefined if there is none. */
  readonly className: string | undefined;
  weight: number;
  pool: DrivenPool;
  holder: QuotaHolder;
  reportedMs: number;
  answeredMs: number;
}

/** The context that streams share. */
export interface QuotaSessionHost {
  readonly counts: QuotaCounts;
  readonly buckets: QuotaBuckets;
  /** A cryptographic hash in hexadecimal. */
  digest(text: string): string;
  nowMs(): number;
  hasPolicy(): boolean;
  /** Whether an identity cannot have another bucket of this size. */
  isFullFor(identity: string, bytes: number): boolean;
  /** Transfers the memory accounted to one holder to another. */
  handOver(from: QuotaHolder, to: QuotaHolder): void;
  quotaOf(name: string): QuotaPolicy | undefined;
  /** Undefined if the bucket has no pool; that is counted. */
  poolOf(descriptor: ReachDescriptor, quota: QuotaPolicy): DrivenPool | undefined;
  noteMember(holder: QuotaHolder, member: QuotaMember | undefined): void;
  /** Until when a holder that has left its pool counts. */
  countsUntilMs(holder: QuotaHolder): number;
  noteIgnored(cause: IgnoredBucket): void;
  noteNodeTwice(): void;
  /**
   * An Envoy's stream reports its first bucket of a domain. Counts until `onDomainOver`.
   *
   * @returns whether no other open stream is from the same Envoy and domain
   */
  onDomain(node: string, domain: string): boolean;
  onDomainOver(node: string, domain: string): void;
  onClosed(session: OpenQuotaSession): void;
}

/** One open stream: its buckets, and the instructions that are still to be sent. */
export class OpenQuotaSession implements QuotaSession {
  readonly #host: QuotaSessionHost;
  readonly #caller: QuotaCaller;
  readonly #members = new Map<string, QuotaMember>();
  /**
   * By ids as received, which need not be read again. The order of an id's entries is Envoy's, and
   * may change.
   */
  readonly #byId = new Map<string, QuotaMember>();
  /** The latest instruction for each bucket, by its id. */
  readonly #pending = new Map<string, QuotaAction>();
  /** For each domain, whether the stream may take up what the same Envoy has left. */
  readonly #domains = new Map<string, boolean>();
  /** The identity of its owner, in the form that replicas exchange. */
  readonly #identity: string;
  /** The name of its Envoy, among those that its peer may use. Undefined if it has none. */
  readonly #name: string | undefined;
  #isClosed = false;

  constructor(host: QuotaSessionHost, caller: QuotaCaller) {
    this.#host = host;
    this.#caller = caller;
    this.#identity = host.digest(caller.peer.identity).slice(0, identityDigits);
    const { node, peer } = caller;
    // Two certificates for one address are two Envoys. Without a certificate, only the address
    // counts.
    const isOwn = node !== undefined && peer.kind === "certificate";
    this.#name = isOwn ? JSON.stringify([peer.identity, node]) : node;
  }

  get node(): string | undefined {
    return this.#caller.node;
  }

  get memberCount(): number {
    return this.#members.size;
  }

  /** The instructions that wait to be sent. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  members(): Iterable<QuotaMember> {
    return this.#members.values();
  }

  report(domain: string, reports: readonly BucketReport[]): number {
    if (this.#isClosed) return 0;
    const nowMs = this.#host.nowMs();
    let units = reports.length;
    for (const report of reports) {
      const known = this.#byId.get(report.id);
      if (known !== undefined) this.#host.counts.reportCount += 1;
      else units += newBucketUnits;
      const member = known ?? this.#find(domain, report.id);
      if (member === undefined) continue;
      if (member.bucket.domain === domain) this.#take(member, report, nowMs);
      else this.#host.noteIgnored("wrong_domain");
    }
    return units;
  }

  takeActions(most: number): readonly QuotaAction[] {
    const actions: QuotaAction[] = [];
    for (const action of this.#pending.values()) {
      if (actions.length >= most) break;
      actions.push(action);
    }
    if (actions.length === this.#pending.size) this.#pending.clear();
    else for (const { id } of actions) this.#pending.delete(id);
    return actions;
  }

  /** Signals that there is something to send. */
  wake(): void {
    if (this.#pending.size > 0) this.#caller.wake();
  }

  /** Renews assignments that would end before the next report. */
  renewShort(nowMs: number): void {
    for (const member of this.#members.values()) {
      const { ttlMs } = member.pool;
      if (ttlMs >= shortTtlMs || nowMs - member.reportedMs > shortTtlMs) continue;
      if (nowMs - member.answeredMs >= ttlMs / 2) this.#answer(member, nowMs);
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pending.clear();
    const { buckets } = this.#host;
    const nowMs = this.#host.nowMs();
    for (const member of this.#members.values()) {
      const { pool, holder } = member;
      const untilMs = pool.law.leave(holder, nowMs);
      const name = this.#inheritedName(member.bucket.domain, member.key);
      if (name !== undefined) buckets.leave(name, { pool, holder, untilMs });
      buckets.release(member.bucket);
    }
    this.#members.clear();
    this.#byId.clear();
    for (const domain of this.#domains.keys()) {
      if (this.#name !== undefined) this.#host.onDomainOver(this.#name, domain);
    }
    this.#host.onClosed(this);
  }

  /** Queues an instruction for a bucket, to be sent when its Envoy reads. */
  tell(id: string, reported: QuotaInstruction): void {
    if (this.#isClosed) return;
    this.#host.counts.add(this.#host.counts.reported, reportedKind(reported));
    this.#pending.set(id, { id, reported });
  }

  /** The bucket is idle and its pool has released it. It may be taken up again until it expires. */
  abandon(member: QuotaMember): void {
    const { key, id, bucket, pool, holder } = member;
    const { buckets } = this.#host;
    this.#members.delete(key);
    // The bucket may have several ids, but they are soon known again.
    this.#byId.clear();
    const name = this.#inheritedName(bucket.domain, key);
    const untilMs = this.#host.countsUntilMs(holder);
    if (name !== undefined) buckets.leave(name, { pool, holder, untilMs });
    buckets.release(bucket);
    this.tell(id, { kind: "abandon" });
  }

  /** Removes a bucket's share. */
  drop(member: QuotaMember): void {
    member.pool.law.leave(member.holder, this.#host.nowMs());
    this.#host.noteMember(member.holder, undefined);
    this.abandon(member);
  }

  /** Moves a bucket to other limits or another weight. */
  move(
    member: QuotaMember,
    { pool, weight }: { readonly pool: DrivenPool; readonly weight: number },
  ): void {
    if (pool === member.pool && weight === member.weight) return;
    const nowMs = this.#host.nowMs();
    const holder = pool.law.join({ weight, identity: this.#identity }, nowMs);
    if (holder === undefined) {
      this.drop(member);
      return;
    }
    // Its previous assignment counts in the previous pool until it ends.
    member.pool.law.leave(member.holder, nowMs);
    this.#host.noteMember(member.holder, undefined);
    this.#host.handOver(member.holder, holder);
    Object.assign(member, { pool, weight, holder });
    this.#host.noteMember(holder, member);
    this.#answer(member, nowMs);
  }

  #take(member: QuotaMember, usage: QuotaUsage, nowMs: number): void {
    const { counts } = this.#host;
    const elapsedMs = likelyElapsedMs(usage.elapsedMs, nowMs - member.reportedMs);
    member.reportedMs = nowMs;
    const { allowedHits, deniedHits } = usage;
    const reported = { allowedHits, deniedHits, elapsedMs };
    const verdict = member.pool.law.report(member.holder, reported, nowMs);
    if (verdict === "plausible") countUsage(member.pool.reach.counters, usage);
    else counts.add(counts.unusual, verdict);
    this.#answer(member, nowMs);
  }

  #answer(member: QuotaMember, nowMs: number): void {
    member.answeredMs = nowMs;
    const assignment = member.pool.law.answer(member.holder, nowMs);
    if (assignment !== undefined) this.tell(member.id, { kind: "assign", assignment });
  }

  /** Handles an id that is new on this stream, and maybe its bucket too. */
  #find(domain: string, id: string): QuotaMember | undefined {
    const read = this.#caller.readId(id);
    if (read === undefined) return undefined;
    this.#host.counts.reportCount += 1;
    const member = this.#members.get(read.key) ?? this.#meet(domain, id, read);
    if (member === undefined) return undefined;
    if (this.#byId.size >= 2 * bucketsPerStreamMax) this.#byId.clear();
    this.#byId.set(id, member);
    return member;
  }

  #meet(domain: string, id: string, { key, entries }: BucketId): QuotaMember | undefined {
    const host = this.#host;
    const texts = entries();
    const quota = host.quotaOf(texts[quotaBucketKey] ?? "");
    if (quota === undefined) {
      host.noteIgnored(host.hasPolicy() ? "unknown_quota" : "no_policy");
      return undefined;
    }
    if (quota.domain !== domain) {
      host.noteIgnored("wrong_domain");
      return undefined;
    }
    const read = readQuotaBucket(quota, texts);
    if (read.kind === "foreign") {
      host.noteIgnored("foreign");
      return undefined;
    }
    if (this.#members.size >= bucketsPerStreamMax) {
      return this.#overflow("stream", id, quota);
    }
    const identity = this.#identity;
    const bytes = bucketBytes + bytesPerIdByte * id.length;
    const bucket = host.buckets.take(quota, read.bucket.entries, identity);
    // Checked before the pool is created.
    if (host.isFullFor(identity, bytes + (bucket.memberCount === 1 ? poolBytes : 0))) {
      host.buckets.release(bucket);
      return this.#overflow("identity", id, quota);
    }
    if (bucket.isOverflow) host.counts.add(host.counts.overflows, "domain");
    const pool = host.poolOf(bucket, quota);
    const nowMs = host.nowMs();
    const { weight } = read.bucket;
    const holder = pool && this.#holderOf(pool, { domain, key, weight, bytes });
    if (pool === undefined || holder === undefined) {
      host.buckets.release(bucket);
      if (pool === undefined) return undefined;
      return this.#overflow("process", id, quota);
    }
    const member: QuotaMember = {
      session: this,
      key,
      id,
      bucket,
      className: texts[quotaClassKey],
      weight,
      pool,
      holder,
      reportedMs: nowMs,
      answeredMs: nowMs,
    };
    this.#members.set(key, member);
    host.noteMember(holder, member);
    return member;
  }

  #holderOf(
    pool: DrivenPool,
    { domain, key, weight, bytes }: { domain: string; key: string; weight: number; bytes: number },
  ): QuotaHolder | undefined {
    const { buckets, counts } = this.#host;
    const nowMs = this.#host.nowMs();
    const name = this.#inheritedName(domain, key);
    const again = name === undefined ? undefined : buckets.takeUp(name, pool, nowMs);
    const identity = this.#identity;
    if (again === undefined) {
      return pool.law.join({ weight, identity, bytes, poolBytes }, nowMs);
    }
    pool.law.rejoin(again, nowMs);
    counts.rejoinCount += 1;
    return again;
  }

  /** Keeps nothing of the bucket: the quota's setting for buckets without an assignment applies. */
  #overflow(bound: QuotaOverflow, id: string, { beforeAssignment: rule }: QuotaPolicy): undefined {
    const { counts } = this.#host;
    counts.add(counts.overflows, bound);
    // A peer that does not read gets no further instructions. The same setting applies then.
    if (this.#pending.size >= bucketsPerStreamMax) return;
    const assignment = { kind: "blanket", rule, ttlMs: unlimitedQuotaTtlMs } as const;
    this.tell(id, { kind: "assign", assignment });
  }

  /**
   * Identifies a bucket of this Envoy beyond its stream. Undefined if the Envoy has no name, or if
   * another open stream has the same name, because neither may then inherit from the other.
   */
  #inheritedName(domain: string, key: string): string | undefined {
    const node = this.#name;
    if (node === undefined) return undefined;
    let isHeir = this.#domains.get(domain);
    if (isHeir === undefined) {
      isHeir = this.#host.onDomain(node, domain);
      this.#domains.set(domain, isHeir);
      if (!isHeir) this.#host.noteNodeTwice();
    }
    return isHeir ? JSON.stringify([node, domain, key]) : undefined;
  }
}

/**
 * Envoy truncates the elapsed time to whole seconds. The time since its last report supplies the
 * fraction, if the two agree.
 */
function likelyElapsedMs(reportedMs: number, measuredMs: number): number {
  if (reportedMs <= 0) return reportedMs;
  return Math.min(reportedMs + 999, Math.max(reportedMs, measuredMs));
}

/** A request that an Envoy decides by a quota counts as a requested hit. */
function countUsage(
  counters: RuleCounters | undefined,
  { allowedHits, deniedHits }: QuotaUsage,
): void {
  if (counters === undefined) return;
  // Denied hits are not bounded by an assignment.
  const overHits = Math.min(deniedHits, hitsMax);
  counters.ok += allowedHits;
  counters.over += overHits;
  counters.hits.total += allowedHits + overHits;
  counters.hits.within += allowedHits;
  counters.hits.over += overHits;
}

function reportedKind(reported: QuotaInstruction): QuotaInstructionKind {
  if (reported.kind === "abandon") return "abandon";
  return reported.assignment.kind === "bucket" ? "bucket" : reported.assignment.rule;
}
