import { describe, expect, it } from "vitest";
import { CpuWatch, lateReasonOf } from "../../../../src/app/base/cpu-watch.js";
import type { HostReader } from "../../../../src/host/host-reader.js";
import { FakeClock } from "../../../support/fake-clock.js";

type Throttling = ReturnType<HostReader["throttling"]>;

function throttledFor(ms: number): Throttling {
  return { throttledCount: ms / 10, throttledUs: ms * 1_000 };
}

function start() {
  const clock = new FakeClock();
  const readings = { used: 0, throttling: undefined as Throttling };
  const watch = new CpuWatch({
    clock,
    readings: { usedMs: () => readings.used, throttling: () => readings.throttling },
  });
  return { clock, readings, watch };
}

describe("CpuWatch", () => {
  it("says how its cgroup was throttled, since a second or two", () => {
    const { clock, readings, watch } = start();
    readings.throttling = throttledFor(0);
    clock.advance(1_000);
    readings.throttling = throttledFor(500);
    readings.used = 100;
    clock.advance(1_000);
    readings.throttling = throttledFor(800);
    readings.used = 250;
    clock.advance(300);
    expect(watch.use).toEqual({
      elapsedMs: 1_300,
      usedMs: 250,
      throttledMs: 800,
      throttledCount: 80,
    });
  });

  it("knows of no throttling where there is no control group, and leaves no timer", () => {
    const { clock, watch } = start();
    clock.advance(5_500);
    expect(watch.use).toEqual({ elapsedMs: 1_500, usedMs: 0, throttledMs: 0, throttledCount: 0 });
    watch.close();
    expect(clock.timerCount).toBe(0);
  });
});

describe("lateReasonOf()", () => {
  it.each([
    { throttledMs: 900, usedMs: 300, lateMs: 1_000, reason: "throttled" },
    // With several threads it may use what it is given at once, and be throttled all the same.
    { throttledMs: 400, usedMs: 1_200, lateMs: 1_000, reason: "throttled" },
    { throttledMs: 100, usedMs: 980, lateMs: 1_000, reason: "busy" },
    { throttledMs: 0, usedMs: 200, lateMs: 1_000, reason: "starved" },
    { throttledMs: 90, usedMs: 20, lateMs: 150, reason: "throttled" },
  ])("is $reason: throttled $throttledMs and running $usedMs of $lateMs ms", (row) => {
    const { throttledMs, usedMs, lateMs, reason } = row;
    const use = { elapsedMs: 1_500, throttledMs, usedMs, throttledCount: 1 };
    expect(lateReasonOf(use, lateMs)).toBe(reason);
  });
});
