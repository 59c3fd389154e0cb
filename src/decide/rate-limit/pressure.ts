/** The thresholds of a `Pressure`. */
export interface PressureOptions {
  /** Maximum event loop delay, in milliseconds. Default 100. */
  readonly loopDelayMsMax: number;
  /**
   * Whether to call the store even while the event loop is late: an in-memory store responds at
   * once.
   */
  readonly asksStoreWhenLate: boolean;
  /** Maximum number of requests in flight, at least 1. Default 20,000. */
  readonly requestsInFlightMax: number;
  /** Maximum size of all requests in flight, in bytes: `CacheBounds.requestsInFlightBytesMax`. */
  readonly requestsInFlightBytesMax: number;
}

/** The kind of memory that is exhausted. */
export type MemoryCause = Extract<OverloadCause, "heap" | "residentMemory">;

/** Why a process is overloaded. */
export type OverloadCause = (typeof overloadCauses)[number];

/** Every overload cause. */
export const overloadCauses = ["loopDelay", "inFlight", "heap", "residentMemory"] as const;

/** The start and end of an overload; short gaps between overloads are ignored. */
export type PressureEvent =
  | { readonly kind: "overloadBegan"; readonly cause: OverloadCause }
  | { readonly kind: "overloadEnded" }
  /** The event loop was blocked for this long and has recovered. This alone is not an overload. */
  | { readonly kind: "loopStalled"; readonly stalledMs: number };

/** How long after a late tick the event loop still counts as late, in milliseconds. */
const calmMs = 200;

/** Accumulated lateness at which the event loop is overloaded, in milliseconds. */
const overloadLateMs = 1_000;

/** Most lateness that one tick can add, so that a single stall is never an overload. */
const lookLateMsMax = 300;

/** Time without overload after which the overload is reported as ended, in milliseconds. */
const quietMs = 10_000;

/**
 * Detects overload of this process: the event loop is late for a sustained period, too many
 * requests are in flight, or memory is exhausted. All times are monotonic, in milliseconds.
 *
 * A single stall is not an overload, because the requests that arrived meanwhile can still be
 * decided. Lateness therefore accumulates. A late tick adds the time since the previous tick, at
 * most 300 ms. A tick that is on time subtracts that time. At 1,000 ms, the event loop is
 * overloaded. For example, 150 ms turns in a row are an overload after seven of them; 150 ms stalls
 * twice a second never are.
 *
 * To avoid flapping, each overload ends at half of its threshold: half of the requests in flight,
 * or 500 ms of accumulated lateness.
 */
export class Pressure {
  readonly #options: PressureOptions;
  #inFlightCount = 0;
  #inFlightBytes = 0;
  #isFull = false;
  #tickDueMs = Number.POSITIVE_INFINITY;
  #lateUntilMs = Number.NEGATIVE_INFINITY;
  #lateSumMs = 0;
  #isLoopOverloaded = false;
  #last: { readonly cause: OverloadCause; readonly atMs: number } | undefined;
  #isAnnounced = false;
  /** The kind of memory that is exhausted, set by the memory monitor. Undefined if none is. */
  memoryFull: MemoryCause | undefined;

  constructor(options: PressureOptions) {
    this.#options = options;
  }

  /** Number of requests in flight. */
  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /** Records the start of a request of this size. `end` must follow with the same size. */
  begin(bytes: number): void {
    this.#inFlightCount += 1;
    this.#inFlightBytes += bytes;
    const { requestsInFlightMax, requestsInFlightBytesMax } = this.#options;
    const isOver = this.#inFlightBytes > requestsInFlightBytesMax;
    if (isOver || this.#inFlightCount > requestsInFlightMax) this.#isFull = true;
  }

  /** Records the end of a request of this size. */
  end(bytes: number): void {
    this.#inFlightCount -= 1;
    this.#inFlightBytes -= bytes;
    const { requestsInFlightMax, requestsInFlightBytesMax } = this.#options;
    const isBelow = this.#inFlightBytes <= requestsInFlightBytesMax / 2;
    if (isBelow && this.#inFlightCount <= requestsInFlightMax / 2) this.#isFull = false;
  }

  /** Returns the current overload cause, or undefined if the process is not overloaded. */
  overload(nowMs: number): OverloadCause | undefined {
    const isLate = this.#isLoopOverloaded;
    const cause = this.memoryFull ?? (this.#isFull ? "inFlight" : isLate ? "loopDelay" : undefined);
    if (cause !== undefined) this.#last = { cause, atMs: nowMs };
    return cause;
  }

  /** Whether to decide requests without calling the store. */
  passesStoreBy(nowMs: number): boolean {
    const cause = this.overload(nowMs);
    return cause !== undefined && !(cause === "loopDelay" && this.#options.asksStoreWhenLate);
  }

  /** Whether to shed requests before they are parsed. */
  get isShedding(): boolean {
    return this.memoryFull !== undefined || this.#isLoopOverloaded;
  }

  /**
   * Records a periodic timer tick. The delay of the tick measures the event loop delay.
   *
   * @param nextDueMs when the next tick is due; if it does not occur by then, the loop is late
   */
  tick(nowMs: number, nextDueMs: number): PressureEvent | undefined {
    const lateMs = nowMs - this.#tickDueMs;
    const isStalled = lateMs > this.#options.loopDelayMsMax;
    this.isLate(nowMs);
    this.#addLook(lateMs, nextDueMs - nowMs);
    this.overload(nowMs);
    this.#tickDueMs = nextDueMs;
    const reported = this.#tell(nowMs);
    return reported ?? (isStalled ? { kind: "loopStalled", stalledMs: lateMs } : undefined);
  }

  #addLook(lateMs: number, intervalMs: number): void {
    const { loopDelayMsMax } = this.#options;
    const passedMs = Math.max(0, lateMs) + intervalMs;
    if (lateMs > (this.#isLoopOverloaded ? loopDelayMsMax / 2 : loopDelayMsMax)) {
      this.#lateSumMs += Math.min(passedMs, lookLateMsMax);
    } else {
      this.#lateSumMs -= passedMs;
    }
    this.#lateSumMs = Math.min(overloadLateMs, Math.max(0, this.#lateSumMs));
    if (this.#lateSumMs >= overloadLateMs) this.#isLoopOverloaded = true;
    else if (this.#lateSumMs <= overloadLateMs / 2) this.#isLoopOverloaded = false;
  }

  #tell(nowMs: number): PressureEvent | undefined {
    if (this.#last === undefined) return undefined;
    if (!this.#isAnnounced) {
      this.#isAnnounced = true;
      return { kind: "overloadBegan", cause: this.#last.cause };
    }
    if (nowMs - this.#last.atMs < quietMs) return undefined;
    this.#last = undefined;
    this.#isAnnounced = false;
    return { kind: "overloadEnded" };
  }

  /**
   * Whether the event loop is late, or was within the last 200 ms. Late does not imply overloaded.
   */
  isLate(nowMs: number): boolean {
    const { loopDelayMsMax } = this.#options;
    const boundMs = nowMs < this.#lateUntilMs ? loopDelayMsMax / 2 : loopDelayMsMax;
    if (nowMs - this.#tickDueMs > boundMs) this.#lateUntilMs = nowMs + calmMs;
    return nowMs < this.#lateUntilMs;
  }
}
