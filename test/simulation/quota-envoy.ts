import { type QuotaAssignment, quotaReportMs } from "../../src/core/quota/quota.js";

/** What an Envoy reports of one bucket. */
export interface SimulatedUsage {
  readonly allowedHits: number;
  readonly deniedHits: number;
  readonly elapsedMs: number;
}

/** How long an Envoy denies after an assignment is over, before it forgets the bucket. */
const afterExpiryMs = 60_000;

/**
 * One bucket of one Envoy 1.40, as it enforces: a token bucket is full when it is the first one, or
 * comes after a blanket rule or after what was told is over; another one takes over what is left.
 * Whole seconds of a TTL count; the first request is reported at once, the rest each five seconds.
 */
export class SimulatedBucket {
  #reported: QuotaAssignment | undefined;
  #tokens = 0;
  #filledMs = 0;
  #untilMs = 0;
  #allowedHits = 0;
  #deniedHits = 0;
  #reportedMs = 0;
  #isKnown = false;

  /** What it goes by now. */
  reported(nowMs: number): QuotaAssignment | undefined {
    return nowMs < this.#untilMs ? this.#reported : undefined;
  }

  /** Whether a report is due; the next one is five seconds after it was taken. */
  isReportDue(nowMs: number): boolean {
    return this.#isKnown && nowMs - this.#reportedMs >= quotaReportMs;
  }

  take(assignment: QuotaAssignment, nowMs: number): void {
    const isSame = nowMs < this.#untilMs && isEqual(this.#reported, assignment);
    if (!isSame && assignment.kind === "bucket") {
      const before = this.reported(nowMs);
      this.#fill(nowMs);
      // What is left stays; only what was no bucket is made a full one.
      const left = before?.kind === "bucket" ? this.#tokens : assignment.tokensMax;
      this.#tokens = Math.min(left, assignment.tokensMax);
      this.#filledMs = nowMs;
    }
    this.#reported = assignment;
    this.#untilMs = nowMs + Math.floor(assignment.ttlMs / 1_000) * 1_000;
  }

  /** Nothing is known of it any more, as after an abandon. */
  forget(): void {
    this.#isKnown = false;
    this.#reported = undefined;
    this.#untilMs = 0;
    this.#allowedHits = 0;
    this.#deniedHits = 0;
  }

  /** Requests come. @returns those that its assignment lets pass; `first`: it has to report now */
  ask(hits: number, nowMs: number): { readonly allowed: number; readonly isFirst: boolean } {
    if (this.#isKnown && this.#reported !== undefined && nowMs >= this.#untilMs + afterExpiryMs) {
      this.forget();
    }
    const isFirst = !this.#isKnown && hits > 0;
    if (isFirst) {
      this.#isKnown = true;
      this.#reportedMs = nowMs;
    }
    const allowed = this.#allowed(hits, nowMs);
    this.#allowedHits += allowed;
    this.#deniedHits += hits - allowed;
    return { allowed, isFirst };
  }

  /** What was not reported yet. */
  get unreportedHits(): number {
    return this.#allowedHits;
  }

  report(nowMs: number): SimulatedUsage {
    const usage = {
      allowedHits: this.#allowedHits,
      deniedHits: this.#deniedHits,
      elapsedMs: nowMs - this.#reportedMs,
    };
    this.#allowedHits = 0;
    this.#deniedHits = 0;
    this.#reportedMs = nowMs;
    return usage;
  }

  #fill(nowMs: number): void {
    const reported = this.reported(nowMs);
    if (reported?.kind !== "bucket") return;
    const filled = ((nowMs - this.#filledMs) * reported.rateMicroHz) / 1e9;
    this.#tokens = Math.min(reported.tokensMax, this.#tokens + filled);
    this.#filledMs = nowMs;
  }

  #allowed(hits: number, nowMs: number): number {
    const reported = this.reported(nowMs);
    if (reported === undefined) return 0;
    if (reported.kind === "blanket") return reported.rule === "allow" ? hits : 0;
    this.#fill(nowMs);
    const allowed = Math.min(hits, Math.floor(this.#tokens + 1e-9));
    this.#tokens -= allowed;
    return allowed;
  }
}

function isEqual(one: QuotaAssignment | undefined, other: QuotaAssignment): boolean {
  if (one?.kind === "bucket" && other.kind === "bucket") {
    return one.rateMicroHz === other.rateMicroHz && one.tokensMax === other.tokensMax;
  }
  return one?.kind === "blanket" && other.kind === "blanket" && one.rule === other.rule;
}
