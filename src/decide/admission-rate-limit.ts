import { GenerationalMap } from "../core/generational-map.js";
import type { DescriptorEntry } from "../core/key.js";
import type { Verdict } from "../core/verdict.js";
import type { DescriptorPart, ServiceRateLimit } from "../policy/service-policy.js";
import type { AdmissionRequest } from "./admission-call.js";
import { requestKey } from "./callers.js";
import type { Decider } from "./decider.js";
import type { PreparedQuery } from "./prepared-query.js";
import { type DescriptorQuery, type RateLimitQuery, textLengthMax } from "./query.js";

/** What a rate limit says to a request. */
export type RateLimitAnswer =
  | { readonly kind: "passes" }
  /** @property retryMs in which time the same request passes */
  | { readonly kind: "denied"; readonly retryMs: number }
  /** Nobody could say (`on_store_failure: error`, no time left). */
  | { readonly kind: "failed" };

/** Queries of one service that are kept with what they match. */
export const keptQueriesMax = 10_000;

const passes: RateLimitAnswer = { kind: "passes" };
const failed: RateLimitAnswer = { kind: "failed" };

/** Asks for the rate limits of one service, in the call that admits its requests. */
export class RateLimitAsker {
  readonly #decider: Pick<Decider, "prepare" | "isCurrent" | "ask">;
  readonly #limit: ServiceRateLimit;
  readonly #kept = new GenerationalMap<string, PreparedQuery>(keptQueriesMax);

  constructor(decider: Pick<Decider, "prepare" | "isCurrent" | "ask">, limit: ServiceRateLimit) {
    this.#decider = decider;
    this.#limit = limit;
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
    let prepared: PreparedQuery | undefined;
    try {
      prepared = this.#prepare(request);
    } catch {
      // The decider has counted it, and its words may hold a caller's values.
      answered(failed);
      return;
    }
    if (prepared === undefined) {
      answered(passes);
      return;
    }
    this.#decider.ask(prepared, {
      hits: 1,
      deadlineMs,
      decided: (verdict) => answered(answerOf(verdict)),
      failed: () => answered(failed),
    });
  }

  #prepare(request: AdmissionRequest): PreparedQuery | undefined {
    const query = rateLimitQuery(this.#limit, request);
    if (query === undefined) return undefined;
    const name = nameOf(query);
    const known = this.#kept.get(name);
    if (known !== undefined && this.#decider.isCurrent(known)) return known;
    const isKept = known !== undefined || this.#kept.wantsMore();
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
  for (const parts of descriptors) {
    const entries = entriesOf(parts, request);
    if (entries !== undefined) asked.push({ entries, hits: 1, isRefund: false });
  }
  return asked.length === 0 ? undefined : { domain, descriptors: asked };
}

function entriesOf(
  parts: readonly DescriptorPart[],
  request: Pick<AdmissionRequest, "headers" | "attributes">,
): readonly DescriptorEntry[] | undefined {
  const entries: DescriptorEntry[] = [];
  for (const part of parts) {
    const value = part.kind === "fixed" ? part.value : requestKey(part, request);
    if (value === "" || part.key.length + value.length > textLengthMax) return undefined;
    entries.push({ key: part.key, value });
  }
  return entries;
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

function answerOf({ isDenied, statuses }: Verdict): RateLimitAnswer {
  if (!isDenied) return passes;
  let retryUs = 0;
  for (const { isOver, durationUntilResetUs = 0 } of statuses) {
    if (isOver && durationUntilResetUs > retryUs) retryUs = durationUntilResetUs;
  }
  return { kind: "denied", retryMs: retryUs / 1_000 };
}
