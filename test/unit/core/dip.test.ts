import { describe, expect, it } from "vitest";
import {
  type Dip,
  hasQueue,
  isClose,
  isDoubtful,
  isNews,
  nextLevel,
  pooled,
} from "../../../src/core/dip.js";

/** A dip from 20 permits at 100 ms to 8, with a baseline of 50 ms before it. */
function dipOf(given: Partial<Dip> = {}): Dip {
  return {
    limit: 20,
    limitMin: 1,
    isSuspected: false,
    knownMs: 50,
    startMs: 0,
    before: { rttMs: 100, inFlight: 20 },
    perMs: 0.2,
    ...nextLevel({ inFlight: 20, limitMin: 1, nowMs: 0 }),
    ...given,
  };
}

describe("nextLevel()", () => {
  it.each([
    { inFlight: 20, limitMin: 1, level: 8 },
    { inFlight: 9, limitMin: 1, level: 3 },
    { inFlight: 2, limitMin: 1, level: 1 },
    { inFlight: 20, limitMin: 15, level: 15 },
  ])("goes from $inFlight to $level where $limitMin is the least", ({ level, ...from }) => {
    expect(nextLevel({ ...from, nowMs: 7 })).toMatchObject({ level, levelMs: 7, droppedCount: 0 });
  });
});

describe("hasQueue(), isClose()", () => {
  // In proportion 100 ms become 40; 1.25 times that are 50.
  it.each([
    { rttMs: 40, isQueue: true, close: false },
    { rttMs: 43, isQueue: true, close: false },
    { rttMs: 44, isQueue: true, close: true },
    { rttMs: 49, isQueue: true, close: true },
    { rttMs: 51, isQueue: false, close: true },
    { rttMs: 57, isQueue: false, close: true },
    { rttMs: 58, isQueue: false, close: false },
    { rttMs: 100, isQueue: false, close: false },
  ])("are $isQueue and $close at $rttMs ms", ({ rttMs, isQueue, close }) => {
    expect([hasQueue(dipOf(), rttMs), isClose(dipOf(), rttMs)]).toEqual([isQueue, close]);
  });

  it("suppose a queue where too many gave up to compare, and none at the lowest", () => {
    expect(hasQueue(dipOf({ before: undefined }), 60)).toBe(true);
    expect(isClose(dipOf({ before: undefined }), 50)).toBe(false);
    expect(hasQueue(dipOf({ limitMin: 8 }), 40)).toBe(false);
    expect(isClose(dipOf({ limitMin: 8 }), 49)).toBe(false);
  });
});

describe("isDoubtful()", () => {
  it.each([
    { rttMs: 62, knownMs: 50, lastRttMs: undefined, isDoubt: false },
    { rttMs: 63, knownMs: 50, lastRttMs: undefined, isDoubt: true },
    { rttMs: 63, knownMs: undefined, lastRttMs: undefined, isDoubt: true },
    { rttMs: 100, knownMs: 50, lastRttMs: 126, isDoubt: true },
    { rttMs: 100, knownMs: 50, lastRttMs: 124, isDoubt: false },
  ])("is $isDoubt of $rttMs ms after $knownMs and $lastRttMs", ({ rttMs, isDoubt, ...given }) => {
    expect(isDoubtful(dipOf(given), rttMs)).toBe(isDoubt);
  });
});

describe("isNews()", () => {
  it.each([
    { rttMs: 50, capacity: 10, is: false },
    { rttMs: 63, capacity: 10, is: true },
    { rttMs: 39, capacity: 10, is: true },
    { rttMs: 50, capacity: 9, is: true },
    { rttMs: undefined, capacity: 10, is: true },
  ])("is $is of $rttMs ms and a capacity of $capacity", ({ is, ...found }) => {
    expect(isNews(dipOf(), found)).toBe(is);
  });

  it("is so of nothing found, and of the first baseline", () => {
    expect(isNews(dipOf(), undefined)).toBe(true);
    expect(isNews(dipOf({ knownMs: undefined }), { rttMs: 50, capacity: 10 })).toBe(true);
  });
});

describe("pooled()", () => {
  it("weighs latencies by how many had them", () => {
    expect(pooled({ sumMs: 100, count: 2 }, 20, 5)).toEqual({ sumMs: 200, count: 7 });
  });
});
