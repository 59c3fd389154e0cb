import type { Clock, Random } from "../../src/core/base/clock.js";
import { ServiceError } from "../../src/core/base/errors.js";

/** What the network between replicas and the store is like now. */
export interface LinkWeather {
  /** Mean of exponential delays, each way. */
  delayMs: number;
  /** Calls that do not arrive, and answers that do not although the call was applied: 0 to 1. */
  lostRatio: number;
  /** Nothing arrives. */
  isOut: boolean;
}

/** What a link is made of. */
export interface LossyLinkParts {
  /** Of who calls. */
  readonly clock: Clock;
  /** Of the network, in which calls travel on after who sent them has died. Default: `clock`. */
  readonly network?: Pick<Clock, "schedule">;
  readonly random: Random;
  readonly weather: LinkWeather;
}

/** A network between one replica and a store in this process. */
export class LossyLink {
  isDead = false;
  readonly #clock: Clock;
  readonly #network: Pick<Clock, "schedule">;
  readonly #random: Random;
  readonly #weather: LinkWeather;

  constructor({ clock, network, random, weather }: LossyLinkParts) {
    this.#clock = clock;
    this.#network = network ?? clock;
    this.#random = random;
    this.#weather = weather;
  }

  /** Answers, or fails at the deadline: what arrived late was applied all the same. */
  protected call<T>(deadlineMs: number, run: () => Promise<T>): Promise<T> {
    const isLost = this.#isLost();
    const thereMs = this.#delayMs();
    return new Promise((resolve, reject) => {
      const patienceMs = deadlineMs - this.#clock.monotonicMs();
      const cancel = this.#clock.schedule(patienceMs, () =>
        reject(new ServiceError("STORE_TIMEOUT")),
      );
      if (isLost) return;
      this.#network.schedule(thereMs, () => {
        // What was sent before its sender died arrives.
        if (this.#isDropped()) return;
        const isAnswerLost = this.#isLost();
        const backMs = this.#delayMs();
        run().then(
          (answer) => {
            if (isAnswerLost) return;
            this.#network.schedule(backMs, () => {
              if (this.isDead) return;
              cancel();
              resolve(answer);
            });
          },
          (thrown: unknown) => {
            cancel();
            reject(thrown);
          },
        );
      });
    });
  }

  #isLost(): boolean {
    return this.isDead || this.#isDropped();
  }

  #isDropped(): boolean {
    return this.#weather.isOut || this.#random.next() < this.#weather.lostRatio / 3;
  }

  #delayMs(): number {
    return -this.#weather.delayMs * Math.log(1 - this.#random.next());
  }
}
