import type { Clock, Random } from "../../src/core/base/clock.js";
import { ServiceError } from "../../src/core/base/errors.js";
import type { RoomOverride } from "../../src/core/waiting-room/room-line.js";
import type { MemoryRooms } from "../../src/store/coordination/memory-rooms.js";
import type {
  RoomBeat,
  RoomHead,
  RoomStep,
  RoomStepAnswer,
  RoomStore,
  RoomTurn,
  RoomTurnAnswer,
} from "../../src/store/coordination/room-store.js";

/** What the network between replicas and the store is like now. */
export interface RoomWeather {
  /** Mean of exponential delays, each way. */
  delayMs: number;
  /** Calls that do not arrive, and answers that do not although the call was applied: 0 to 1. */
  lostRatio: number;
  /** Nothing arrives. */
  isOut: boolean;
}

/** Told of what the store did, right when it has. */
export interface RoomWatcher {
  turned(turn: RoomTurn, answer: RoomTurnAnswer): void;
  applied(step: RoomStep, answer: RoomStepAnswer): Promise<void>;
}

/** A store of rooms behind a network, as one replica sees it. */
export class RoomLink implements RoomStore {
  isDead = false;
  readonly #inner: MemoryRooms;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #weather: RoomWeather;
  readonly #watcher: RoomWatcher;

  constructor(parts: {
    readonly inner: MemoryRooms;
    readonly clock: Clock;
    readonly random: Random;
    readonly weather: RoomWeather;
    readonly watcher: RoomWatcher;
  }) {
    this.#inner = parts.inner;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#weather = parts.weather;
    this.#watcher = parts.watcher;
  }

  beat(beat: RoomBeat, deadlineMs: number): Promise<RoomHead> {
    return this.#call(deadlineMs, () => this.#inner.beat(beat));
  }

  turn(turn: RoomTurn, deadlineMs: number): Promise<RoomTurnAnswer> {
    return this.#call(deadlineMs, async () => {
      const answer = await this.#inner.turn(turn);
      this.#watcher.turned(turn, answer);
      return answer;
    });
  }

  readLine(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array> {
    return this.#call(deadlineMs, () => this.#inner.readLine(room, range));
  }

  readSessions(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array> {
    return this.#call(deadlineMs, () => this.#inner.readSessions(room, range));
  }

  apply(step: RoomStep, deadlineMs: number): Promise<RoomStepAnswer> {
    return this.#call(deadlineMs, async () => {
      const answer = await this.#inner.apply(step);
      await this.#watcher.applied(step, answer);
      return answer;
    });
  }

  override(room: string, override: RoomOverride | undefined, deadlineMs: number): Promise<void> {
    return this.#call(deadlineMs, () => this.#inner.override(room, override));
  }

  forget(room: string, deadlineMs: number): Promise<void> {
    return this.#call(deadlineMs, () => this.#inner.forget(room));
  }

  /** Answers, or fails at the deadline: what arrived late was applied all the same. */
  #call<T>(deadlineMs: number, run: () => Promise<T>): Promise<T> {
    const isLost = this.#isLost();
    const thereMs = this.#delayMs();
    return new Promise((resolve, reject) => {
      const patienceMs = deadlineMs - this.#clock.monotonicMs();
      const cancel = this.#clock.schedule(patienceMs, () =>
        reject(new ServiceError("STORE_TIMEOUT")),
      );
      if (isLost) return;
      this.#clock.schedule(thereMs, () => {
        if (this.#isLost()) return;
        const isAnswerLost = this.#isLost();
        const backMs = this.#delayMs();
        run().then(
          (answer) => {
            if (isAnswerLost) return;
            this.#clock.schedule(backMs, () => {
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
    return this.isDead || this.#weather.isOut || this.#random.next() < this.#weather.lostRatio / 3;
  }

  #delayMs(): number {
    return -this.#weather.delayMs * Math.log(1 - this.#random.next());
  }
}
