import { Tally } from "../../core/collections/tally.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { QuotaHolder } from "../../core/quota/quota.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import type { DrivenPool } from "./driven-pool.js";
import type { ReachDescriptor } from "./quota-reach.js";

/** A descriptor that quota buckets represent, for any Envoy and class. */
export interface QuotaBucketRecord extends ReachDescriptor {
  readonly quotaName: string;
  readonly key: string;
  /** The identity whose bucket created the record. */
  readonly identity: string;
  /** The number of Envoy buckets for this descriptor. */
  memberCount: number;
}

/** What an Envoy with a closed stream may take up again on another stream. */
interface DetachedHolder {
  readonly pool: DrivenPool;
  readonly holder: QuotaHolder;
  /** When it stops counting. */
  readonly untilMs: number;
}

/** Maximum number of descriptors per domain. Further ones share one limit of their rule. */
export const bucketsPerDomainMax = 100_000;

/** The descriptors that buckets represent, and the buckets that disconnected Envoys have left. */
export class QuotaBuckets {
  readonly #buckets = new Map<string, QuotaBucketRecord>();
  readonly #countByDomain = new Tally<string>();
  /** By domain and identity. */
  readonly #countByMaker = new Tally<string>();
  readonly #makerBucketsMax: number;
  readonly #left = new Map<string, DetachedHolder>();

  /**
   * @param identityPercentMax of a domain's descriptors that one identity may create. Default 100
   */
  constructor(identityPercentMax = 100) {
    this.#makerBucketsMax = Math.max(
      1,
      Math.floor((bucketsPerDomainMax * identityPercentMax) / 100),
    );
  }

  /** Adds a bucket for a descriptor. Beyond the bounds, it belongs to the overflow descriptor. */
  take(
    quota: QuotaPolicy,
    entries: readonly DescriptorEntry[],
    identity: string,
  ): QuotaBucketRecord {
    const { name: quotaName, domain } = quota;
    let key = partOf(quotaName);
    for (const { value } of entries) key += partOf(value);
    const known = this.#buckets.get(key);
    if (known !== undefined && known.domain === domain) {
      known.memberCount += 1;
      return known;
    }
    const maker = makerOf(domain, identity);
    const count = this.#countByDomain.get(domain);
    const ownCount = this.#countByMaker.get(maker);
    const isOverflow = count >= bucketsPerDomainMax || ownCount >= this.#makerBucketsMax;
    const made = { quotaName, domain, entries, key, identity, isOverflow, memberCount: 1 };
    if (isOverflow) return made;
    this.#buckets.set(key, made);
    this.#countByDomain.add(domain, 1);
    this.#countByMaker.add(maker, 1);
    return made;
  }

  /** Removes a bucket from its descriptor. */
  release(bucket: QuotaBucketRecord): void {
    bucket.memberCount -= 1;
    if (bucket.memberCount > 0 || this.#buckets.get(bucket.key) !== bucket) return;
    this.#buckets.delete(bucket.key);
    this.#countByDomain.add(bucket.domain, -1);
    this.#countByMaker.add(makerOf(bucket.domain, bucket.identity), -1);
  }

  /** Stores what an Envoy with a closed stream held of one bucket. */
  leave(name: string, left: DetachedHolder): void {
    this.#left.set(name, left);
  }

  /** The same Envoy reports the same bucket again. Undefined: nothing of it counts any more. */
  takeUp(name: string, pool: DrivenPool, nowMs: number): QuotaHolder | undefined {
    const left = this.#left.get(name);
    if (left !== undefined) this.#left.delete(name);
    return left !== undefined && left.pool === pool && nowMs < left.untilMs
      ? left.holder
      : undefined;
  }

  /** Removes what no longer counts. */
  forgetLeft(nowMs: number): void {
    for (const [name, { untilMs }] of this.#left) {
      if (untilMs <= nowMs) this.#left.delete(name);
    }
  }
}

function makerOf(domain: string, identity: string): string {
  return partOf(domain) + identity;
}

/** Its length first, so that no two lists of texts are equal when they are joined. */
function partOf(text: string): string {
  return `${text.length}:${text}`;
}
