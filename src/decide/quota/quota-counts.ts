/** What is unusual about a report, as metrics name it. */
const unusualUsages = [
  /** More than its assignment let pass. */
  "too_much",
  /** More than an Envoy without an assignment may have let pass. */
  "unassigned",
  /** Less than no time, or more than an hour. */
  "elapsed",
  /** Another live stream has the same node's name for the same domain. */
  "node_twice",
] as const;

type UnusualUsage = (typeof unusualUsages)[number];

/** Why a bucket has no share, as metrics name it. */
const ignoredBuckets = [
  "no_policy",
  "unknown_quota",
  "wrong_domain",
  /** Not what the quota's filter makes: an Envoy of an older policy, or none of ours. */
  "foreign",
  "too_many_limits",
  /** More than a stream may report in a second. */
  "too_many",
  "id_too_long",
  "id_too_many_entries",
  "id_unreadable",
] as const;

/** A row of `ignoredBuckets`. */
export type IgnoredBucket = (typeof ignoredBuckets)[number];

/** Bounds that a bucket may be beyond, as metrics name them. */
const quotaOverflows = ["stream", "identity", "domain", "process"] as const;

/** A row of `quotaOverflows`. */
export type QuotaOverflow = (typeof quotaOverflows)[number];

/** What buckets are told, as metrics name it. */
const quotaInstructionKinds = ["bucket", "allow", "deny", "abandon"] as const;

/** A row of `quotaInstructionKinds`. */
export type QuotaInstructionKind = (typeof quotaInstructionKinds)[number];

/** What those who divide quotas have seen: plain integers, read when scraped. */
export class QuotaCounts {
  readonly unusual = new Map<UnusualUsage, number>(unusualUsages.map((one) => [one, 0]));
  readonly ignored = new Map<IgnoredBucket, number>(ignoredBuckets.map((one) => [one, 0]));
  readonly overflows = new Map<QuotaOverflow, number>(quotaOverflows.map((one) => [one, 0]));
  readonly reported = new Map<QuotaInstructionKind, number>(
    quotaInstructionKinds.map((one) => [one, 0]),
  );
  /** Reports of buckets. */
  reportCount = 0;
  /** Buckets of one stream that went on on another one of the same Envoy. */
  rejoinCount = 0;
  chargedHits = 0;
  /** Told to the store, which did not answer: they are told again. */
  missedHits = 0;
  failedClaimCount = 0;

  add<Row extends string>(counts: Map<Row, number>, row: Row): void {
    counts.set(row, (counts.get(row) ?? 0) + 1);
  }
}
