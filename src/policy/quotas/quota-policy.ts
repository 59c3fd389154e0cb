import { matcherCondition } from "../cel/condition-text.js";
import { headerMatches, type TextMatch } from "../services/descriptor-parts.js";
import { servicesMax } from "../services/service-list.js";
import { number, ruledText } from "../text/form.js";
import { field, inner, items, object, placed } from "../text/object.js";
import type { NumberBounds } from "../text/quantities.js";
import { label, quotaName } from "../text/service-texts.js";
import { domainRule } from "../text/text-rules.js";
import { bucketExpected, bucketParts, type QuotaPart, quotaClasses } from "./quota-parts.js";
import {
  beforeAssignmentField,
  quotaDenial,
  quotaExpiry,
  quotaRate,
  ttlField,
} from "./quota-settings.js";

/** Expected content of `services` of a quota, for messages. */
export const servicesExpected = "a list of services' names; left out: all";

/** The bounds of `callsShare`. */
export const callsShareBounds: NumberBounds = { min: 0, max: 0.9 };

/** Default of `callsShare` if a quota has no rate of its own. */
export const callsShareDefault = 0.1;

/** An item of `quotas`. */
export const quota = object(
  {
    title: "a quota",
    docs: "Requests that Envoys admit locally, within assignments from Headgate.",
  },
  {
    name: field(placed(quotaName), "The name in buckets, metrics and generated configuration.", {
      needs: "the quota's name",
    }),
    domain: field(placed(ruledText(domainRule)), "A domain of `rateLimits`.", {
      needs: "a domain of rateLimits",
    }),
    services: field(
      items(placed(label), { expected: servicesExpected, max: servicesMax, min: 1 }),
      "Services whose requests count. Default: all requests of all proxies.",
      { added: "looser" },
    ),
    match: field(headerMatches, "Header conditions that a request must all match.", {
      added: "looser",
      default: [],
    }),
    when: field(
      matcherCondition,
      "A CEL condition on the request, which Envoy evaluates. It supports " +
        "everything that conditions support, except `lowerAscii`. Default: all " +
        "requests.",
      { added: "looser" },
    ),
    bucket: field(
      bucketParts,
      "The entries of a bucket, in this order a descriptor of the domain.",
      { needs: bucketExpected },
    ),
    rate: field(
      inner(quotaRate),
      "The limit of the quota: at least one hit an hour, always `gcra`. Default: " +
        "the limits of the domain that its buckets match.",
    ),
    classes: field(
      inner(quotaClasses),
      "Weights of requests. Default: all requests weigh the same.",
    ),
    callsShare: field(
      number(callsShareBounds),
      "The part of the rate that is reserved for RLS calls while more than half of " +
        "the limit is in use. Default: 0 if `rate` is set.",
      {
        isGenerated: false,
        larger: "stricter",
        as: "callsShareRatio",
        dependentDefault: callsShareDefault,
      },
    ),
    ttl: ttlField,
    beforeAssignment: beforeAssignmentField,
    afterExpiry: field(
      inner(quotaExpiry),
      "What an Envoy does when an assignment expires without a new one.",
      { default: quotaExpiry.defaults },
    ),
    deny: field(inner(quotaDenial), "The response to a request that is over the quota.", {
      default: quotaDenial.defaults,
    }),
  },
);

type ReadQuota = typeof quota.defaults;

/** Properties of a quota that are known after the whole policy is read. */
interface Finished {
  /** Unique in the policy. */
  readonly name: string;
  /** One of the policy's domains. */
  readonly domain: string;
  /** Names of services; undefined: every request of every proxy. */
  readonly services: readonly string[] | undefined;
  /** Header conditions that a request must all match; empty: none. */
  readonly match: readonly TextMatch[];
  /**
   * At least one. In this order, its entries are a descriptor of the domain. The bucket gets shares
   * of the limits that this descriptor matches.
   */
  readonly bucket: readonly QuotaPart[];
  readonly callsShareRatio: number;
  readonly afterExpiry: ExpiredQuota;
}

/**
 * Requests that Envoys admit locally, within assignments from Headgate. Plain data.
 *
 * A bucket's id has the entries `quota` (the name), `class` (the class header's value) if the
 * request has a class, and one entry for each part of `bucket`.
 */
export type QuotaPolicy = Omit<ReadQuota, "rate" | keyof Finished> & Finished;

/** Handling of a bucket after its assignment expires; after `forSeconds`, as before the first. */
export interface ExpiredQuota {
  /** Whole seconds, 2 to 86,400. Default 3,600. */
  readonly forSeconds: number;
  readonly fallback:
    | { readonly kind: "blanket"; readonly rule: "allow" | "deny" }
    /** Tokens for each bucket of each Envoy: the limit, divided by proxies and classes. */
    | { readonly kind: "tokens"; readonly rate: QuotaRate };
}

/** A rate and a burst. */
export interface QuotaRate {
  /** 1 to `hitsMax`. */
  readonly hits: number;
  /** Whole seconds from 1: Envoy drops fractions, and 0 s would admit everything. */
  readonly periodSeconds: number;
  /** 1 to `hitsMax`. */
  readonly burst: number;
}
