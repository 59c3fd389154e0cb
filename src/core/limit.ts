/** Names a bucket of state in the store; made by `limitKey` and `overrideKey` alone. */
export type LimitKey = string & { readonly limitKeyBrand: never };

/**
 * The units of a rate limit.
 *
 * Source: envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit.
 */
export type LimitUnit = "second" | "minute" | "hour" | "day" | "week" | "month" | "year";

/** Length of each unit in seconds; a month has 30 days, a year 365, as in envoyproxy/ratelimit. */
export const unitSeconds: Readonly<Record<LimitUnit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

/** What part a limit plays in the decision of a request. */
export type Role =
  /** Over: the request is denied. */
  | "enforce"
  /** Evaluated and counted, never denies. */
  | "shadow"
  /** Denies only when all quota limits of the request are over. */
  | "quota"
  /** Always stored, into debt of at most one more burst; over above the burst. */
  | "settle";

/** What answers for a limit while the store cannot. */
export type FailureMode =
  /** GCRA in this process, at the limit divided by the replicas. The default. */
  | "local"
  /** The request is not limited. */
  | "allow"
  /** The request is over the limit. */
  | "deny"
  /** The call fails with a gRPC error, so that Envoy's own failure mode decides. */
  | "error";

/** The largest burst, and the largest hits of a period. Source: uint32 in the RLS messages. */
export const hitsMax = 4_294_967_295;

/** The largest time a full bucket may take to drain: ten years of 365 days, in microseconds. */
export const drainTimeUsMax = 10 * 31_536_000 * 1_000_000;

/** One limit of a rule: how fast its buckets drain, how much they hold, what a full one means. */
export interface Limit {
  /** The user's name for it; absent when the policy gives none. */
  readonly name?: string;
  /** Hits that drain in one period, 0 (blocks everything) to `hitsMax`. */
  readonly hits: number;
  /** The period as a unit and a whole multiple of it, as Envoy reports it (10 s: second, 10). */
  readonly unit: LimitUnit;
  readonly unitMultiplier: number;
  /** The same period in microseconds: whole seconds, 1 s to `drainTimeUsMax`. */
  readonly periodUs: number;
  /** Hits that fit into an empty bucket, 0 to `hitsMax`; 0 exactly when `hits` is 0. */
  readonly burst: number;
  readonly role: Role;
  /** What a call of zero hits finds over: debt above the burst, or also when no hit is left. */
  readonly peek: "debt" | "exhausted";
  readonly onStoreFailure: FailureMode;
}

/** One level of a rule's path: a descriptor entry it accepts. */
export interface PathStep {
  readonly key: string;
  /** Exact text, or a pattern when it holds `*`; absent accepts any value. */
  readonly value?: string;
}

/** What a matched descriptor meets. */
export type RuleEffect =
  /** Charged against each of the limits; at least one. */
  | { readonly kind: "limited"; readonly limits: readonly Limit[] }
  /** Passes without any state (`unlimited: true`). */
  | { readonly kind: "unlimited"; readonly name?: string }
  /** A place in the tree with no limit of its own: passes, and deeper rules hang below it. */
  | { readonly kind: "none" };

/** One descriptor of the policy's tree, with the path that leads to it. */
export interface Rule {
  readonly domain: string;
  /** Never empty. Rules arrive parents first, siblings in file order. */
  readonly path: readonly PathStep[];
  readonly effect: RuleEffect;
  /** `key_value.key2` of the path: the name in metrics, logs and explanations; policy text only. */
  readonly label: string;
  /** Position among the policy's rules, 0-based: the index of its counters. */
  readonly index: number;
}
