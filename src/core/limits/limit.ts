import type { JsonObject } from "../base/json.js";

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
  | "settle"
  /** Stored as `settle` is, and never denies. */
  | "shadowSettle"
  /** Stored as `settle` is, and denies as `quota` does. */
  | "quotaSettle";

/** When an over limit denies: by itself, never, or only with all others of its kind. */
export type Denial = Extract<Role, "enforce" | "shadow" | "quota">;

const settledRoles: Readonly<Record<Denial, Role>> = {
  enforce: "settle",
  shadow: "shadowSettle",
  quota: "quotaSettle",
};

const denials: Readonly<Record<Role, Denial>> = {
  enforce: "enforce",
  shadow: "shadow",
  quota: "quota",
  settle: "enforce",
  shadowSettle: "shadow",
  quotaSettle: "quota",
};

/** When an over limit of that role denies. */
export function denialOf(role: Role): Denial {
  return denials[role];
}

/** The role that denies so, and whose charges are stored whatever is decided. */
export function settledRole(denial: Denial): Role {
  return settledRoles[denial];
}

/** Whether a charge of that role is stored whatever is decided. */
export function isSettled(role: Role): boolean {
  return role !== denials[role];
}

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

/** How a limit counts. Each keeps its state apart. */
export type Algorithm =
  /** A bucket that drains all the time: at most `burst` at once. The default. */
  | { readonly kind: "gcra" }
  /**
   * At most `hits` from the beginning of a period to the next; `burst` is `hits`.
   *
   * Without a time zone, periods are counted from the Unix epoch by their length (`periodUs`: a
   * week begins on a Thursday, a month has 30 days), as in envoyproxy/ratelimit. With one they are
   * hours, days, weeks from Monday, months and years of the calendar there, and `unit` says which:
   * `hour` or longer, `unitMultiplier` 1; `periodUs` is their nominal length only.
   */
  | {
      readonly kind: "fixed_window";
      /** A name of the IANA database that this process knows. */
      readonly timeZone?: string;
    };

/** What holds for limits that do not say it themselves. */
export interface LimitDefaults {
  readonly onStoreFailure: FailureMode;
  readonly algorithm: Algorithm["kind"];
  /** Absent: `defaultOverrideMax`. */
  readonly overrideMax?: number;
  /** Absent: `defaultDisclosure`. */
  readonly disclosure?: RuleDisclosure;
}

/** Limits that drain, and are answered by this process while the store is away. */
export const defaultDefaults: LimitDefaults = { onStoreFailure: "local", algorithm: "gcra" };

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
  /** Absent: gcra. */
  readonly algorithm?: Algorithm;
  readonly role: Role;
  /** What a call of zero hits finds over: debt above the burst, or also when no hit is left. */
  readonly peek: "debt" | "exhausted";
  readonly onStoreFailure: FailureMode;
  /** How many times as much an operator's override may give. Absent: `defaultOverrideMax`. */
  readonly overrideMax?: number;
}

/** One level of a rule's path: a descriptor entry it accepts. */
export interface PathStep {
  /** Exact text, or a pattern when it holds `*`. */
  readonly key: string;
  /** Exact text, or a pattern when it holds `*`; absent accepts any value. */
  readonly value?: string;
}

/** Whether a step is compared as a pattern: its key or its value holds `*`. */
export function isPattern({ key, value }: PathStep): boolean {
  return key.includes("*") || value?.includes("*") === true;
}

/** What a matched descriptor meets. */
export type RuleEffect =
  /** Charged against each of the limits; at least one. */
  | { readonly kind: "limited"; readonly limits: readonly Limit[] }
  /** Passes without any state (`unlimited: true`). */
  | { readonly kind: "unlimited"; readonly name?: string }
  /** A place in the tree with no limit of its own: passes, and deeper rules hang below it. */
  | { readonly kind: "none" };

/** One level of a rule's name in metrics. */
export type MetricStep =
  /** The policy's own text, whatever was asked: `key`, `key_value` or `key_pattern`. */
  | { readonly kind: "policy"; readonly text: string }
  /** `key_value` of the request's entry; its key alone when the value is empty. */
  | { readonly kind: "request" };

/** Which headers a response carries for a rule. */
export type HeaderStyle =
  /** `x-ratelimit-limit`, `-remaining` and `-reset`. */
  | "x-ratelimit"
  /** `RateLimit` and `RateLimit-Policy`. Source: draft-ietf-httpapi-ratelimit-headers. */
  | "ietf"
  /** None, whatever the process is told. */
  | "none";

/** A body for refusals: `problem+json` says the limit and the wait. Source: RFC 9457. */
export type BodyStyle = "problem+json";

/** Where refusals say which rule it was. */
export interface RuleDisclosure {
  /** In a response header, to whoever asked. Default false: a stranger would learn by it. */
  readonly header: boolean;
  /** In Envoy's dynamic metadata, for its access log and later filters. Default true. */
  readonly metadata: boolean;
  /** In a sample of log lines of Headgate's own. Default true. */
  readonly log: boolean;
}

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
  /**
   * Names of limits that do not count for a request that meets this rule, also where this rule is
   * replaced itself. Never a name of its own; absent when there are none. A limit that is left out
   * this way is neither charged nor reported; an unlimited rule is never left out.
   *
   * Source: envoyproxy/ratelimit, `replaces` in ShouldRateLimit.
   */
  readonly replaces?: readonly string[];
  /**
   * By entry: what stands in keys in place of the entry's value, so that all values that match a
   * pattern share one bucket (`share_threshold`). Undefined where the value itself counts; absent
   * when it does everywhere.
   */
  readonly sharePatterns?: readonly (string | undefined)[];
  /**
   * By entry: the rule's name in metrics where values of requests are wanted in it
   * (`detailed_metric`, `value_to_metric`), to be joined by `.`; as many as the path has steps.
   * Absent where the label says it all. What it makes is the caller's text: bound it, escape it.
   */
  readonly metricPath?: readonly MetricStep[];
  /** What the response's dynamic metadata says when the rule lets a request pass; frozen. */
  readonly metadata?: JsonObject;
  /**
   * Whether its limits settle from the first call on that peeks at them: its file has no word for
   * costs that are told after the response, and charges whatever comes. Absent: they do not.
   *
   * Source: envoyproxy/ratelimit, where hits count whether or not they are over.
   */
  readonly settlesOncePeeked?: true;
  /** Absent: as the process is told. */
  readonly headers?: HeaderStyle;
  /** What a caller who is refused by this rule finds in the response's body; absent: nothing. */
  readonly body?: BodyStyle;
  /** Where its refusals name it. Absent: `defaultDisclosure`. */
  readonly disclosure?: RuleDisclosure;
}

/** The limits of a rule; none where it has no say, or lets everything pass. */
export function limitsOf({ effect }: Pick<Rule, "effect">): readonly Limit[] {
  return effect.kind === "limited" ? effect.limits : [];
}
