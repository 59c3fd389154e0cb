/** Bounds of a `Pressure`. */
export interface PressureOptions {
  /** How late the event loop may be, in milliseconds. Default 100. */
  readonly loopDelayMsMax: number;
  /** Whether a late loop is no reason to pass the store by: one in this process answers at once. */
  readonly asksStoreWhenLate: boolean;
  /** How many requests may be in work at a time, from 1. Default 20,000. */
  readonly requestsInFlightMax: number;
  /** How many bytes all of these may take, about: `CacheBounds.requestsInFlightBytesMax`. */
  readonly requestsInFlightBytesMax: number;
}

/** What of a process's memory is used up. */
export type MemoryCause = Extract<OverloadCause, "heap" | "residentMemory">;

/** Why a process is overloaded. */
export type OverloadCause = (typeof overloadCauses)[number];

/** All of these. */
export const overloadCauses = ["loopDelay", "inFlight", "heap", "residentMemory"] as const;

/** The begin and the end of a time in which the process was overloaded, or was so again soon. */
export type PressureEvent =
  | { readonly kind: "overloadBegan"; readonly cause: OverloadCause }
  | { readonly kind: "overloadEnded" }
  /** The loop stood still for so long, and runs again: no overload by itself. */
  | { readonly kind: "loopStalled"; readonly stalledMs: number };

/** How long the event loop must keep up before it is trusted again. */
const calmMs = 200;

/** How much more of its time than not a loop must have been late for an overload. */
const overloadLateMs = 1_000;

/** The most that one look adds to that: a stall, however long, is over when it is seen. */
const lookLateMsMax = 300;

/** How long there must have been no overload before it is said to have ended. */
const quietMs = 10_000;

/**
 * Whether this process has more work than it can do in time: its event loop stays late, too many
 * requests are in work, or its memory is used up. Takes time as an argument, in monotonic
 * milliseconds.
 *
 * A stall is no overload: when it is seen it is over, and what came meanwhile can be decided. So
 * the time before each late look is added up, at most 300 ms of it, and the time before each look
 * that comes in time is taken off; at 1,000 ms the loop is overloaded. Example: turns of 150 ms are
 * an overload after seven of them, and stops of 150 ms every half a second never are.
 *
 * What begins at a bound ends at half of it, or the state would change with every request: requests
 * in flight when they are down to the half, a late loop when 500 ms are left of its sum.
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
  /** What of its memory is used up, as whoever looks at it says; undefined: nothing. */
  memoryFull: MemoryCause | undefined;

  constructor(options: PressureOptions) {
    this.#options = options;
  }

  /** Requests in work now. */
  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /** A request came that takes so many bytes; `end` with the same number must follow. */
  begin(bytes: number): void {
    this.#inFlightCount += 1;
    this.#inFlightBytes += bytes;
    const { requestsInFlightMax, requestsInFlightBytesMax } = this.#options;
    const isOver = this.#inFlightBytes > requestsInFlightBytesMax;
    if (isOver || this.#inFlightCount > requestsInFlightMax) this.#isFull = true;
  }

  /** It was answered. */
  end(bytes: number): void {
    this.#inFlightCount -= 1;
    this.#inFlightBytes -= bytes;
    const { requestsInFlightMax, requestsInFlightBytesMax } = this.#options;
    const isBelow = this.#inFlightBytes <= requestsInFlightBytesMax / 2;
    if (isBelow && this.#inFlightCount <= requestsInFlightMax / 2) this.#isFull = false;
  }

  /** Why this process cannot do its work in time now; undefined when it can. */
  overload(nowMs: number): OverloadCause | undefined {
    const isLate = this.#isLoopOverloaded;
    const cause = this.memoryFull ?? (this.#isFull ? "inFlight" : isLate ? "loopDelay" : undefined);
    if (cause !== undefined) this.#last = { cause, atMs: nowMs };
    return cause;
  }

  /** Whether requests should be answered without the store now. */
  passesStoreBy(nowMs: number): boolean {
    const cause = this.overload(nowMs);
    return cause !== undefined && !(cause === "loopDelay" && this.#options.asksStoreWhenLate);
  }

  /** Whether requests should be shed before anything is looked at. */
  get isShedding(): boolean {
    return this.memoryFull !== undefined || this.#isLoopOverloaded;
  }

  /**
   * A regular look at the event loop: how late this one is says how late everything is.
   *
   * @param nextDueMs when the next one is due; once that is past, the loop is known to be late
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

  /** Whether the event loop is, or was a moment ago, later than it may be, overloaded or not. */
  isLate(nowMs: number): boolean {
    const { loopDelayMsMax } = this.#options;
    const boundMs = nowMs < this.#lateUntilMs ? loopDelayMsMax / 2 : loopDelayMsMax;
    if (nowMs - this.#tickDueMs > boundMs) this.#lateUntilMs = nowMs + calmMs;
    return nowMs < this.#lateUntilMs;
  }
}
