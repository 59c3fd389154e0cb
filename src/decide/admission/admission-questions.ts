import type { RefusalDetail } from "../../core/admission/immediate-response-cache.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { RetryWait } from "../../core/admission/retry-after.js";
import type { SharedKeyCounts } from "../../core/admission/shared-key-counts.js";
import type { Clock } from "../../core/base/clock.js";
import { joinMarks } from "../../core/limits/request-marks.js";
import type { AdmissionBlock } from "../../policy/services/service-admission.js";
import { type BudgetAnswer, unansweredEnd } from "../budget/budget-call.js";
import { waitTimeoutMarginMs } from "./admission-call.js";
import type { AdmissionCounts } from "./admission-counts.js";
import type { RateLimitAnswer } from "./admission-rate-limit.js";
import type { AdmittedRequest } from "./admitted-request.js";
import type { DelayedRequests } from "./delayed-requests.js";
import type { ServiceBlocks } from "./service-blocks.js";
import { takeSharedKey } from "./shared-keys.js";

/** Dependencies of `AdmissionQuestions`, from the service. */
interface AdmissionQuestionsParts {
  readonly clock: Clock;
  readonly counts: AdmissionCounts;
  readonly delayed: DelayedRequests;
  readonly sharedKeys: SharedKeyCounts | undefined;
  /** The blocks under the active policy. */
  readonly blocks: () => ServiceBlocks;
  readonly isDry: (visit: AdmittedRequest, block: AdmissionBlock) => boolean;
  /** Refuses a request for which there is no room, before it is charged. Returns whether it did. */
  readonly refuseIfFull: (visit: AdmittedRequest, nowMs: number) => boolean;
  readonly refuse: (visit: AdmittedRequest, cause: RefusalCause, grounds: RefusalDetail) => void;
  readonly enter: (visit: AdmittedRequest, nowMs: number) => void;
}

/**
 * Checks a request against the store before it takes a permit or a place in the queue: first the
 * fleet's count of its key, then the rate limit, then budgets. The caller may leave meanwhile.
 */
export class AdmissionQuestions {
  readonly #parts: AdmissionQuestionsParts;

  constructor(parts: AdmissionQuestionsParts) {
    this.#parts = parts;
  }

  /** Runs the checks in this order, and lets the request enter if none refuses it. */
  ask(visit: AdmittedRequest, nowMs: number): void {
    const { sharedKeys } = this.#parts;
    const { admission } = this.#parts.blocks();
    const { keyed, policy } = admission ?? {};
    const limit = policy?.maxInFlightPer;
    const isCounted = sharedKeys !== undefined && admission !== undefined;
    if (!isCounted || keyed === undefined || limit?.scope !== "fleet") {
      this.#askRateLimit(visit, nowMs);
      return;
    }
    if (this.#parts.refuseIfFull(visit, nowMs)) return;
    const isEnforced = !this.#parts.isDry(visit, "permits");
    const { name: service } = this.#parts.blocks().service;
    const deadlineMs = deadlineMsOf(visit, nowMs);
    const key = admission.keyOf(visit.request);
    const parts = { service, limit, key, keyed, sharedKeys, isEnforced, deadlineMs };
    takeSharedKey(visit, parts, ({ isIn, isOverInFleet }) => {
      const countedMs = this.#parts.clock.monotonicMs();
      if (!isEnforced) {
        if (isOverInFleet) this.#parts.counts.dryRefused.add(visit.priority, "concurrency");
      } else if (isIn) this.#askRateLimit(visit, countedMs);
      else this.#parts.refuse(visit, "concurrency", { wait: visit.pool.retryWait(countedMs) });
    });
    // A request that cannot be refused does not wait for the count.
    if (!isEnforced) this.#askRateLimit(visit, nowMs);
  }

  #askRateLimit(visit: AdmittedRequest, nowMs: number): void {
    const { rateLimit } = this.#parts.blocks();
    if (rateLimit === undefined || visit.request.isObserved) {
      this.#askBudgets(visit, nowMs);
    } else if (!this.#parts.refuseIfFull(visit, nowMs)) {
      const deadlineMs = deadlineMsOf(visit, nowMs);
      rateLimit.ask(visit.request, deadlineMs, (answer) => this.#rateLimited(visit, answer));
    }
  }

  #rateLimited(visit: AdmittedRequest, answer: RateLimitAnswer): void {
    // Its caller may have left meanwhile.
    if (visit.stage !== "asking") {
      if (answer.kind === "delayed") this.#parts.delayed.release();
      return;
    }
    if (answer.kind === "failed") this.#parts.counts.rateLimitFailedCount += 1;
    if (answer.kind === "passes" || answer.kind === "delayed") visit.marks = answer.marks;
    if (answer.kind === "delayed") {
      this.#delay(visit, answer.delayMs);
    } else if (answer.kind !== "denied") {
      this.#askBudgets(visit, this.#parts.clock.monotonicMs());
    } else if (this.#parts.isDry(visit, "rateLimit")) {
      this.#parts.counts.dryRefused.add(visit.priority, "rateLimit");
      this.#askBudgets(visit, this.#parts.clock.monotonicMs());
    } else {
      const wait: RetryWait = { kind: "known", ms: answer.retryMs };
      this.#parts.refuse(visit, "rateLimit", { wait, reportedRule: answer.reportedRule });
    }
  }

