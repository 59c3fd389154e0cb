import { describe, expect, it } from "vitest";
import {
  costMs,
  hasQueue,
  isClose,
  isDoubtful,
  isNews,
  type LimitProbe,
  nextLevel,
  pooled,
} from "../../../../src/core/concurrency/limit-probe.js";

/** A probe from 20 permits at 100 ms to 8, with a baseline of 50 ms before it. */
function probeOf(given: Partial<LimitProbe> = {}): LimitProbe {
  return {
    limit: 20,
    limitMin: 1,
    isSuspected: false,
    knownMs: 50,
    startMs: 0,
    before: { rttMs: 100, inFlight: 20 },
    isDeep: false,
    holdsCritical: false,
    perMs: 0.2,
    ...nextLevel({ inFlight: 20, limitMin: 1, known: undefined, hadQueue: false, nowMs: 0 }),
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
    const next = nextLevel({ ...from, known: undefined, hadQueue: false, nowMs: 7 });
    expect(next).toMatchObject({ level, expectedMs: undefined, levelMs: 7, droppedCount: 0 });
  });

  it.each([
    { inFlight: 36, busyCount: 20, level: 16, isVerifying: true, why: "a fifth below" },
    { inFlight: 20, busyCount: 20, level: 16, isVerifying: true, why: "without a queue, too" },
    { inFlight: 20, busyCount: 30, level: 16, isVerifying: true, why: "of what is in use at most" },
    { inFlight: 40, busyCount: 20, level: 16, isVerifying: true, why: "where both are the same" },
    { inFlight: 36, busyCount: 10, level: 14, isVerifying: false, why: "0.4 where that is more" },
    { inFlight: 80, busyCount: 10, level: 15, isVerifying: false, why: "1.5 of it at most" },
    { inFlight: 100, busyCount: 1, level: 16, isVerifying: false, why: "twice 0.4 at least" },
  ])("goes from $inFlight to $level by $busyCount: $why", ({ inFlight, ...row }) => {
    const known = { baselineMs: 50, perMs: row.busyCount / 50 };
    const next = nextLevel({ inFlight, limitMin: 1, known, hadQueue: false, nowMs: 7 });
    expect([next.level, next.expectedMs]).toEqual([row.level, row.isVerifying ? 50 : undefined]);
  });
});

describe("nextLevel(), below a level", () => {
  it("keeps at least 0.6 of one with a queue", () => {
    const deeper = { inFlight: 20, limitMin: 1, known: undefined, hadQueue: true, nowMs: 7 };
    expect(nextLevel(deeper).level).toBe(12);
  });
});

describe("hasQueue(), isClose()", () => {
  // In proportion 100 ms become 40; 1.15 times that are 46.
  it.each([
    { rttMs: 39, isQueue: true, close: false },
    { rttMs: 41, isQueue: true, close: true },
    { rttMs: 45, isQueue: true, close: true },
    { rttMs: 47, isQueue: false, close: true },
    { rttMs: 52, isQueue: false, close: true },
    { rttMs: 54, isQueue: false, close: false },
    { rttMs: 100, isQueue: false, close: false },
  ])("are $isQueue and $close at $rttMs ms", ({ rttMs, isQueue, close }) => {
    expect([hasQueue(probeOf(), rttMs), isClose(probeOf(), rttMs)]).toEqual([isQueue, close]);
  });

  // A baseline of 50 ms is the same from 45 to 62.5, whatever the permits say: 60 is in proportion.
  it.each([
    { rttMs: 39, isQueue: true, close: false },
    { rttMs: 40, isQueue: true, close: true },
    { rttMs: 44, isQueue: true, close: true },
    { rttMs: 45, isQueue: false, close: false },
    { rttMs: 50, isQueue: false, close: false },
    { rttMs: 54, isQueue: false, close: false },
    { rttMs: 62, isQueue: false, close: false },
    { rttMs: 63, isQueue: true, close: true },
    { rttMs: 70, isQueue: true, close: true },
    { rttMs: 76, isQueue: true, close: true },
    { rttMs: 90, isQueue: true, close: false },
  ])("are $isQueue and $close at $rttMs ms where 50 are to be verified", (row) => {
    const before = { rttMs: 150, inFlight: 20 };
    const probe = probeOf({ before, expectedMs: 50 });
    expect([hasQueue(probe, row.rttMs), isClose(probe, row.rttMs)]).toEqual([
      row.isQueue,
      row.close,
    ]);
    expect(hasQueue(probeOf({ before }), 50)).toBe(true);
  });

  it("compare with a deeper level what takes much longer than expected, once", () => {
    const before = { rttMs: 150, inFlight: 20 };
    expect(hasQueue(probeOf({ before, expectedMs: 50, isDeep: false }), 90)).toBe(true);
    expect(hasQueue(probeOf({ before, expectedMs: 50, isDeep: true }), 90)).toBe(false);
    expect(hasQueue(probeOf({ before, expectedMs: 50, level: 5 }), 90)).toBe(true);
    expect(hasQueue(probeOf({ before, expectedMs: 50, level: 4 }), 90)).toBe(false);
  });

  it("suppose a queue where too many gave up to compare, and none at the lowest", () => {
    expect(hasQueue(probeOf({ before: undefined }), 60)).toBe(true);
    expect(isClose(probeOf({ before: undefined }), 50)).toBe(false);
    expect(hasQueue(probeOf({ limitMin: 8 }), 40)).toBe(false);
    expect(isClose(probeOf({ limitMin: 8 }), 49)).toBe(false);
  });
});

describe("costMs()", () => {
  it.each([
    { title: "a fifth where it only verified", expectedMs: 50, isDeep: false, cost: 1_000 },
    { title: "all of it where it went deeper", expectedMs: 50, isDeep: true, cost: 5_000 },
    { title: "three where it searched", expectedMs: undefined, isDeep: false, cost: 3_000 },
  ])("is $title", ({ cost, expectedMs, isDeep }) => {
    expect(costMs(probeOf({ expectedMs, isDeep }), 5_000)).toBeCloseTo(cost);
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
    expect(isDoubtful(probeOf(given), rttMs)).toBe(isDoubt);
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
    expect(isNews(probeOf(), found)).toBe(is);
  });

  it("is so of nothing found, and of the first baseline", () => {
    expect(isNews(probeOf(), undefined)).toBe(true);
    expect(isNews(probeOf({ knownMs: undefined }), { rttMs: 50, capacity: 10 })).toBe(true);
  });
});

describe("pooled()", () => {
  it("weighs latencies by how many had them", () => {
    expect(pooled({ sumMs: 100, count: 2 }, 20, 5)).toEqual({ sumMs: 200, count: 7 });
  });
});
