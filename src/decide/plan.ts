import { ServiceError } from "../core/errors.js";
import type { Charge } from "../core/gcra.js";
import { limitKey, overrideKey } from "../core/key.js";
import {
  drainTimeUsMax,
  type Limit,
  type LimitKey,
  type Rule,
  unitSeconds,
} from "../core/limit.js";
import type { DecidedLimit } from "../core/verdict.js";
import type { Policy } from "../policy/policy.js";
import { requestChargesMax } from "../store/limit-store.js";
import type { DescriptorQuery, LimitOverride, RateLimitQuery } from "./query.js";

/** What one descriptor of a query meets, and where its charges stand in the plan. */
export type PlannedDescriptor =
  | { readonly kind: "unmatched" }
  | { readonly kind: "unlimited"; readonly rule: Rule }
  | {
      readonly kind: "limited";
      /** Absent when the request carried the limit itself. */
      readonly rule?: Rule;
      readonly firstCharge: number;
      readonly chargeCount: number;
    };

/** A limit, and what is asked of its bucket. */
export interface LimitAsk {
  readonly limit: Limit;
  readonly charge: Charge;
}

/** A query against one policy: its charges, and how to read their results. */
export interface Plan {
  readonly isDomainKnown: boolean;
  readonly descriptors: readonly PlannedDescriptor[];
  /** One a limit of each limited descriptor, in their order. */
  readonly asks: readonly LimitAsk[];
}

/** A request as the law decided it, wherever it was decided. */
export interface DecidedRequest {
  readonly isDenied: boolean;
  /** One an ask of the plan, in its order. */
  readonly decided: readonly DecidedLimit[];
  readonly nowUs: number;
}

/**
 * Matches each descriptor and turns its limits into charges, in the query's order.
 *
 * Throws REQUEST_INVALID when there are more than `requestChargesMax` charges, or when a limit that
 * the request carries has a period above ten years.
 */
export function planQuery(policy: Policy, query: RateLimitQuery): Plan {
  const tree = policy.domains.get(query.domain);
  if (tree === undefined) {
    const descriptors = query.descriptors.map((): PlannedDescriptor => ({ kind: "unmatched" }));
    return { isDomainKnown: false, descriptors, asks: [] };
  }
  const asks: LimitAsk[] = [];
  const descriptors = query.descriptors.map((descriptor): PlannedDescriptor => {
    const firstCharge = asks.length;
    if (descriptor.override !== undefined) {
      const limit = overrideLimit(descriptor.override);
      const key = overrideKey(query.domain, descriptor.entries, limit);
      asks.push({ limit, charge: chargeFor(limit, key, descriptor) });
      return { kind: "limited", firstCharge, chargeCount: 1 };
    }
    const rule = tree.match(descriptor.entries);
    if (rule === undefined || rule.effect.kind === "none") return { kind: "unmatched" };
    if (rule.effect.kind === "unlimited") return { kind: "unlimited", rule };
    for (const limit of rule.effect.limits) {
      const key = limitKey(query.domain, descriptor.entries, limit);
      asks.push({ limit, charge: chargeFor(limit, key, descriptor) });
    }
    return { kind: "limited", rule, firstCharge, chargeCount: rule.effect.limits.length };
  });
  if (asks.length > requestChargesMax) {
    const detail = `It meets ${asks.length} limits, and the most is ${requestChargesMax}.`;
    throw new ServiceError("REQUEST_INVALID", detail);
  }
  return { isDomainKnown: true, descriptors, asks };
}

function chargeFor(limit: Limit, key: LimitKey, { hits, isRefund }: DescriptorQuery): Charge {
  return {
    key,
    hits: limit.hits,
    periodUs: limit.periodUs,
    burst: limit.burst,
    cost: hits,
    role: limit.role,
    isRefund,
    peekExhausted: limit.peek === "exhausted",
  };
}

/** A limit as a request carries it: enforced, with a burst of one period's hits, without a name. */
function overrideLimit({ hits, unit, unitMultiplier }: LimitOverride): Limit {
  const periodUs = unitSeconds[unit] * unitMultiplier * 1_000_000;
  if (periodUs > drainTimeUsMax) {
    throw new ServiceError("REQUEST_INVALID", "A limit it carries has a period above ten years.");
  }
  return {
    hits,
    unit,
    unitMultiplier,
    periodUs,
    burst: hits,
    role: "enforce",
    peek: "debt",
    onStoreFailure: "local",
  };
}
