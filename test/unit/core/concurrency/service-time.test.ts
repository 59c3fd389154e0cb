import { describe, expect, it } from "vitest";
import {
  ServiceTime,
  serviceTimeIdleMsMax,
  serviceTimeMsMax,
} from "../../../../src/core/concurrency/service-time.js";
import { exponentialMs } from "../../../../src/simulate/engine/distributions.js";
import { FakeRandom } from "../../../support/fake-random.js";

/** Keeps slots busy, one of them ending each `everyMs` and taken up again at once. */
function work(slots: ServiceTime, { busyCount, everyMs, fromMs, untilMs }: WorkSpan): void {
  slots.occupy(busyCount, fromMs);
  for (let nowMs = fromMs + everyMs; nowMs <= untilMs; nowMs += everyMs) {
    slots.complete(nowMs);
    slots.occupy(busyCount, nowMs);
  }
}

interface WorkSpan {
  readonly busyCount: number;
  readonly everyMs: number;
  readonly fromMs: number;
  readonly untilMs: number;
}

describe("ServiceTime", () => {
  it("knows nothing before a request has ended", () => {
    const slots = new ServiceTime();
    expect(slots.serviceMs(0)).toBeUndefined();
    slots.occupy(3, 0);
    expect(slots.serviceMs(60_000)).toBeUndefined();
  });

  it("is busy time over completions", () => {
    const slots = new ServiceTime();
    work(slots, { busyCount: 10, everyMs: 5, fromMs: 0, untilMs: 1_000 });
    expect(slots.serviceMs(1_000)).toBeCloseTo(50, 0);
  });

  it("remembers so many requests where those take long", () => {
    const short = new ServiceTime({ memoryMs: 1_000 });
    const long = new ServiceTime({ memoryMs: 1_000, memoryCount: 30 });
    for (const slots of [short, long]) {
      work(slots, { busyCount: 1, everyMs: 2_000, fromMs: 0, untilMs: 200_000 });
      work(slots, { busyCount: 1, everyMs: 500, fromMs: 200_000, untilMs: 205_000 });
    }
    expect(short.serviceMs(205_000)).toBeLessThan(700);
    expect(long.serviceMs(205_000)).toBeGreaterThan(1_400);
  });

  it("is the time of one request where there was one", () => {
    const slots = new ServiceTime();
    slots.occupy(1, 500);
    slots.complete(580);
    slots.occupy(0, 580);
    // The memory of 10 s makes the first of these 80 ms count less than the last.
    expect(slots.serviceMs(580)).toBeCloseTo(80, 0);
  });

  it("finds the mean of random times, from busy slots alone", () => {
    const slots = new ServiceTime();
    const gapMs = exponentialMs(new FakeRandom(4), 5);
    let nowMs = 0;
    slots.occupy(10, nowMs);
    while (nowMs < 120_000) {
      nowMs += gapMs();
      slots.complete(nowMs);
    }
    // 2,000 completions are remembered: their standard error is 2.2 %.
    expect(Math.abs((slots.serviceMs(nowMs) ?? 0) / 50 - 1)).toBeLessThan(0.07);
  });

  it("follows a service that becomes slower within its memory", () => {
    const slots = new ServiceTime({ memoryMs: 1_000 });
    work(slots, { busyCount: 10, everyMs: 5, fromMs: 0, untilMs: 5_000 });
    work(slots, { busyCount: 10, everyMs: 20, fromMs: 5_000, untilMs: 10_000 });
    expect(slots.serviceMs(10_000)).toBeGreaterThan(190);
    expect(slots.serviceMs(10_000)).toBeLessThan(202);
  });

  it("sees a service that hangs while it hangs", () => {
    const slots = new ServiceTime();
    work(slots, { busyCount: 10, everyMs: 5, fromMs: 0, untilMs: 20_000 });
    const before = slots.serviceMs(20_000) ?? 0;
    const after = slots.serviceMs(22_000) ?? 0;
    expect(before).toBeCloseTo(50, 0);
    expect(after).toBeGreaterThan(60);
    expect(slots.serviceMs(80_000)).toBeGreaterThan(20_000);
    expect(slots.serviceMs(1e9)).toBe(serviceTimeMsMax);
  });

  it("does not forget over a pause, but gives up what a longer one leaves unproved", () => {
    const slots = new ServiceTime();
    work(slots, { busyCount: 10, everyMs: 5, fromMs: 0, untilMs: 1_000 });
    slots.occupy(0, 1_000);
    const known = slots.serviceMs(1_000);
    expect(slots.serviceMs(1_000 + serviceTimeIdleMsMax)).toBe(known);
    expect(slots.serviceMs(1_001 + serviceTimeIdleMsMax)).toBeUndefined();
  });

  it("begins anew after a pause, so that a hang does not stand in the way of a service", () => {
    const slots = new ServiceTime();
    slots.occupy(10, 0);
    for (let left = 9; left >= 0; left -= 1) {
      slots.complete(60_000);
      slots.occupy(left, 60_000);
    }
    expect(slots.serviceMs(60_000)).toBeGreaterThan(5_000);
    slots.occupy(1, 63_000);
    slots.complete(63_050);
    expect(slots.serviceMs(63_050)).toBeCloseTo(50, 0);
  });

  it("sums up busy time as it is remembered, also over gaps as long as the memory", () => {
    const slots = new ServiceTime();
    work(slots, { busyCount: 10, everyMs: 5_000, fromMs: 0, untilMs: 200_000 });
    // 10 slots x 10 s over 1 / (1 - exp(-0.5)) completions, right after one of them.
    expect(slots.serviceMs(200_000)).toBeCloseTo(100_000 * (1 - Math.exp(-0.5)), 0);
  });

  it("holds still when time goes back", () => {
    const slots = new ServiceTime();
    work(slots, { busyCount: 10, everyMs: 5, fromMs: 0, untilMs: 1_000 });
    const known = slots.serviceMs(1_000);
    expect(slots.serviceMs(400)).toBe(known);
  });
});