  /** Delays a charged request until it fits. If its caller leaves, later ones do not move up. */
  #delay(visit: AdmittedRequest, delayMs: number): void {
    if (this.#parts.isDry(visit, "rateLimit")) {
      this.#parts.delayed.release();
      this.#parts.counts.dryDelayedCount += 1;
      this.#askBudgets(visit, this.#parts.clock.monotonicMs());
      return;
    }
    visit.stage = "delayed";
    this.#parts.counts.delayedNow += 1;
    visit.cancelDelay = this.#parts.delayed.hold(delayMs, () => this.#endDelay(visit));
    visit.delayedMs = delayMs;
    // Envoy accepts one extension of its timeout, so this one also covers the queue.
    const queueMs = this.#parts.blocks().admission?.policy.queue?.waitMsMax ?? 0;
    const timeoutMs = Math.ceil(delayMs + queueMs) + waitTimeoutMarginMs;
    visit.tell({ kind: "waiting", timeoutMs, ticket: visit });
  }

  #endDelay(visit: AdmittedRequest): void {
    visit.cancelDelay = undefined;
    visit.stage = "asking";
    this.#parts.counts.delayedNow -= 1;
    this.#parts.counts.delays.add(visit.delayedMs);
    this.#askBudgets(visit, this.#parts.clock.monotonicMs());
  }

  /** Reserves what a request may cost before it takes a permit or waits for one. */
  #askBudgets(visit: AdmittedRequest, nowMs: number): void {
    const { budgets } = this.#parts.blocks();
    if (budgets === undefined) {
      this.#parts.enter(visit, nowMs);
    } else if (!this.#parts.refuseIfFull(visit, nowMs)) {
      budgets.ask(visit.request, deadlineMsOf(visit, nowMs), (answer) =>
        this.#budgeted(visit, answer),
      );
    }
  }

  #budgeted(visit: AdmittedRequest, answer: BudgetAnswer): void {
    if (answer.kind === "denied") {
      const { budget, retryMs } = answer;
      const wait: RetryWait =
        retryMs === undefined ? { kind: "unknown" } : { kind: "known", ms: retryMs };
      if (visit.stage === "asking") this.#parts.refuse(visit, "budget", { wait, budget });
    } else if (visit.stage === "asking") {
      visit.budgeted = answer.call;
      visit.marks = joinMarks(visit.marks, answer.marks);
      this.#parts.enter(visit, this.#parts.clock.monotonicMs());
    } else {
      // Its caller has left meanwhile.
      answer.call.end(unansweredEnd);
    }
  }
}

/** When the caller stops waiting, on the monotonic clock. Infinity without a deadline. */
function deadlineMsOf(visit: AdmittedRequest, nowMs: number): number {
  return nowMs + (visit.remainingMs(nowMs) ?? Number.POSITIVE_INFINITY);
}
