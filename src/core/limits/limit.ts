import type { HeaderField } from "../base/header-field.js";
import type { JsonObject } from "../base/json.js";

/** Identifies a bucket in the store. Only `key.ts` creates it. */
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

/** How a limit takes part in the decision of a request. */
export type Role =
  /** If over, the request is denied. */
  | "enforce"
  /** Evaluated and counted, but never denies. */
  | "shadow"
  /** Denies only if all quota limits of the request are over. */
  | "quota"
  /** Always charged, into debt of at most one more burst. Over above the burst. */
  | "settle"
  /** Charged like `settle`, but never denies. */
  | "shadowSettle"
  /** Charged like `settle`, and denies like `quota`. */
  | "quotaSettle";

/**
 * When a limit that is over denies: independently, never, or only together with all of its kind.
 */
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

/** Returns when a limit of this role denies. */
export function denialOf(role: Role): Denial {
  return denials[role];
}

/** Returns the role with this denial whose charges are stored regardless of the decision. */
export function settledRole(denial: Denial): Role {
  return settledRoles[denial];
}

/** Whether a charge of this role is stored regardless of the decision. */
export function isSettled(role: Role): boolean {
  return role !== denials[role];
}

/** How a limit is decided while the store is unavailable. */
export type FailureMode =
  /** GCRA in this process, with the limit divided by the number of replicas. The default. */
  | "local"
  /** The request is not limited. */
  | "allow"
  /** The request is over the limit. */
  | "deny"
  /** The call fails with a gRPC error, so that Envoy's own failure mode applies. */
  | "error";

/** The largest burst, and the largest hits of a period. Source: uint32 in the RLS messages. */
export const hitsMax = 4_294_967_295;

/**
 * The longest time that a full bucket may take to drain: ten years of 365 days, in microseconds.
 */
export const drainTimeUsMax = 10 * 31_536_000 * 1_000_000;

/** How a limit counts. Each algorithm has its own state. */
export type Algorithm =
  /** A bucket that drains continuously and holds at most `burst`. The default. */
  | { readonly kind: "gcra" }
  /**
   * At most `hits` per window; `burst` equals `hits`.
   *
   * Without a time zone, windows are multiples of `periodUs` since the Unix epoch, as in
   * envoyproxy/ratelimit: a week starts on a Thursday, and a month has 30 days. With a time zone,
   * they are calendar hours, days, weeks from Monday, months and years there. `unit` is then `hour`
   * or longer, `unitMultiplier` is 1, and `periodUs` is only the nominal length.
   */
  | {
      readonly kind: "fixed_window";
      /** A name in the IANA time zone database of this process. */
      readonly timeZone?: string;
    };

/** Defaults for limits that do not define these settings. */
export interface LimitDefaults {
  readonly onStoreFailure: FailureMode;
  readonly algorithm: Algorithm["kind"];
  /** Absent: `defaultOverrideMax`. */
  readonly overrideMax?: number;
  /** Absent: `defaultDisclosure`. */
  readonly disclosure?: RuleDisclosure;
}

/** GCRA limits, which this process decides itself while the store is unavailable. */
export const defaultDefaults: LimitDefaults = { onStoreFailure: "local", algorithm: "gcra" };

/** What happens to a request over a limit instead of a refusal. */
export type OverLimit =
  /**
   * With ext_proc, the request is charged, and held until it fits. It is refused if it would be
   * held for longer than `maxMs` (1 to 60,000). RateLimitService refuses it at once.
   */
  | { readonly kind: "delay"; readonly maxMs: number }
  /** The request passes, with headers that inform the upstream. */
  | { readonly kind: "annotate"; readonly headers: readonly HeaderField[] }
  /**
   * The request passes to another cluster, or with a header that its route matches. ext_proc only:
   * with RateLimitService, the header is added, but Envoy does not select the route again.
   */
  | { readonly kind: "fallback"; readonly to: FallbackRoute };

/** The route of a request that falls back because of a limit or a budget. */
export type FallbackRoute =
  | { readonly kind: "cluster"; readonly cluster: string }
  | { readonly kind: "header"; readonly header: HeaderField };

/** One limit of a rule: the rate and capacity of its buckets, and the effect of a full one. */
export interface Limit {
  /** The name in the policy. Absent if there is none. */
  readonly name?: string;
  /** Hits that drain in one period, 0 (denies everything) to `hitsMax`. */
  readonly hits: number;
  /** The period as a unit and an integer multiple of it, as Envoy reports it (10 s: second, 10). */
  readonly unit: LimitUnit;
  readonly unitMultiplier: number;
  /** The same period in microseconds: whole seconds, 1 s to `drainTimeUsMax`. */
  readonly periodUs: number;
  /** The capacity of an empty bucket in hits, 0 to `hitsMax`; 0 exactly if `hits` is 0. */
  readonly burst: number;
  /** Absent: gcra. */
  readonly algorithm?: Algorithm;
  readonly role: Role;
  /**
   * Absent: the request is refused. `delay`: `role` is enforce or shadow, with gcra. `annotate` and
   * `fallback`: `role` is shadow, because no request is refused, and requests over the limit are
   * not charged.
   */
  readonly over?: OverLimit;
  /** Requests that pass get these headers while at least this ratio is used. Absent: none do. */
  readonly warn?: { readonly atRatio: number; readonly headers: readonly HeaderField[] };
  /** When a call with zero hits is over: if in debt above the burst, or also if no hit is left. */
  readonly peek: "debt" | "exhausted";
  readonly onStoreFailure: FailureMode;
  /**
   * The maximum factor by which an operator's override may raise it. Absent: `defaultOverrideMax`.
   */
  readonly overrideMax?: number;
  /**
   * `global`: one budget for all regions. Each region enforces its part, and lends what it does not
   * use. Absent: each region counts the limit separately, in its own store.
   */
  readonly spread?: "global";
}

