import { retryDelayMs } from "../../core/calls/retry-delay.js";
import type { ArrivalTimes } from "./arrival-times.js";
import { DelayLine, type EventCalendar } from "./calendar.js";
import { burstyMs, type DrawMs, exponentialMs, fixedMs } from "./distributions.js";
import { Hedging } from "./hedging.js";
import type { CallerSettings, RequestSource } from "./request-source.js";
import type { CallerRecord, OpenRequest } from "./run-record.js";
import type { SeededRandom } from "./seeded-random.js";
import {
  type AttemptEnd,
  SimulatedAttempt,
  type SimulatedAttemptHost,
} from "./simulated-attempt.js";
import type { SimulatedEnvoy } from "./simulated-envoy.js";
import type { SimulatedFleet } from "./simulated-fleet.js";
import type { SimulatedService } from "./simulated-service.js";

interface CallerParts {
  readonly settings: CallerSettings;
  readonly calendar: EventCalendar;
  readonly service: SimulatedService;
  readonly fleet: SimulatedFleet;
  /** Whether Envoy refuses requests for which Headgate does not answer. */
  readonly deniesWithoutAnswer: boolean;
  readonly times: ArrivalTimes;
  readonly source: RequestSource;
  /** Randomness of arrivals, separate from the rest so that it does not depend on responses. */
  readonly arrivals: SeededRandom;
  /** Randomness of Envoys and backoff. */
  readonly attempts: SeededRandom;
  readonly record: CallerRecord;
}

/** Mean number of requests in a burst. */
const burstCount = 20;

/** Maximum number of retries that a budget allows at once, such as after a quiet time. */
const budgetTokensMax = 100;

/** Tokens of a budget at the start, so that the first requests may be retried. */
const budgetTokensAtStart = 10;

type FailedEnd = Exclude<AttemptEnd, { readonly kind: "served" }>;

const unreachable: FailedEnd = { kind: "failed" };

/** Sends requests, waits for their responses, and retries. */
export class SimulatedCaller implements SimulatedAttemptHost {
  readonly #parts: CallerParts;
  readonly calendar: EventCalendar;
  readonly service: SimulatedService;
  readonly patience: DelayLine;
  readonly deniesWithoutAnswer: boolean;
  readonly #connections: CallerConnections | undefined;
  readonly #hedging: Hedging | undefined;
  readonly #gap: DrawMs;
  #budgetTokens = budgetTokensAtStart;

  constructor(parts: CallerParts) {
    this.#parts = parts;
    const { arrivals: random, settings, calendar, service, fleet } = parts;
    const { keepAlive, retries } = settings;
    this.calendar = calendar;
    this.deniesWithoutAnswer = parts.deniesWithoutAnswer;
    if (keepAlive !== undefined) {
      const kept = { settings: keepAlive, fleet, random: parts.attempts };
      this.#connections = new CallerConnections(kept);
    }
    if (retries?.hedgeAfter !== undefined) {
      this.#hedging = new Hedging(calendar, retries.hedgeAfter);
    }
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
    const { fleet, attempts: random, source, calendar } = this.#parts;
    request.attempted();
    const envoy = this.#connections?.pick(calendar.nowMs) ?? fleet.pickEnvoy(random);
    if (envoy === undefined) {
      if (this.#hedging?.isOpen(request) !== true) this.#failed(request, unreachable);
      return;
    }
    const asked = source.request(request.priority, request.key, envoy.index);
    const attempt = new SimulatedAttempt(this, { envoy, asked, request });
    this.#hedging?.begins(attempt, () => {
      if (this.#takesAnother(request)) this.#attempt(request);
    });
    attempt.begin();
  }

  ended(attempt: SimulatedAttempt, end: AttemptEnd): void {
    const { settings, calendar } = this.#parts;
    const { request } = attempt;
    const isAnotherOnItsWay = this.#hedging?.ends(attempt) === true;
    if (end.kind === "served") {
      this.#hedging?.cancelOthers(attempt);
      const { nowMs } = calendar;
      const isInTime = nowMs - attempt.beganMs <= settings.deadline;
      const latencyMs = nowMs - request.startMs;
      request.ended({ kind: "served", isInTime, latencyMs });
    } else if (!isAnotherOnItsWay) this.#failed(request, end);
  }

  /** Handles a request without an attempt in flight: retries it, or gives up. */
  #failed(request: OpenRequest, end: FailedEnd): void {
    const isRetried = this.#parts.settings.retries?.on.some((outcome) => outcome === end.kind);
    if (isRetried === true && this.#takesAnother(request)) {
      const delayMs = this.#backoffMs(request.attemptCount, end);
      this.#parts.calendar.after(delayMs, () => this.#attempt(request));
    } else if (end.kind === "refused") {
      request.ended({ kind: "refused", cause: end.cause });
    } else {
      request.ended({ kind: end.kind === "failed" ? "failed" : "abandoned" });
    }
  }

  /** Reports whether another attempt is allowed, and takes it from the retry budget. */
  #takesAnother({ attemptCount }: OpenRequest): boolean {
    const { retries } = this.#parts.settings;
    if (retries === undefined || attemptCount >= retries.attempts) return false;
    if (retries.budget === undefined) return true;
    if (this.#budgetTokens < 1) return false;
    this.#budgetTokens -= 1;
    return true;
  }

  #backoffMs(attemptCount: number, end: FailedEnd): number {
    const { settings, attempts: random } = this.#parts;
    const { retries } = settings;
    if (retries === undefined) return 0;
    const isAsked = retries.retryAfter && end.kind === "refused";
    const { jitter, backoff: baseMs, maxBackoff: maxMs } = retries;
    return retryDelayMs(
      { jitter, baseMs, maxMs },
      { retryIndex: attemptCount - 1, retryAfterMs: isAsked ? end.retryMs : undefined },
      jitter === "none" ? 0 : random.next(),
    );
  }
}

interface ConnectionParts {
  readonly settings: NonNullable<CallerSettings["keepAlive"]>;
  readonly fleet: SimulatedFleet;
  readonly random: SeededRandom;
}

interface Connection {
  readonly envoy: SimulatedEnvoy;
  readonly untilMs: number;
}

/** Connections of a caller, each to one Envoy until it ends. */
class CallerConnections {
  readonly #parts: ConnectionParts;
  readonly #connections: (Connection | undefined)[];

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#connections = new Array<undefined>(parts.settings.connections).fill(undefined);
  }

  /** Returns the Envoy of a random connection. Opens the connection again if it has ended. */
  pick(nowMs: number): SimulatedEnvoy | undefined {
    const { fleet, random, settings } = this.#parts;
    const place = Math.floor(random.next() * this.#connections.length);
    const known = this.#connections[place];
    if (known !== undefined && !known.envoy.isAway && nowMs < known.untilMs) return known.envoy;
    const envoy = fleet.pickEnvoy(random);
    const lifetimeMs = settings.lifetime ?? Number.POSITIVE_INFINITY;
    // The first connections end at different times.
    const partMs = known === undefined ? lifetimeMs * (1 - random.next()) : lifetimeMs;
    this.#connections[place] = envoy && { envoy, untilMs: nowMs + partMs };
    return envoy;
  }
}
