import type { Random } from "../../src/core/clock.js";
import { type ErrorCode, ServiceError } from "../../src/core/errors.js";
import { assertBatch } from "../../src/store/batch.js";
import type {
  LimitStore,
  StoredBucket,
  StoreOutcome,
  StoreRequest,
  StoreResult,
} from "../../src/store/limit-store.js";
import type { ServerReply, SimulatedServer } from "./simulated-server.js";
import type { SimulatedClock, SimulatedTime } from "./simulated-time.js";

/** One way between a replica and the server, for all that travels from now on. */
export interface NetworkWeather {
  /** Each way takes between these, in milliseconds. */
  readonly delayMsMin: number;
  readonly delayMsMax: number;
  /** Parts of the requests, and of the replies, that never arrive, 0 to 1. */
  readonly lostRequestRatio: number;
  readonly lostReplyRatio: number;
  /** The server's address refuses connections: calls fail at once, uncharged. */
  readonly isRefused: boolean;
}

/** A network that only takes its time. */
export const fairWeather: NetworkWeather = {
  delayMsMin: 0.05,
  delayMsMax: 1,
  lostRequestRatio: 0,
  lostReplyRatio: 0,
  isRefused: false,
};

/** A batch that the replica sent, and what it was told. */
export interface SentBatch {
  readonly requests: readonly StoreRequest[];
  readonly sentMs: number;
}

/** Told of each batch when it is sent and just before its answer is handed over. */
export interface StoreWatcher {
  sent(batch: SentBatch): void;
  delivered(batch: SentBatch, results: readonly StoreResult[]): void;
}

/** What a `SimulatedStore` is made of. */
export interface SimulatedStoreParts {
  readonly server: SimulatedServer;
  readonly time: SimulatedTime;
  readonly clock: SimulatedClock;
  readonly random: Random;
  readonly watcher: StoreWatcher;
}

/**
 * The store as one replica sees it: a server behind a network. It behaves as the store in Redis
 * does: a call ends at its deadline, nothing that may have charged is sent twice, and only a
 * missing script is brought along in a second attempt.
 */
export class SimulatedStore implements LimitStore {
  readonly kind = "redis";
  readonly #parts: SimulatedStoreParts;
  weather: NetworkWeather = fairWeather;

  constructor(parts: SimulatedStoreParts) {
    this.#parts = parts;
  }

  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    assertBatch(batch);
    const { time, clock, watcher } = this.#parts;
    const sent: SentBatch = { requests: batch, sentMs: time.nowMs };
    watcher.sent(sent);
    return new Promise((resolve, reject) => {
      let isOver = false;
      const fail = (code: ErrorCode): void => {
        isOver = true;
        cancel();
        reject(new ServiceError(code));
      };
      const cancel = clock.schedule(deadlineMs - clock.monotonicMs(), () => fail("STORE_TIMEOUT"));
      const take = (reply: ServerReply): void => {
        if (isOver) return;
        if (reply.kind === "noScript") {
          this.#exchange(batch, true, take);
        } else if (reply.kind === "refused") {
          fail(reply.error.code);
        } else {
          isOver = true;
          cancel();
          watcher.delivered(sent, reply.results);
          resolve(reply.results.map((result) => ({ kind: "decided", result })));
        }
      };
      if (this.weather.isRefused) fail("STORE_UNAVAILABLE");
      else this.#exchange(batch, false, take);
    });
  }

  async peek(): Promise<StoredBucket | undefined> {
    throw new ServiceError("STORE_CLOSED", "Nobody peeks in a simulation.");
  }

  async forget(): Promise<number> {
    throw new ServiceError("STORE_CLOSED", "Nobody forgets in a simulation.");
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}

  #exchange(
    batch: readonly StoreRequest[],
    bringsScript: boolean,
    take: (reply: ServerReply) => void,
  ): void {
    const { server, time, random } = this.#parts;
    if (random.next() < this.weather.lostRequestRatio) return;
    time.after(this.#delayMs(), () => {
      server.arrive(batch, bringsScript, (reply) => {
        if (random.next() < this.weather.lostReplyRatio) return;
        time.after(this.#delayMs(), () => take(reply));
      });
    });
  }

  #delayMs(): number {
    const { delayMsMin, delayMsMax } = this.weather;
    return delayMsMin + this.#parts.random.next() * (delayMsMax - delayMsMin);
  }
}
