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
  BucketReport,
  QuotaAction,
  QuotaCaller,
  QuotaInstruction,
  QuotaSession,
} from "./quota-session.js";

/** Buckets of one stream that have a share; more are told what holds before the first one. */
export const bucketsPerStreamMax = 1_000;

/**
 * Assignments that hold for less are renewed in between reports, which come each 5 s, for as long
 * as they do come.
 */
export const shortTtlMs = 2 * quotaReportMs;

/** Digits of an identity's digest: 64 bits. */
const identityDigits = 16;

/** Bytes of a bucket with a pool of its own, beside its texts, about. */
const bucketBytes = 3_000;

/** Bytes that are kept for each of its id: as it came, as names, and as entries in UTF-16. */
const bytesPerIdByte = 8;

/** One bucket of one stream that has a share. */
export interface QuotaMember {
  readonly session: OpenQuotaSession;
  /** Tells it from the others of its stream. */
  readonly key: string;
  /** As the Envoy names it. */
  readonly id: Uint8Array;
  readonly bucket: QuotaBucketRecord;
  /** The class in its id; undefined: none. */
  readonly className: string | undefined;
  weight: number;
  pool: DrivenPool;
  holder: QuotaHolder;
  reportedMs: number;
  answeredMs: number;
}

/** What streams share. */
export interface QuotaSessionHost {
  readonly counts: QuotaCounts;
  readonly buckets: QuotaBuckets;
  /** A strong hash of a text, in hexadecimal. */
  digest(text: string): string;
  nowMs(): number;
  hasPolicy(): boolean;
  /** Whether an identity may have no more buckets, of which so many bytes are kept. */
  isFullFor(identity: string, bytes: number): boolean;
  /** What is kept of one holder is kept of another one from now on. */
  handOver(from: QuotaHolder, to: QuotaHolder): void;
  quotaOf(name: string): QuotaPolicy | undefined;
  /** Undefined: it has none, which is counted. */
  poolOf(descriptor: ReachDescriptor, quota: QuotaPolicy): DrivenPool | undefined;
  noteMember(holder: QuotaHolder, member: QuotaMember | undefined): void;
  /** Until when one that has left its pool counts. */
  countsUntilMs(holder: QuotaHolder): number;
  noteIgnored(cause: IgnoredBucket): void;
  noteNodeTwice(): void;
  /**
   * An Envoy's stream has its first bucket of a domain, until `onDomainOver`.
   *
   * @returns whether no other open stream is of the same Envoy and domain
   */
  onDomain(node: string, domain: string): boolean;
  onDomainOver(node: string, domain: string): void;
  onClosed(session: OpenQuotaSession): void;
}

/** One open stream: its buckets, and what is still to be said of them. */
export class OpenQuotaSession implements QuotaSession {
  readonly #host: QuotaSessionHost;
  readonly #caller: QuotaCaller;
  readonly #members = new Map<string, QuotaMember>();
  /** By bucket the newest that it is to be told. */
  readonly #pending = new Map<string, QuotaAction>();
  /** By domain, whether the stream may take up what the same Envoy left. */
  readonly #domains = new Map<string, boolean>();
  /** Whose it is, as replicas tell each other. */
  readonly #identity: string;
  /** What its Envoy is called, among those for whom its peer may speak; undefined: nothing. */
  readonly #name: string | undefined;
  #isClosed = false;

  constructor(host: QuotaSessionHost, caller: QuotaCaller) {
    this.#host = host;
    this.#caller = caller;
    this.#identity = host.digest(caller.peer.identity).slice(0, identityDigits);
    const { node, peer } = caller;
    // Two certificates that name one address are two Envoys; without one there is nothing else.
    const isOwn = node !== undefined && peer.kind === "certificate";
    this.#name = isOwn ? JSON.stringify([peer.identity, node]) : node;
  }

  get node(): string | undefined {
    return this.#caller.node;
  }

  members(): Iterable<QuotaMember> {
    return this.#members.values();
  }

