import type { ScenarioRetries } from "../../policy/scenario/scenario-callers.js";
import type { ArrivalTimes } from "./arrival-times.js";
import { Attempt, type AttemptEnd, type AttemptHost } from "./attempt.js";
import { DelayLine, type EventCalendar } from "./calendar.js";
import { burstyMs, type DrawMs, exponentialMs, fixedMs } from "./distributions.js";
import type { CallerSettings, RequestSource } from "./request-source.js";
import type { CallerRecord, OpenRequest } from "./run-record.js";
import type { SeededRandom } from "./seeded-random.js";
import type { SimulatedHeadgate } from "./simulated-headgate.js";
import type { SimulatedService } from "./simulated-service.js";

interface CallerParts {
  readonly settings: CallerSettings;
  readonly calendar: EventCalendar;
  readonly service: SimulatedService;
  readonly headgates: readonly SimulatedHeadgate[];
  readonly envoyCount: number;
  readonly times: ArrivalTimes;
  readonly source: RequestSource;
  /** When requests come; apart from the others, so that it does not depend on answers. */
  readonly arrivals: SeededRandom;
  /** Envoys and backoff. */
  readonly attempts: SeededRandom;
  readonly record: CallerRecord;
}

/** Requests of a burst, in the mean. */
const burstCount = 20;

/** Retries that a budget allows at once: as after a quiet time. */
const budgetTokensMax = 100;

/** Tokens of a budget at the start, so that the first requests may be retried. */
const budgetTokensAtStart = 10;

/** Sends requests, waits for their answers, and tries again. */
export class SimulatedCaller implements AttemptHost {
  readonly #parts: CallerParts;
  readonly calendar: EventCalendar;
  readonly service: SimulatedService;
  readonly patience: DelayLine;
  readonly #gap: DrawMs;
  #budgetTokens = budgetTokensAtStart;

  constructor(parts: CallerParts) {
    this.#parts = parts;
    const { arrivals: random, settings, calendar, service } = parts;
    this.calendar = calendar;
    this.service = service;
    this.patience = new DelayLine(calendar, settings.patience ?? settings.deadline);
    const { arrivals } = settings;
    this.#gap =
      arrivals === "poisson"
        ? exponentialMs(random, 1)
        : arrivals === "regular"
          ? fixedMs(1)
          : burstyMs(random, { meanMs: 1, burstCount });
    this.#scheduleNext();
  }

  #scheduleNext(): void {
    const { calendar, times } = this.#parts;
    const atMs = times.next(this.#gap());
    if (atMs === Number.POSITIVE_INFINITY) return;
    calendar.after(atMs - calendar.nowMs, () => {
      this.#scheduleNext();
      this.#arrive();
    });
  }

  #arrive(): void {
    const { settings, calendar, source, record } = this.#parts;
    const { retries } = settings;
    if (retries?.budget !== undefined) {
      this.#budgetTokens = Math.min(budgetTokensMax, this.#budgetTokens + retries.budget);
    }
    const request = record.offered(source.drawClass(), calendar.nowMs);
    request.key = source.drawKey();
    this.#attempt(request);
  }

  #attempt(request: OpenRequest): void {
    const { headgates, envoyCount, attempts: random, source } = this.#parts;
    request.attempted();
    const envoy = envoyCount === 1 ? 0 : Math.floor(random.next() * envoyCount);
    const headgate = headgates[envoy % headgates.length];
    if (headgate === undefined) return;
    const asked = source.request(request.priority, request.key, envoy);
    new Attempt(this, { headgate, asked, request }).begin();
  }

  ended(request: OpenRequest, end: AttemptEnd, beganMs: number): void {
    const { settings, calendar } = this.#parts;
    if (end.kind === "served") {
      const { nowMs } = calendar;
      const isInTime = nowMs - beganMs <= settings.deadline;
      const latencyMs = nowMs - request.startMs;
      request.ended({ kind: "served", isInTime, latencyMs });
    } else if (this.#retries(request, end)) {
      const delayMs = this.#backoffMs(request.attemptCount, end);
      calendar.after(delayMs, () => this.#attempt(request));
    } else if (end.kind === "refused") {
      request.ended({ kind: "refused", cause: end.cause });
    } else {
      request.ended({ kind: end.kind === "failed" ? "failed" : "abandoned" });
    }
  }

  /** Whether there is another attempt, which uses the budget up. */
  #retries({ attemptCount }: OpenRequest, { kind }: AttemptEnd): boolean {
    const { retries } = this.#parts.settings;
    if (retries === undefined || attemptCount >= retries.attempts) return false;
    if (!retries.on.some((outcome) => outcome === kind)) return false;
    if (retries.budget === undefined) return true;
    if (this.#budgetTokens < 1) return false;
    this.#budgetTokens -= 1;
    return true;
  }

  #backoffMs(attemptCount: number, end: AttemptEnd): number {
    const { settings, attempts: random } = this.#parts;
    const { retries } = settings;
    if (retries === undefined) return 0;
    const waitMs = Math.min(retries.maxBackoff, retries.backoff * 2 ** (attemptCount - 1));
    const ownMs = jittered(waitMs, retries.jitter, random);
    const isAsked = retries.retryAfter && end.kind === "refused";
    return isAsked ? Math.max(ownMs, end.retryMs) : ownMs;
  }
}

function jittered(ms: number, jitter: ScenarioRetries["jitter"], random: SeededRandom): number {
  if (jitter === "none") return ms;
  return jitter === "full" ? random.next() * ms : ms * (0.5 + random.next() / 2);
}
