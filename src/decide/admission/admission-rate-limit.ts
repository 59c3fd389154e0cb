import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { ReportedRule } from "../../core/limits/reported-rule.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import type { Verdict } from "../../core/limits/verdict.js";
import { descriptorText } from "../../policy/services/callers.js";
import type { AskablePart, DescriptorPart } from "../../policy/services/descriptor-parts.js";
import type { ServiceRateLimit } from "../../policy/services/service-rate-limit.js";
import type { Decider } from "../rate-limit/decider.js";
import { type PreparedQuery, preparedBytes } from "../rate-limit/prepared-query.js";
import type { DescriptorQuery, RateLimitQuery } from "../rate-limit/query.js";
import { ReportedRules, refusingRule } from "../rate-limit/refusing-rule.js";
import type { AdmissionRequest } from "./admission-call.js";
import type { DelayedRequests } from "./delayed-requests.js";

/** The part of `Decider` that checks rate limits. */
export type RateLimitDecider = Pick<Decider, "prepare" | "isCurrent" | "ask"> &
  Partial<Pick<Decider, "wantsQuery">>;

/** The result of a rate limit check. */
export type RateLimitAnswer =
  | { readonly kind: "passes"; readonly marks?: RequestMarks }
  /** The request passes after this time. Its place among `DelayedRequests` is reserved. */
  | { readonly kind: "delayed"; readonly delayMs: number; readonly marks?: RequestMarks }
  | {
      readonly kind: "denied";
      /** Time until the same request passes, in milliseconds. */
      readonly retryMs: number;
      /** The rule that denied it. Undefined if unknown. */
      readonly reportedRule: ReportedRule | undefined;
    }
  /** No result (`on_store_failure: error`, no time left). */
  | { readonly kind: "failed" };

/** Maximum size of the cached queries of one service, in bytes. */
export const keptQueriesBytesMax = 8_388_608;

/** Queries with longer values are rare, and are matched each time. */
const keptNameCharsMax = 1_024;

const passes: RateLimitAnswer = { kind: "passes" };
const failed: RateLimitAnswer = { kind: "failed" };

/** Returns the query for a request. Undefined: nothing to check. */
type QueryOf = (
  request: Pick<AdmissionRequest, "headers" | "attributes">,
) => RateLimitQuery | undefined;

/** Checks the rate limits of a service or a waiting room in the call that admits a request. */
export class RateLimitAsker {
  readonly #decider: RateLimitDecider;
  readonly #queryOf: QueryOf;
  readonly #delayed: DelayedRequests | undefined;
  readonly #kept = new GenerationalMap<string, PreparedQuery>(
    keptQueriesBytesMax,
    (name, prepared) => 2 * name.length + preparedBytes(prepared),
  );
  readonly #reportedRules = new ReportedRules();

  /** @param delayed holds delayed requests; undefined: no query can be delayed */
  constructor(decider: RateLimitDecider, queryOf: QueryOf, delayed?: DelayedRequests) {
    this.#decider = decider;
    this.#queryOf = queryOf;
    this.#delayed = delayed;
  }

  /**
   * Charges a request.
   *
   * @param deadlineMs when the caller stops waiting, on the monotonic clock; Infinity if unknown
   * @param answered called exactly once, possibly before this returns
   */
  ask(
    request: AdmissionRequest,
    deadlineMs: number,
    answered: (answer: RateLimitAnswer) => void,
  ): void {
    const query = this.#queryOf(request);
    if (query === undefined) {
      answered(passes);
      return;
    }
    let prepared: PreparedQuery;
    try {
      prepared = this.#prepare(query);
    } catch {
      // The decider has counted the error, whose message may contain values of a caller.
      answered(failed);
      return;
    }
    const place = prepared.delayUs > 0 && this.#delayed?.reserve() ? this.#delayed : undefined;
    this.#decider.ask(prepared, {
      hits: 1,
      deadlineMs,
      refusesAtOnce: place === undefined,
      query: this.#decider.wantsQuery?.(prepared) === true ? query : undefined,
      decided: (verdict) => {
        if (verdict.delayUs === undefined) place?.release();
        answered(this.#answerOf(prepared, verdict));
      },
      failed: () => {
        place?.release();
        answered(failed);
      },
    });
  }

  #answerOf(prepared: PreparedQuery, verdict: Verdict): RateLimitAnswer {
    const { delayUs, marks } = verdict;
    const marked = marks === undefined ? {} : { marks };
    if (delayUs !== undefined) return { kind: "delayed", delayMs: delayUs / 1_000, ...marked };
    if (!verdict.isDenied) return marks === undefined ? passes : { kind: "passes", marks };
    let retryUs = 0;
    for (const { isOver, durationUntilResetUs = 0 } of verdict.statuses) {
      if (isOver && durationUntilResetUs > retryUs) retryUs = durationUntilResetUs;
    }
    const refusing = refusingRule(prepared, verdict);
    const reportedRule = refusing && this.#reportedRules.of(refusing);
    return { kind: "denied", retryMs: retryUs / 1_000, reportedRule };
  }

  #prepare(query: RateLimitQuery): PreparedQuery {
    const name = nameOf(query);
    const known = this.#kept.get(name);
    if (known !== undefined && this.#decider.isCurrent(known)) return known;
    const isShort = name.length <= keptNameCharsMax;
    const isKept = isShort && (known !== undefined || this.#kept.wantsMore());
    const prepared = this.#decider.prepare(query, isKept);
    if (isKept) this.#kept.set(name, prepared);
    return prepared;
  }
}

/**
 * Returns the query that Envoy's rate limit filter would send for a request. As in Envoy, a
 * descriptor is omitted if the request lacks one of its parts. Undefined if none is left.
 */
export function rateLimitQuery(
  { domain, descriptors }: ServiceRateLimit,
  request: Pick<AdmissionRequest, "headers" | "attributes">,
): RateLimitQuery | undefined {
  const asked: DescriptorQuery[] = [];
  for (const { parts, hits, isRefund, when } of descriptors) {
    // Only Envoy reports values that the response determines, and costs that it extracts itself.
    if (when !== "request" || hits.kind !== "fixed") continue;
    const entries = entriesOf(parts, request);
    if (entries !== undefined) asked.push({ entries, hits: hits.count, isRefund });
  }
  return asked.length === 0 ? undefined : { domain, descriptors: asked, canDelay: true };
}

function entriesOf(
  parts: readonly DescriptorPart[],
  request: Pick<AdmissionRequest, "headers" | "attributes">,
): readonly DescriptorEntry[] | undefined {
  const entries: DescriptorEntry[] = [];
  for (const part of parts) {
    if (!isAskable(part)) return undefined;
    const value = descriptorText(part, request);
    if (value === undefined) return undefined;
    entries.push({ key: part.key, value });
  }
  return entries;
}

/** Whether a part is known without Envoy's own filter. A policy asks for no others here. */
function isAskable(part: DescriptorPart): part is AskablePart {
  return part.kind === "fixed" || part.kind === "header" || part.kind === "remoteAddress";
}

/** Identifies a query. Keys come from the policy in its order, so values tell queries apart. */
function nameOf({ descriptors }: RateLimitQuery): string {
  let name = "";
  for (const { entries } of descriptors) {
    name += `${entries.length}:`;
    for (const { key, value = "" } of entries) name += `${key}=${value.length}:${value}`;
  }
  return name;
}
