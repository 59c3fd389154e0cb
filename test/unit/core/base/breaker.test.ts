import { describe, expect, it } from "vitest";
import { Breaker, type StoreBreakerOptions } from "../../../../src/core/base/breaker.js";

const options: StoreBreakerOptions = {
  failureCountToOpen: 3,
  failingMsToOpen: 100,
  probeAfterMs: 100,
  probeAfterMsMax: 350,
};

function openedAt(nowMs: number): Breaker {
  const breaker = new Breaker(options);
  breaker.failed(nowMs - 100);
  breaker.failed(nowMs - 50);
  expect(breaker.failed(nowMs)).toBe(true);
  return breaker;
}

describe("Breaker", () => {
  it("opens after enough failures in a row over a long enough time", () => {
    const breaker = openedAt(1_000);
    expect(breaker.isOpen).toBe(true);
    expect(breaker.admits(1_099)).toBe(false);
  });

  it("stays closed through a stall that is shorter than the failing time", () => {
    const breaker = new Breaker(options);
    for (let nowMs = 0; nowMs < 100; nowMs += 1) expect(breaker.failed(nowMs)).toBe(false);
    expect(breaker.admits(99)).toBe(true);
  });

  it("stays closed while failures are few, however long they last", () => {
    const breaker = new Breaker(options);
    expect(breaker.failed(0)).toBe(false);
    expect(breaker.failed(10_000)).toBe(false);
    expect(breaker.isOpen).toBe(false);
  });

  it("starts counting anew after a success", () => {
    const breaker = new Breaker(options);
    breaker.failed(0);
    breaker.failed(100);
    expect(breaker.succeeded()).toBe(false);
    breaker.failed(200);
    expect(breaker.failed(400)).toBe(false);
    expect(breaker.isOpen).toBe(false);
  });

  it("admits one probe at a time once the wait is over", () => {
    const breaker = openedAt(1_000);
    expect(breaker.admits(1_100)).toBe(true);
    expect(breaker.admits(1_100)).toBe(false);
    expect(breaker.admits(9_000)).toBe(false);
  });

  it("closes when the probe succeeds, and says so once", () => {
    const breaker = openedAt(1_000);
    breaker.admits(1_100);
    expect(breaker.succeeded()).toBe(true);
    expect(breaker.isOpen).toBe(false);
    expect(breaker.admits(1_101)).toBe(true);
    expect(breaker.succeeded()).toBe(false);
  });

  it("doubles the wait with each failed probe up to its maximum", () => {
    const breaker = openedAt(1_000);
    const waitsMs: number[] = [];
    let nowMs = 1_000;
    for (let probe = 0; probe < 5; probe += 1) {
      const failedMs = nowMs;
      while (!breaker.admits(nowMs)) nowMs += 1;
      waitsMs.push(nowMs - failedMs);
      breaker.failed(nowMs);
    }
    expect(waitsMs).toEqual([100, 200, 350, 350, 350]);
  });

  it("learns nothing from failures of calls that left before it opened", () => {
    const breaker = openedAt(1_000);
    expect(breaker.failed(1_050)).toBe(false);
    expect(breaker.admits(1_100)).toBe(true);
  });
});
