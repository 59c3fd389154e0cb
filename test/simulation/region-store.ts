import { ServiceError } from "../../src/core/base/errors.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { LimitStore, StoreOutcome, StoreRequest } from "../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { SimulatedClock, type SimulatedTime } from "../support/simulated-time.js";

/** A process in a region, whose wall clock is off by some time. */
export class RegionClock extends SimulatedClock {
  readonly #skewUs: number;

  constructor(time: SimulatedTime, offsetMs: number, skewUs: number) {
    super(time, offsetMs);
    this.#skewUs = skewUs;
  }

  override epochUs(): number {
    return super.epochUs() + this.#skewUs;
  }
}

/** What becomes of a batch that arrived at a store: it is decided now or later, or dropped. */
interface Arrival {
  readonly batch: readonly StoreRequest[];
  readonly decided: (outcomes: readonly StoreOutcome[]) => void;
  readonly dropped: () => void;
}

/** The store of one region: it may stop and go on, or end and come back with nothing. */
export class RegionStore {
  readonly #clock: RegionClock;
  #inner: MemoryLimitStore;
  #waiting: Arrival[] = [];
  #state: "up" | "stopped" | "down" = "up";

  constructor(clock: RegionClock) {
    this.#clock = clock;
    this.#inner = new MemoryLimitStore({ clock, keysMax: 1_000 });
  }

  get state(): "up" | "stopped" | "down" {
    return this.#state;
  }

  arrive(arrival: Arrival): void {
    if (this.#state === "down") arrival.dropped();
    else if (this.#state === "stopped") this.#waiting.push(arrival);
    else void this.#inner.take(arrival.batch).then(arrival.decided);
  }

  /** Stops as by SIGSTOP: what arrives waits. */
  stop(): void {
    if (this.#state === "up") this.#state = "stopped";
  }

  /** Ends, with all that waits. */
  kill(): void {
    this.#state = "down";
    for (const { dropped } of this.#waiting.splice(0)) dropped();
  }

  /** Goes on, or comes back with empty buckets. */
  start(): void {
    if (this.#state === "down") {
      this.#inner = new MemoryLimitStore({ clock: this.#clock, keysMax: 1_000 });
    }
    this.#state = "up";
    for (const arrival of this.#waiting.splice(0)) this.arrive(arrival);
  }

  /** The bucket of a key, if it has one. */
  bucket(key: LimitKey) {
    return this.#inner.peek(key);
  }
}

/** How messages travel between two regions now. */
export interface Weather {
  /** One way, in milliseconds. */
  latencyMs: number;
  areRequestsCut: boolean;
  areRepliesCut: boolean;
  /** The part of messages that is lost, each way. */
  lossRatio: number;
}

interface RegionLinkParts {
  readonly time: SimulatedTime;
  readonly clock: RegionClock;
  readonly target: RegionStore;
  readonly weather: Weather;
  readonly next: () => number;
  /** A batch was decided. Answers what to do if nobody ever learns of it. */
  readonly decided: (
    batch: readonly StoreRequest[],
    outcomes: readonly StoreOutcome[],
  ) => () => void;
  /** A batch will never be decided. */
  readonly dropped: (batch: readonly StoreRequest[]) => void;
}

/** A replica's connection to the store of a region. */
export class RegionLink implements LimitStore {
  readonly #parts: RegionLinkParts;
  /** Whether its process has ended: no reply reaches it. */
  isEnded = false;

  constructor(parts: RegionLinkParts) {
    this.#parts = parts;
  }

  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    const { time, clock, target, weather, next, decided, dropped } = this.#parts;
    return new Promise((resolve, reject) => {
      let isWaiting = true;
      const cancel = time.after(deadlineMs - clock.monotonicMs(), () => {
        isWaiting = false;
        reject(new ServiceError("STORE_TIMEOUT"));
      });
      const travels = (isCut: boolean): boolean => !isCut && next() >= weather.lossRatio;
      if (!travels(weather.areRequestsCut)) {
        dropped(batch);
        return;
      }
      const reply = (outcomes: readonly StoreOutcome[]): void => {
        const forget = decided(batch, outcomes);
        if (!travels(weather.areRepliesCut)) {
          forget();
          return;
        }
        time.after(weather.latencyMs, () => {
          if (!isWaiting || this.isEnded) {
            forget();
            return;
          }
          cancel();
          resolve(outcomes);
        });
      };
      time.after(weather.latencyMs, () => {
        target.arrive({ batch, decided: reply, dropped: () => dropped(batch) });
      });
    });
  }

  async ping(deadlineMs: number): Promise<void> {
    await this.take([], deadlineMs);
  }

  async peek(): Promise<undefined> {}

  async forget(): Promise<number> {
    return 0;
  }

  async close(): Promise<void> {}
}
