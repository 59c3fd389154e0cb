import { describe, expect, it } from "vitest";
import {
  type TurnJob,
  TurnQueue,
  unitsPerTurn,
  waitingReportsMax,
} from "../../../../src/rpc/control/turn-queue.js";

/** A job of so many parts, each a tenth of a turn, that notes when it does one. */
class NotedJob implements TurnJob {
  leftCount: number;
  readonly #name: string;
  readonly #log: string[];

  constructor(name: string, log: string[], leftCount: number) {
    this.#name = name;
    this.#log = log;
    this.leftCount = leftCount;
  }

  step(): number {
    this.leftCount -= 1;
    this.#log.push(this.#name);
    return unitsPerTurn / 10;
  }
}

/** Turns of an event loop, one at a time. */
class Turns {
  readonly #waiting: (() => void)[] = [];

  scheduleTurn(callback: () => void) {
    this.#waiting.push(callback);
    return () => {};
  }

  run(): void {
    for (const callback of this.#waiting.splice(0)) callback();
  }
}

describe("TurnQueue", () => {
  it("does the first part at once, and the rest in turns, in the order of arrival", () => {
    const clock = new Turns();
    const queue = new TurnQueue(clock);
    const log: string[] = [];
    const perTurn: string[] = [];
    queue.add(new NotedJob("a", log, 12));
    queue.add(new NotedJob("b", log, 3));
    queue.add(new NotedJob("c", log, 9));
    for (let turn = 0; turn < 4; turn += 1) {
      perTurn.push(log.splice(0).join(""));
      clock.run();
    }
    expect(perTurn).toEqual(["aaaaaaaaaa", "aabbbccccc", "cccc", ""]);
  });

  it("shares a turn among all that fit into it", () => {
    const clock = new Turns();
    const queue = new TurnQueue(clock);
    const log: string[] = [];
    for (const name of ["a", "b", "c"]) queue.add(new NotedJob(name, log, 4));
    expect(log.join("")).toBe("aaaabbbbcc");
    clock.run();
    expect(log.join("")).toBe("aaaabbbbcccc");
  });

  it("lets no more wait than there is room for", () => {
    const clock = new Turns();
    const queue = new TurnQueue(clock);
    const log: string[] = [];
    queue.add(new NotedJob("a", log, 11));
    const waiting = new NotedJob("b", log, waitingReportsMax - 1);
    queue.add(waiting);
    expect(waiting.leftCount).toBe(waitingReportsMax - 1);
    const beyond = new NotedJob("c", log, 30);
    queue.add(beyond);
    expect(beyond.leftCount).toBe(0);
  });
});
