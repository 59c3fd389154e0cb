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

/** What rate limits are asked of. */
export type RateLimitDecider = Pick<Decider, "prepare" | "isCurrent" | "ask"> &
  Partial<Pick<Decider, "wantsQuery">>;

/** What a rate limit says to a request. */
export type RateLimitAnswer =
  | { readonly kind: "passes"; readonly marks?: RequestMarks }
  /** It passes after this time. Its place among `DelayedRequests` is reserved. */
  | { readonly kind: "delayed"; readonly delayMs: number; readonly marks?: RequestMarks }
  | {
      readonly kind: "denied";
      /** In which time the same request passes. */
      readonly retryMs: number;
      /** The rule that it meets; undefined where nobody knows. */
      readonly reportedRule: ReportedRule | undefined;
    }
  /** Nobody could say (`on_store_failure: error`, no time left). */
  | { readonly kind: "failed" };

/** The most bytes of queries of one service that are kept with what they match. */
export const keptQueriesBytesMax = 8_388_608;

/** Queries with longer values are matched each time: few are. */
const keptNameCharsMax = 1_024;

const passes: RateLimitAnswer = { kind: "passes" };
const failed: RateLimitAnswer = { kind: "failed" };

/** What is asked for a request; undefined: nothing. */
type QueryOf = (
  request: Pick<AdmissionRequest, "headers" | "attributes">,
) => RateLimitQuery | undefined;

/** Asks for rate limits in the call that admits a request: those of a service, or of one place. */
export class RateLimitAsker {
  readonly #decider: RateLimitDecider;
  readonly #queryOf: QueryOf;
  readonly #delayed: DelayedRequests | undefined;
  readonly #kept = new GenerationalMap<string, PreparedQuery>(
    keptQueriesBytesMax,
    (name, prepared) => 2 * name.length + preparedBytes(prepared),
  );
  readonly #reportedRules = new ReportedRules();

  /** @param delayed where requests are held; undefined: no query can be delayed */
  constructor(decider: RateLimitDecider, queryOf: QueryOf, delayed?: DelayedRequests) {
    this.#decider = decider;
    this.#queryOf = queryOf;
    this.#delayed = delayed;
  }

  /**
   * Charges a request. @param answered told exactly once, maybe before this returns
   *
   * @param deadlineMs when its caller stops waiting, on the monotonic clock; Infinity when unknown
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
      // The decider has counted it, and its words may hold a caller's values.
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
 * What Envoy's rate-limit filter would ask for a request. A descriptor with a part that the request
 * does not have is left out, as in Envoy; undefined where none is left.
 */
export function rateLimitQuery(
  { domain, descriptors }: ServiceRateLimit,
  request: Pick<AdmissionRequest, "headers" | "attributes">,
): RateLimitQuery | undefined {
  const asked: DescriptorQuery[] = [];
  for (const { parts, hits, isRefund, when } of descriptors) {
    // What is known after the response only, and costs that Envoy finds, are Envoy's to tell.
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

/** Whether a part's value is known without Envoy's own filter; a policy asks for no others here. */
function isAskable(part: DescriptorPart): part is AskablePart {
  return part.kind === "fixed" || part.kind === "header" || part.kind === "remoteAddress";
}

/** Keys are the policy's and in its order, so what tells queries apart is their values. */
function nameOf({ descriptors }: RateLimitQuery): string {
  let name = "";
  for (const { entries } of descriptors) {
    name += `${entries.length}:`;
    for (const { key, value = "" } of entries) name += `${key}=${value.length}:${value}`;
  }
  return name;
}