  report(domain: string, reports: readonly BucketReport[]): void {
    if (this.#isClosed) return;
    const { counts } = this.#host;
    counts.reportCount += reports.length;
    for (const report of reports) {
      const member = this.#members.get(report.key) ?? this.#meet(domain, report);
      if (member === undefined) continue;
      if (member.bucket.domain === domain) this.#take(member, report.usage);
      else this.#host.noteIgnored("wrong_domain");
    }
  }

  takeActions(most: number): readonly QuotaAction[] {
    const actions: QuotaAction[] = [];
    for (const [key, action] of this.#pending) {
      if (actions.length >= most) break;
      this.#pending.delete(key);
      actions.push(action);
    }
    return actions;
  }

  /** Lets what is to be said be said. */
  wake(): void {
    if (this.#pending.size > 0) this.#caller.wake();
  }

  /** Renews what would be over before the next report. */
  renewShort(nowMs: number): void {
    for (const member of this.#members.values()) {
      const { ttlMs } = member.pool;
      if (ttlMs >= shortTtlMs || nowMs - member.reportedMs > shortTtlMs) continue;
      if (nowMs - member.answeredMs >= ttlMs / 2) this.#answer(member);
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
    for (const domain of this.#domains.keys()) {
      if (this.#name !== undefined) this.#host.onDomainOver(this.#name, domain);
    }
    this.#host.onClosed(this);
  }

  /** Says something of a bucket, as soon as its Envoy reads. */
  tell({ key, id }: Pick<QuotaMember, "key" | "id">, reported: QuotaInstruction): void {
    if (this.#isClosed) return;
    this.#host.counts.add(this.#host.counts.reported, reportedKind(reported));
    this.#pending.set(key, { id, reported });
  }

  /** Nobody uses it: its pool has let go of it. Until its time is up it may be taken up again. */
  abandon(member: QuotaMember): void {
    const { key, bucket, pool, holder } = member;
    const { buckets } = this.#host;
    this.#members.delete(key);
    const name = this.#inheritedName(bucket.domain, key);
    const untilMs = this.#host.countsUntilMs(holder);
    if (name !== undefined) buckets.leave(name, { pool, holder, untilMs });
    buckets.release(bucket);
    this.tell(member, { kind: "abandon" });
  }

  /** It has no share any more. */
  drop(member: QuotaMember): void {
    member.pool.law.leave(member.holder, this.#host.nowMs());
    this.#host.noteMember(member.holder, undefined);
    this.abandon(member);
  }

  /** It reaches other limits now, or has another weight. */
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
    // What it was told of the limits before counts there until its time is up.
    member.pool.law.leave(member.holder, nowMs);
    this.#host.noteMember(member.holder, undefined);
    this.#host.handOver(member.holder, holder);
    Object.assign(member, { pool, weight, holder });
    this.#host.noteMember(holder, member);
    this.#answer(member);
  }

  #take(member: QuotaMember, usage: QuotaUsage): void {
    const { counts } = this.#host;
    const nowMs = this.#host.nowMs();
    const elapsedMs = likelyElapsedMs(usage.elapsedMs, nowMs - member.reportedMs);
    member.reportedMs = nowMs;
    const verdict = member.pool.law.report(member.holder, { ...usage, elapsedMs }, nowMs);
    if (verdict === "plausible") countUsage(member.pool.reach.counters, usage);
    else counts.add(counts.unusual, verdict);
    this.#answer(member);
  }

  #answer(member: QuotaMember): void {
    member.answeredMs = this.#host.nowMs();
    const assignment = member.pool.law.answer(member.holder, member.answeredMs);
    if (assignment !== undefined) this.tell(member, { kind: "assign", assignment });
  }

  /** A bucket that is new on this stream. */
  #meet(domain: string, { key, id, entries }: BucketReport): QuotaMember | undefined {
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
      return this.#overflow("stream", { key, id: id.slice() }, quota);
    }
    const identity = this.#identity;
    const bytes = bucketBytes + bytesPerIdByte * id.length;
    if (host.isFullFor(identity, bytes)) {
      return this.#overflow("identity", { key, id: id.slice() }, quota);
    }
    const bucket = host.buckets.take(quota, read.bucket.entries, identity);
    if (bucket.isOverflow) host.counts.add(host.counts.overflows, "domain");
    const pool = host.poolOf(bucket, quota);
    const nowMs = host.nowMs();
    const { weight } = read.bucket;
    const holder = pool && this.#holderOf(pool, { domain, key, weight, bytes });
    if (pool === undefined || holder === undefined) {
      host.buckets.release(bucket);
      if (pool === undefined) return undefined;
      return this.#overflow("process", { key, id: id.slice() }, quota);
    }
    const own = { session: this, key, id: id.slice(), bucket, className: texts[quotaClassKey] };
    const times = { reportedMs: nowMs, answeredMs: nowMs };
    const member: QuotaMember = { ...own, weight, pool, holder, ...times };
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
    if (again === undefined) return pool.law.join({ weight, identity, bytes }, nowMs);
    pool.law.rejoin(again, nowMs);
    counts.rejoinCount += 1;
    return again;
  }

  /** Nothing is kept of it: the quota's own word for before the first assignment holds on. */
  #overflow(
    bound: QuotaOverflow,
    bucket: Pick<QuotaMember, "key" | "id">,
    { beforeAssignment: rule }: QuotaPolicy,
  ): undefined {
    const { counts } = this.#host;
    counts.add(counts.overflows, bound);
    // Who does not read is told no more of it: it goes by its own word all the same.
    if (this.#pending.size >= bucketsPerStreamMax) return;
    const assignment = { kind: "blanket", rule, ttlMs: unlimitedQuotaTtlMs } as const;
    this.tell(bucket, { kind: "assign", assignment });
  }

  /**
   * What a bucket of this Envoy is called after its stream; undefined where the Envoy has no name,
   * or where another live stream has the same: what was given to one is not the other's then.
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
 * Envoy cuts the time that it tells to whole seconds; how long ago its last report came says the
 * rest, as far as the two agree.
 */
function likelyElapsedMs(reportedMs: number, measuredMs: number): number {
  if (reportedMs <= 0) return reportedMs;
  return Math.min(reportedMs + 999, Math.max(reportedMs, measuredMs));
}

/** A request that an Envoy decides by a quota counts as one that is asked for. */
function countUsage(
  counters: RuleCounters | undefined,
  { allowedHits, deniedHits }: QuotaUsage,
): void {
  if (counters === undefined) return;
  // What was denied is bounded by nothing that was assigned.
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
