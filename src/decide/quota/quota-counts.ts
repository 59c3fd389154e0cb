/** Anomalies in reports, as label values of metrics. */
const unusualUsages = [
  /** More than its assignment allowed. */
  "too_much",
  /** More than an Envoy without an assignment may have admitted. */
  "unassigned",
  /** A negative time, or more than an hour. */
  "elapsed",
  /** Another open stream uses the same node name for the same domain. */
  "node_twice",
] as const;

type UnusualUsage = (typeof unusualUsages)[number];

/** Why a bucket has no share, as label values of metrics. */
const ignoredBuckets = [
  "no_policy",
  "unknown_quota",
  "wrong_domain",
  /**
   * Not a bucket of the quota's filter: the Envoy has an older policy or was not configured by it.
   */
  "foreign",
  "too_many_limits",
  /** More than a stream may report per second. */
  "too_many",
  "id_too_long",
  "id_too_many_entries",
  "id_unreadable",
] as const;

/** An element of `ignoredBuckets`. */
export type IgnoredBucket = (typeof ignoredBuckets)[number];

/** The bounds that a bucket can exceed, as label values of metrics. */
const quotaOverflows = ["stream", "identity", "domain", "process"] as const;

/** An element of `quotaOverflows`. */
export type QuotaOverflow = (typeof quotaOverflows)[number];

/** The kinds of instructions for buckets, as label values of metrics. */
const quotaInstructionKinds = ["bucket", "allow", "deny", "abandon"] as const;

/** An element of `quotaInstructionKinds`. */
export type QuotaInstructionKind = (typeof quotaInstructionKinds)[number];

/** Counters of the quota modules. Plain integers, read when metrics are scraped. */
export class QuotaCounts {
  readonly unusual = new Map<UnusualUsage, number>(unusualUsages.map((one) => [one, 0]));
  readonly ignored = new Map<IgnoredBucket, number>(ignoredBuckets.map((one) => [one, 0]));
  readonly overflows = new Map<QuotaOverflow, number>(quotaOverflows.map((one) => [one, 0]));
  readonly reported = new Map<QuotaInstructionKind, number>(
    quotaInstructionKinds.map((one) => [one, 0]),
  );
  /** Reports of buckets. */
  reportCount = 0;
  /** Buckets that an Envoy took up again on another stream. */
  rejoinCount = 0;
  chargedHits = 0;
  /** Hits sent to the store without a response; they are sent again. */
  missedHits = 0;
  failedClaimCount = 0;

  add<Row extends string>(counts: Map<Row, number>, row: Row): void {
    counts.set(row, (counts.get(row) ?? 0) + 1);
  }
}
