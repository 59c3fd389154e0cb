import { type ChargeFinding, isRequestDenied } from "../../core/limits/gcra.js";
import { type RegionShare, regionalBurst } from "../../core/limits/lending.js";
import type { DescriptorVerdict, Verdict } from "../../core/limits/verdict.js";
import { descriptorOutcome } from "./answers.js";
import type { DecisionCounters, HitCounters } from "./counters.js";
import type { DecidedRequest } from "./decision-observer.js";
import type { PreparedQuery } from "./prepared-query.js";
import type { Hits } from "./query.js";

interface DecidedCall {
  readonly prepared: PreparedQuery;
  readonly hits: Hits;
  readonly request: DecidedRequest;
  readonly verdict: Verdict;
}

interface CallCounterParts {
  readonly counters: DecisionCounters;
  /** The fraction of a limit at which hits count as near the limit, 0 to 1. */
  readonly nearLimitRatio: number;
  /** Whether no request is denied, whatever the limits say. */
  readonly isShadow: boolean;
  /** Absent: limits are not divided among regions. */
  readonly region?: RegionShare | undefined;
}

/** Counts decided calls. Increments plain integers, and does nothing else. */
export class CallCounter {
  readonly #parts: CallCounterParts;

  constructor(parts: CallCounterParts) {
    this.#parts = parts;
  }

  count(call: DecidedCall): void {
    const { counters, isShadow } = this.#parts;
    const { prepared, request, verdict } = call;
    if (verdict.isDenied) counters.deniedCount += 1;
    else counters.okCount += 1;
    if (request.isFromMemory) counters.refusedFromMemoryCount += 1;
    if (isShadow && isRequestDenied(findings(call))) counters.shadowedCount += 1;
    if (!prepared.isDomainKnown) {
      counters.unknownDomainCount += 1;
      return;
    }
    for (let i = 0; i < prepared.descriptors.length; i += 1) this.#countDescriptor(call, i);
  }

  #countDescriptor({ prepared, hits, request, verdict }: DecidedCall, index: number): void {
    const { counters } = this.#parts;
    const descriptor = prepared.descriptors[index];
    const status = verdict.statuses[index];
    if (descriptor === undefined || status === undefined || descriptor.kind === "replaced") return;
    if (descriptor.kind === "unmatched") {
      counters.unmatchedDescriptorCount += 1;
      return;
    }
    const outcome = descriptorOutcome(descriptor, status, request);
    if (outcome === "unknown") return;
    if (descriptor.counters === undefined || descriptor.hits === undefined) {
      if (outcome === "over") counters.overrideOverCount += 1;
      else counters.overrideOkCount += 1;
      return;
    }
    descriptor.counters[outcome] += 1;
    const asked = typeof hits === "number" ? hits : (hits[index] ?? 1);
    const isRefund = descriptor.kind === "limited" && isRefunded(prepared, descriptor.firstAsk);
    if (isRefund) {
      descriptor.hits.refunded += asked;
    } else if (outcome === "ok" || outcome === "delayed") {
      this.#countWithin(descriptor.hits, asked, status);
    } else {
      descriptor.hits.total += asked;
      descriptor.hits.over += asked;
      if (outcome === "shadowOver") descriptor.hits.shadow += asked;
      if (request.isFromMemory) descriptor.hits.overFromMemory += asked;
    }
  }

  #countWithin(counts: HitCounters, asked: number, status: DescriptorVerdict): void {
    counts.total += asked;
    counts.within += asked;
    const { currentLimit, limitRemaining } = status;
    if (currentLimit === undefined || limitRemaining === undefined) return;
    const { region } = this.#parts;
    const isDivided = region !== undefined && currentLimit.spread === "global";
    const burst = isDivided ? regionalBurst(currentLimit.burst, region) : currentLimit.burst;
    const nearHits = burst - limitRemaining - Math.floor(burst * this.#parts.nearLimitRatio);
    // Only the hits above the ratio.
    if (nearHits > 0) counts.near += Math.min(asked, nearHits);
  }
}

function isRefunded({ asks }: PreparedQuery, ask: number): boolean {
  return asks[ask]?.charge.isRefund === true;
}

/** The findings under the policy as written. */
function findings({ prepared, request }: DecidedCall): readonly ChargeFinding[] {
  return prepared.asks.map(({ limit }, i) => ({
    charge: limit,
    result: { isOver: request.results[i]?.isOver === true },
  }));
}
