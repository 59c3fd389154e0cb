import { LatencyCurve } from "./latency-curve.js";
import type { LatencyQuantiles, ServiceObservations } from "./service-observations.js";

/** One request of an access log. */
export interface TimedRequest {
  readonly startUs: number;
  readonly durationUs: number;
  /** Undefined: unknown. */
  readonly isError: boolean | undefined;
}

/** Maximum number of requests kept for one service: 32 MB. */
export const sweptRequestsMax = 2_000_000;

/** Length of the window for a mean throughput, in microseconds. */
const windowUs = 10_000_000;

/** Growth of the arrays if they are full. */
const growthRatio = 2;
const firstCapacity = 4_096;

/** Starts and durations are multiples of this in logs without fractions of seconds. */
const secondUs = 1_000_000;

/**
 * Reconstructs the number of requests that a service had in flight at any time, from the start and
 * duration of each: requests that had started and not yet ended. A log may be in any order.
 */
export class RequestSweep {
  readonly #requestsMax: number;
  #starts = new Float64Array(firstCapacity);
  #durations = new Float64Array(firstCapacity);
  #count = 0;
  #statusCount = 0;
  #errorCount = 0;
  #skippedCount = 0;
  #hasFractions = false;

  /** @param requestsMax maximum number of requests kept; later ones are left out */
  constructor(requestsMax = sweptRequestsMax) {
    this.#requestsMax = requestsMax;
  }

  add({ startUs, durationUs, isError }: TimedRequest): void {
    if (this.#count >= this.#requestsMax || !(durationUs >= 0) || !Number.isFinite(startUs)) {
      this.#skippedCount += 1;
      return;
    }
    if (this.#count === this.#starts.length) {
      const capacity = Math.min(this.#requestsMax, growthRatio * this.#count);
      this.#starts = grown(this.#starts, capacity);
      this.#durations = grown(this.#durations, capacity);
    }
    this.#starts[this.#count] = startUs;
    this.#durations[this.#count] = durationUs;
    this.#count += 1;
    if (isError !== undefined) this.#statusCount += 1;
    if (isError === true) this.#errorCount += 1;
    this.#hasFractions ||= startUs % secondUs !== 0;
  }

  /** Sorts and counts the requests. More requests can be added afterwards. */
  finish(named: Pick<ServiceObservations, "service" | "source">): ServiceObservations {
    const order = Uint32Array.from({ length: this.#count }, (_, i) => i);
    order.sort((one, other) => this.#startUs(one) - this.#startUs(other));
    const ends = Float64Array.from(order, (i) => this.#startUs(i) + this.#durationUs(i)).sort();
    const levels = new Float64Array(this.#count);
    const curve = new LatencyCurve();
    let ended = 0;
    let inFlightMax = 0;
    const isUsable = this.#hasFractions || this.#count === 0;
    for (const [begun, i] of order.entries()) {
      while (ended < begun && (ends[ended] ?? 0) <= this.#startUs(i)) ended += 1;
      const level = begun + 1 - ended;
      levels[i] = level;
      inFlightMax = Math.max(inFlightMax, level);
      if (isUsable) curve.add({ level, latencyMs: this.#durationUs(i) / 1_000 });
    }
    const [firstUs, lastUs] = [this.#startUs(order[0] ?? 0), ends.at(-1) ?? 0];
    return {
      ...named,
      curve: curve.points(),
      requestCount: this.#count,
      durationSeconds: this.#count === 0 ? 0 : (lastUs - firstUs) / 1_000_000,
      perSecondMax: busiestPerSecond(ends),
      inFlightMax,
      errorRatio: this.#statusCount === 0 ? undefined : this.#errorCount / this.#statusCount,
      quantiles: (levelMax) => this.#quantiles(levels, levelMax),
      limit: undefined,
      envoy: {},
      notes: [...this.#notes()],
    };
  }

  *#notes(): Generator<string> {
    if (this.#count > 0 && !this.#hasFractions) {
      yield "All times are whole seconds, which is too coarse to count requests in flight: " +
        "log the start with milliseconds, such as %START_TIME%.";
    }
    if (this.#skippedCount === 0) return;
    const limit = this.#requestsMax.toLocaleString("en");
    yield `${this.#skippedCount.toLocaleString("en")} requests were left out: they have no ` +
      `duration, or come after the first ${limit} of the service.`;
  }

  #startUs(i: number): number {
    return this.#starts[i] ?? 0;
  }

  #durationUs(i: number): number {
    return this.#durations[i] ?? 0;
  }

  #quantiles(levels: Float64Array, levelMax: number): LatencyQuantiles | undefined {
    const durations = this.#durations.subarray(0, levels.length).filter((_, i) => {
      return (levels[i] ?? 0) <= levelMax;
    });
    if (durations.length === 0) return undefined;
    durations.sort();
    const at = (ratio: number) => (durations[Math.floor(ratio * durations.length)] ?? 0) / 1_000;
    return { p50: at(0.5), p99: at(0.99) };
  }
}

function grown(values: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(capacity);
  larger.set(values);
  return larger;
}

/** Returns requests per second that end in the busiest window; windows end with a request. */
function busiestPerSecond(sortedEnds: Float64Array): number {
  let most = 0;
  let from = 0;
  for (const [i, endUs] of sortedEnds.entries()) {
    while ((sortedEnds[from] ?? 0) <= endUs - windowUs) from += 1;
    most = Math.max(most, i - from + 1);
  }
  return most / (windowUs / 1_000_000);
}
