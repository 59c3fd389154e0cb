import { describe, expect, it } from "vitest";
import { hostRates } from "../../../src/host/host-rates.js";
import type { HostSample } from "../../../src/host/host-reader.js";

const nothing: HostSample = {
  limitedCpu: [],
  ticks: undefined,
  cpuPressure: undefined,
  memoryRatio: undefined,
  memoryPressure: undefined,
  runnableCount: undefined,
  cpusCount: undefined,
};

function group(cpusMax: number, usedUs: number | undefined, [periods = 0, throttled = 0] = [0, 0]) {
  return { folder: "/a", cpusMax, usedUs, periodsCount: periods, throttledCount: throttled };
}

function ticks(busyTicks: number, totalTicks: number) {
  return { busyTicks, totalTicks, usableCount: 4, cpusCount: 4 };
}

function waited(someUs: number, fullUs: number) {
  return { someUs, fullUs };
}

describe("hostRates()", () => {
  it("is what a cgroup used of its limit, and how often that throttled it", () => {
    const before = { ...nothing, limitedCpu: [group(1.5, 1_000_000, [100, 5])] };
    const after = { ...nothing, limitedCpu: [group(1.5, 1_600_000, [110, 8])] };
    expect(hostRates(before, after, 1_000)).toMatchObject({ cpu: 0.4, cpuThrottling: 0.3 });
  });

  it("goes by the limit that is left least of, whatever the host does", () => {
    const outer = { ...group(2, 0), folder: "/" };
    const before = { ...nothing, limitedCpu: [group(1, 0), outer], ticks: ticks(0, 0) };
    const used = [group(1, 500_000), { ...outer, usedUs: 1_800_000 }];
    const after = { ...nothing, limitedCpu: used, ticks: ticks(100, 100) };
    expect(hostRates(before, after, 1_000).cpu).toBe(0.9);
  });

  it("is what all CPUs did without a limit", () => {
    const before = { ...nothing, ticks: ticks(100, 1_000) };
    const after = { ...nothing, ticks: ticks(175, 1_100) };
    expect(hostRates(before, after, 1_000)).toMatchObject({
      cpu: 0.75,
      cpuThrottling: undefined,
    });
  });

  it("is the part of the time in which tasks waited", () => {
    const before = { ...nothing, cpuPressure: waited(10, 0), memoryPressure: waited(100, 50) };
    const after = {
      ...nothing,
      cpuPressure: waited(500_010, 0),
      memoryPressure: waited(200_100, 100_050),
      memoryRatio: 0.5,
    };
    expect(hostRates(before, after, 1_000)).toEqual({
      cpu: undefined,
      cpuThrottling: undefined,
      cpuPressure: 0.5,
      memory: 0.5,
      memoryPressure: 0.2,
      memoryStall: 0.1,
    });
  });

  it.each([
    ["a counter went back", group(1, 100), group(1, 50), 1_000],
    ["the limit is new", undefined, group(1, 50), 1_000],
    ["nobody counts", group(1, undefined), group(1, undefined), 1_000],
    ["no time passed", group(1, 0), group(1, 50), 0],
    ["time went back", group(1, 0), group(1, 50), -5],
    ["time is none", group(1, 0), group(1, 50), Number.NaN],
  ])("knows no rate where %s", (_, from, to, elapsedMs) => {
    const before = { ...nothing, limitedCpu: from === undefined ? [] : [from] };
    const after = { ...nothing, limitedCpu: [to] };
    expect(hostRates(before, after, elapsedMs).cpu).toBeUndefined();
  });

  it("is never above 1, and 0 where nothing ran", () => {
    const before = { ...nothing, limitedCpu: [group(1, 0, [7, 2])] };
    const burst = { ...nothing, limitedCpu: [group(1, 9_000_000, [7, 2])] };
    expect(hostRates(before, burst, 1_000)).toMatchObject({ cpu: 1, cpuThrottling: 0 });
    expect(hostRates(before, before, 1_000)).toMatchObject({ cpu: 0, cpuThrottling: 0 });
  });
});
