import { describe, expect, it } from "vitest";
import { CpuWatch, lateReasonOf } from "../../../../src/app/base/cpu-watch.js";
import { FakeClock } from "../../../support/fake-clock.js";

function start() {
  const clock = new FakeClock();
  const readings = { used: 0, stat: "" as string | undefined };
  const watch = new CpuWatch({
    clock,
    readings: { usedMs: () => readings.used, cpuStat: () => readings.stat },
  });
  return { clock, readings, watch };
}

describe("CpuWatch", () => {
  it.each([
    [
      "version 2",
      (ms: number) => `nr_periods 9\nnr_throttled ${ms / 10}\nthrottled_usec ${ms}000\n`,
    ],
    ["version 1", (ms: number) => `nr_throttled ${ms / 10}\nthrottled_time ${ms}000000\n`],
  ])("reads how a control group of %s was throttled, since a second or two", (_, statOf) => {
    const { clock, readings, watch } = start();
    readings.stat = statOf(0);
    clock.advance(1_000);
    readings.stat = statOf(500);
    readings.used = 100;
    clock.advance(1_000);
    readings.stat = statOf(800);
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
    const { clock, readings, watch } = start();
    readings.stat = undefined;
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
