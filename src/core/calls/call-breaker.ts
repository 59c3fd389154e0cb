import type { OutcomeKind } from "./attempt-outcome.js";

/** When a `CallBreaker` opens and closes. */
export interface CallBreakerSettings {
  /** Share of failed or overloaded calls from which it opens, above 0 to 1. */
  readonly failureRatio: number;
  /** Minimum number of calls within `windowMs` for it to open, from 1. */
  readonly callsMin: number;
  /** Length of the window, in milliseconds: calls of the last 90 to 100 % of it count. */
  readonly windowMs: number;
  /** How long it stays open before it lets probes through, in milliseconds. */
  readonly openMs: number;
  /** Probes in flight at once while half-open, and successes in a row that close it, from 1. */
  readonly probesCount: number;
}

/** `closed`: calls pass. `open`: no call passes. `halfOpen`: probes pass, to test the service. */
export type CallBreakerState = "closed" | "open" | "halfOpen";

/** Number that the breaker gives to a call. It shows in which state the call began. */
export type BreakerTicket = number;

/** Parts of the window. The oldest part is forgotten as a whole. */
const bucketCount = 10;

/**
 * A circuit breaker for the calls to one service. Closed, it opens when at least `callsMin` calls
 * ended within the window and at least `failureRatio` of them failed or met an overload. Open, it
 * refuses all for `openMs`. Half-open, it lets `probesCount` through at once: the first failure
 * opens it again, and as many successes as probes close it, with an empty window.
 *
 * A call that began before the state changed does not count in the new one. A cancelled probe frees
 * its place, and so does one that has not ended within `openMs`, so that lost probes do not block
 * the breaker; the result of such a probe still counts.
 *
 * It differs from the store's `Breaker`, which counts consecutive failures over a time shorter than
 * this one's windows, and sends one probe at a time, after increasing waits.
 *
 * Example: ratio 0.5, at least 20 calls: it opens with the tenth failure of 20 calls. After 5 s
 * three probes pass, and if all are served it closes.
 *
 * Source: M. Nygard, "Release It!", "Circuit Breaker"; Resilience4j, CircuitBreaker,
 * "Time-based sliding window".
 */
export class CallBreaker {
  readonly #settings: CallBreakerSettings;
  readonly #window: CallWindow;
  #state: CallBreakerState = "closed";
  /** The last ticket; later states have larger ones. */
  #lastTicket: BreakerTicket = 0;
  /** The first ticket of the present state. All calls of one closed period have the same. */
  #firstTicket: BreakerTicket = 0;
  #openUntilMs = 0;
  /** When each probe in flight began, the oldest first. */
  readonly #probes = new Map<BreakerTicket, number>();
  #successCount = 0;

  constructor(settings: CallBreakerSettings) {
    this.#settings = settings;
    this.#window = new CallWindow(settings.windowMs);
  }

  /** Returns the state at this time. */
  state(nowMs: number): CallBreakerState {
    return this.#state === "open" && nowMs >= this.#openUntilMs ? "halfOpen" : this.#state;
  }

  /** Returns the time until it lets probes through, in milliseconds; 0 if it is not open. */
  openMs(nowMs: number): number {
    return this.#state === "open" ? Math.max(0, this.#openUntilMs - nowMs) : 0;
  }

  /** Begins a call. @returns the ticket for `end`; undefined: do not make the call */
  admit(nowMs: number): BreakerTicket | undefined {
    if (this.#state === "closed") return this.#firstTicket;
    if (this.#state === "open") {
      if (nowMs < this.#openUntilMs) return undefined;
      this.#enter("halfOpen");
      this.#successCount = 0;
    }
    return this.#admitProbe(nowMs);
  }

  /** Ends a call, once. A cancelled call counts as if it had not been made. */
  end(ticket: BreakerTicket, kind: OutcomeKind, nowMs: number): void {
    this.#probes.delete(ticket);
    if (ticket < this.#firstTicket || kind === "cancelled") return;
    if (this.#state === "closed") {
      this.#window.add(kind !== "served", nowMs);
      if (this.#failsTooOften()) this.#open(nowMs);
    } else if (this.#state === "halfOpen") {
      if (kind !== "served") this.#open(nowMs);
      else this.#probeServed();
    }
  }

  #admitProbe(nowMs: number): BreakerTicket | undefined {
    const { openMs, probesCount } = this.#settings;
    if (this.#probes.size >= probesCount) {
      const [oldest] = this.#probes;
      if (oldest === undefined || nowMs - oldest[1] < openMs) return undefined;
      this.#probes.delete(oldest[0]);
    }
    this.#lastTicket += 1;
    this.#probes.set(this.#lastTicket, nowMs);
    return this.#lastTicket;
  }

  #probeServed(): void {
    this.#successCount += 1;
    if (this.#successCount < this.#settings.probesCount) return;
    this.#window.clear();
    this.#enter("closed");
  }

  #open(nowMs: number): void {
    this.#openUntilMs = nowMs + this.#settings.openMs;
    this.#enter("open");
  }

  #enter(state: CallBreakerState): void {
    this.#state = state;
    this.#probes.clear();
    this.#lastTicket += 1;
    this.#firstTicket = this.#lastTicket;
  }

  #failsTooOften(): boolean {
    const { callsMin, failureRatio } = this.#settings;
    const { callCount, failureCount } = this.#window;
    return callCount >= callsMin && failureCount / callCount >= failureRatio;
  }
}

/** Recent calls and failures, in ten buckets. */
class CallWindow {
  readonly #bucketMs: number;
  readonly #calls = new Float64Array(bucketCount);
  readonly #failures = new Float64Array(bucketCount);
  /** Number of the newest bucket, counted from time 0. */
  #bucket = 0;
  callCount = 0;
  failureCount = 0;

  constructor(windowMs: number) {
    this.#bucketMs = windowMs / bucketCount;
  }

  add(isFailure: boolean, nowMs: number): void {
    const bucket = Math.floor(nowMs / this.#bucketMs);
    if (bucket > this.#bucket) this.#advance(bucket);
    const place = this.#bucket % bucketCount;
    this.#calls[place] = (this.#calls[place] ?? 0) + 1;
    this.callCount += 1;
    if (!isFailure) return;
    this.#failures[place] = (this.#failures[place] ?? 0) + 1;
    this.failureCount += 1;
  }

  clear(): void {
    this.#calls.fill(0);
    this.#failures.fill(0);
    this.callCount = 0;
    this.failureCount = 0;
  }

  #advance(bucket: number): void {
    const oldest = Math.max(this.#bucket + 1, bucket - bucketCount + 1);
    for (let next = oldest; next <= bucket; next += 1) {
      const place = next % bucketCount;
      this.callCount -= this.#calls[place] ?? 0;
      this.failureCount -= this.#failures[place] ?? 0;
      this.#calls[place] = 0;
      this.#failures[place] = 0;
    }
    this.#bucket = bucket;
  }
}