/** One level of a rule's path: the descriptor entry that it matches. */
export interface PathStep {
  /** Exact text, or a pattern if it contains `*`. */
  readonly key: string;
  /** Exact text, or a pattern if it contains `*`. Absent: matches any value. */
  readonly value?: string;
}

/** Whether a step is a pattern: its key or its value contains `*`. */
export function isPattern({ key, value }: PathStep): boolean {
  return key.includes("*") || value?.includes("*") === true;
}

/** What applies to a matched descriptor. */
export type RuleEffect =
  /** Charged against each of the limits, at least one. */
  | { readonly kind: "limited"; readonly limits: readonly Limit[] }
  /** Allowed without any state (`unlimited: true`). */
  | { readonly kind: "unlimited"; readonly name?: string }
  /** A node of the tree without a limit: allowed, and possibly with deeper rules. */
  | { readonly kind: "none" };

/** One level of a rule's name in metrics. */
export type MetricStep =
  /** Text from the policy, the same for all requests: `key`, `key_value` or `key_pattern`. */
  | { readonly kind: "policy"; readonly text: string }
  /** `key_value` of the request's entry, or only the key if the value is empty. */
  | { readonly kind: "request" };

/** The headers that a response has for a rule. */
export type HeaderStyle =
  /** `x-ratelimit-limit`, `-remaining` and `-reset`. */
  | "x-ratelimit"
  /** `RateLimit` and `RateLimit-Policy`. Source: draft-ietf-httpapi-ratelimit-headers. */
  | "ietf"
  /** No headers, regardless of the process settings. */
  | "none";

/** A body for refusals: `problem+json` states the limit and the wait. Source: RFC 9457. */
export type BodyStyle = "problem+json";

/** Where refusals name the rule that caused them. */
export interface RuleDisclosure {
  /** In a response header, for the caller. Default false: strangers could learn from it. */
  readonly header: boolean;
  /** In Envoy's dynamic metadata, for its access log and later filters. Default true. */
  readonly metadata: boolean;
  /** In Headgate's own log, as a sample. Default true. */
  readonly log: boolean;
}

/** One descriptor of the policy's tree, with the path that leads to it. */
export interface Rule {
  readonly domain: string;
  /** Never empty. Parents come before their children, and siblings are in file order. */
  readonly path: readonly PathStep[];
  readonly effect: RuleEffect;
  /** The name in metrics, logs and explanations: `key_value.key2` of the path, policy text only. */
  readonly label: string;
  /** Position among the policy's rules, from 0. Also the index of its counters. */
  readonly index: number;
  /**
   * Names of limits that do not apply to a request that matches this rule, even if this rule is
   * replaced itself. Never one of its own names. Absent if there are none. A replaced limit is
   * neither charged nor reported. An unlimited rule is never replaced.
   *
   * Source: envoyproxy/ratelimit, `replaces` in ShouldRateLimit.
   */
  readonly replaces?: readonly string[];
  /**
   * By entry: the text that replaces the entry's value in keys, so that all values that match a
   * pattern share one bucket (`share_threshold`). Undefined for an entry whose own value is used.
   * Absent if that is the case for all entries.
   */
  readonly sharePatterns?: readonly (string | undefined)[];
  /**
   * By entry: the rule's name in metrics if it includes values of requests (`detailed_metric`,
   * `value_to_metric`), to be joined by `.`. Has one element for each step of the path. Absent if
   * the name is the label. The result contains the caller's text: bound it and escape it.
   */
  readonly metricPath?: readonly MetricStep[];
  /** Dynamic metadata of the response if the rule lets a request pass. Frozen. */
  readonly metadata?: JsonObject;
  /**
   * Whether its limits settle from the first call that peeks at them: its file format cannot mark
   * costs that are reported after the response, and charges every cost. Absent: they do not.
   *
   * Source: envoyproxy/ratelimit, where hits count whether or not they are over.
   */
  readonly settlesOncePeeked?: true;
  /** Absent: as configured for the process. */
  readonly headers?: HeaderStyle;
  /** The response body for a caller that this rule refuses. Absent: none. */
  readonly body?: BodyStyle;
  /** Where refusals name this rule. Absent: `defaultDisclosure`. */
  readonly disclosure?: RuleDisclosure;
}

/** Returns the limits of a rule. Empty if the rule has no limit or is unlimited. */
export function limitsOf({ effect }: Pick<Rule, "effect">): readonly Limit[] {
  return effect.kind === "limited" ? effect.limits : [];
}
