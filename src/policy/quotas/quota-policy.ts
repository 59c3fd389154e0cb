import type { DescriptorPart, TextMatch } from "../services/service-policy.js";

/** The entry of a bucket id that names its class; no part of a bucket may have this key. */
export const quotaClassKey = "class";

/**
 * Requests that Envoys let pass by themselves, by what Headgate assigns them. Plain data.
 *
 * A bucket's id has the entries `quota` (the name) and, where the request is of a class, `class`
 * (the class header's value), and one entry for each part of `bucket`.
 */
export interface QuotaPolicy {
  /** No other quota of the policy has it. */
  readonly name: string;
  /** One of the policy's domains. */
  readonly domain: string;
  /** Names of services; undefined: every request of every proxy. */
  readonly services: readonly string[] | undefined;
  /** Headers that a request must have, all of them; empty: none. */
  readonly match: readonly TextMatch[];
  /** A condition in CEL that a request must meet; undefined: none. */
  readonly when: string | undefined;
  /**
   * What makes up a bucket; at least one. In this order its entries are a descriptor of the domain,
   * and the limits that it meets are what the bucket is given of.
   */
  readonly bucket: readonly QuotaPart[];
  /** Who gets more of a limit than others; undefined: all the same. */
  readonly classes: QuotaClasses | undefined;
  /**
   * Share of the rate that is kept for RLS calls while the limit is more than half used, 0 to 0.9.
   * Default 0.1, and 0 for a quota with a rate of its own.
   */
  readonly callsShareRatio: number;
  /** How long an assignment holds: whole seconds, 2 to 300. Default 10. */
  readonly ttlSeconds: number;
  /** What Envoy does with a bucket's requests until it is told. Default "allow". */
  readonly beforeAssignment: QuotaBlanket;
  /** What it does when an assignment is over and no other came. */
  readonly afterExpiry: ExpiredQuota;
  readonly deny: QuotaDenial;
}

/** Everything or nothing. */
export type QuotaBlanket = "allow" | "deny";

/** Where one entry of a bucket id comes from: parts that Envoy's quota filter can make. */
export type QuotaPart = QuotaPartSource & {
  /**
   * The value where a request does not say it; undefined: the quota leaves such a request alone.
   * Always undefined for an address and for a fixed value.
   */
  readonly fallback: string | undefined;
};

/** The parts of descriptors that a bucket may be made of. */
export type QuotaPartSource = Extract<
  DescriptorPart,
  { readonly kind: "remoteAddress" | "header" | "query" | "fixed" }
>;

/** Classes of requests, told by a header. Each Envoy has a bucket of its own for each class. */
export interface QuotaClasses {
  /** In lower case. */
  readonly header: string;
  /**
   * By the header's value, 1 to 1,000. A request with none of them is of no class (its bucket id
   * has no such entry), and weighs 1.
   */
  readonly weights: Readonly<Record<string, number>>;
}

/** What Envoy does with a bucket after its assignment; `forSeconds` later as before the first. */
export interface ExpiredQuota {
  /** Whole seconds, 2 to 86,400. Default 3,600. */
  readonly forSeconds: number;
  readonly fallback:
    | { readonly kind: "blanket"; readonly rule: QuotaBlanket }
    /** So much for each bucket of each Envoy: the limit's, divided by proxies and classes. */
    | { readonly kind: "tokens"; readonly rate: QuotaRate };
}

/** How fast, and how much at once. */
export interface QuotaRate {
  /** 1 to `hitsMax`. */
  readonly hits: number;
  /** Whole seconds from 1: Envoy drops what is beyond them, and 0 s let everything pass. */
  readonly periodSeconds: number;
  /** 1 to `hitsMax`. */
  readonly burst: number;
}

/** What a caller gets whose request is over its quota. */
export interface QuotaDenial {
  /** 400 to 599. Default 429. */
  readonly status: number;
  /** Also the message of a gRPC call's status: Envoy has one text for both. Default none. */
  readonly body: string | undefined;
  /** In the order of the policy; `retry-after` comes first, by default 1. */
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  /** 1 to 16. Default 8, RESOURCE_EXHAUSTED: Envoy's own is UNAVAILABLE, which is retried. */
  readonly grpcStatus: number;
}
