import { describe, expect, it } from "vitest";
import type { WindowedSample } from "../../../../src/core/concurrency/concurrency-limit.js";
import { limitProbeRatio } from "../../../../src/core/concurrency/limit-probe.js";
import {
  baselineMsMax,
  closeCountMin,
  isMostlyLate,
  leftMsMax,
  MinRtt,
  type MinRttFinding,
  measuredCountMin,
  probeGapMsMin,
  probeMsMax,
  probeShareMax,
  suspectedProbeShareMax,
} from "../../../../src/core/concurrency/min-rtt.js";
import { WindowRow, windowOf } from "../../../support/concurrency-samples.js";

/** A baseline, and windows for it a second apart. */
class Rig {
  readonly minRtt = new MinRtt();
  readonly row = new WindowRow();
  limit = 20;
  limitMin = 1;
  /** Whether in each window somebody goes without an answer. */
  isLeft = true;

  see(given: Partial<WindowedSample> = {}, isSuspect = false): MinRttFinding {
    const { limit, limitMin } = this;
    const window = this.row.next(given);
    if (this.isLeft) this.minRtt.noteLeft(window.endMs);
    return this.minRtt.observe(window, { limit, limitMin, isSuspect });
  }

  /** The first window at the limit probes at once, and finds that nothing queues. */
  learn(rttMs: number): void {
    this.see({ rttMs, inFlightMax: 20 });
    expect(this.minRtt.probeLimit).toBe(8);
    while (this.minRtt.probeLimit !== undefined) this.see({ rttMs, inFlightMax: 8 });
    expect(this.minRtt.minRttMs).toBe(rttMs);
  }

  /** Ordinary windows at the limit until it probes. */
  age(given: Partial<WindowedSample>): void {
    while (this.minRtt.probeLimit === undefined) this.see({ inFlightMax: this.limit, ...given });
  }

  /** Ordinary windows for that long. */
  pass(spanMs: number, given: Partial<WindowedSample>): void {
    for (let doneMs = 0; doneMs < spanMs; doneMs += 1_000) this.see(given);
  }
}

describe("isMostlyLate()", () => {
  it.each([
    { droppedCount: 0, sampleCount: 100, isLate: false },
    { droppedCount: 10, sampleCount: 90, isLate: false },
    { droppedCount: 11, sampleCount: 89, isLate: true },
    { droppedCount: 1, sampleCount: 0, isLate: true },
    { droppedCount: 0, sampleCount: 0, isLate: false },
  ])("is $isLate of $droppedCount dropped and $sampleCount served", ({ isLate, ...counts }) => {
    expect(isMostlyLate(counts)).toBe(isLate);
  });
});

describe("MinRtt", () => {
  it("knows nothing before a window, and nothing of one in which nobody was served", () => {
    const { minRtt } = new Rig();
    expect([minRtt.minRttMs, minRtt.probeLimit, minRtt.probeCount]).toEqual([
      undefined,
      undefined,
      0,
    ]);
    const window = windowOf({ rttMs: undefined, sampleCount: 0, inFlightMax: 0 });
    minRtt.observe(window, { limit: 20, limitMin: 1, isSuspect: false });
    expect(minRtt.minRttMs).toBeUndefined();
  });

  it("probes to 0.4 of what is in use, once the limit is reached and nothing is known", () => {
    const rig = new Rig();
    expect(rig.see({ rttMs: 100, inFlightMax: 9 })).toEqual({ kind: "steady" });
    expect(rig.see({ rttMs: 100, inFlightMax: 20 })).toEqual({ kind: "probing" });
    expect(rig.minRtt.probeLimit).toBe(20 * limitProbeRatio);
  });

  it("verifies what it began with after half a minute, as if it had measured that itself", () => {
    const rig = new Rig();
    rig.minRtt.begin(50, 0);
    rig.pass(baselineMsMax - 1_000, { rttMs: 75, inFlightMax: 20 });
    expect([rig.minRtt.minRttMs, rig.minRtt.probeCount]).toEqual([50, 0]);
    rig.see({ rttMs: 75, inFlightMax: 20 });
    // 0.8 x 20 / 75 x 50
    expect(rig.minRtt.probeLimit).toBe(10);
  });

  it("waits for the limit to be reached with the first probe, not with one that verifies", () => {
    const rig = new Rig();
    expect(rig.see({ rttMs: 50, inFlightMax: 15 })).toEqual({ kind: "steady" });
    expect(rig.see({ rttMs: 50, inFlightMax: 16 })).toEqual({ kind: "probing" });
    while (rig.minRtt.probeLimit !== undefined) rig.see({ rttMs: 50, inFlightMax: 6 });
    rig.pass(baselineMsMax - 1_000, { rttMs: 50, inFlightMax: 10 });
    expect(rig.minRtt.probeLimit).toBeUndefined();
    rig.see({ rttMs: 50, inFlightMax: 10 });
    expect(rig.minRtt.probeLimit).toBe(8);
  });

  it("verifies what it has measured with a fifth less than keeps all servers busy", () => {
    const rig = new Rig();
    rig.limit = 36;
    rig.see({ rttMs: 90, inFlightMax: 36 });
    while (rig.minRtt.probeLimit !== undefined) rig.see({ rttMs: 50, inFlightMax: 14 });
    rig.age({ rttMs: 90 });
    // 20 servers of 50 ms.
    expect(rig.minRtt.probeLimit).toBe(16);
    const finding = rig.see({ rttMs: 50, inFlightMax: 16 });
    expect(finding).toEqual({ kind: "measured", capacity: 20, isConfirmed: true });
  });

  it("verifies soon after it found a queue in what it knew, the first time", () => {
    const rig = new Rig();
    rig.minRtt.begin(80, -baselineMsMax);
    rig.limit = 36;
    rig.see({ rttMs: 90, inFlightMax: 36 });
    // 20 servers of 50 ms, and samples that take their time: a probe of many seconds.
    const probed = () => {
      const inFlightMax = rig.minRtt.probeLimit ?? 36;
      rig.see({ rttMs: Math.max(50, inFlightMax * 2.5), inFlightMax, sampleCount: 12 });
    };
    for (let i = 0; i < 60 && rig.minRtt.probeLimit !== undefined; i += 1) probed();
    expect(rig.minRtt.minRttMs).toBe(50);
    const probeCount = rig.minRtt.probeCount;
    rig.pass(4 * baselineMsMax, { rttMs: 90, inFlightMax: 36 });
    expect(rig.minRtt.probeCount).toBeGreaterThan(probeCount);
  });

  it("goes by what was served, where the most in use was not in use all the time", () => {
    const rig = new Rig();
    rig.limit = 36;
    rig.see({ rttMs: 90, inFlightMax: 36 });
    while (rig.minRtt.probeLimit !== undefined) rig.see({ rttMs: 50, inFlightMax: 14 });
    rig.age({ rttMs: 60, servedPerMs: 0.4 });
    // 0.8 x 0.4 x 50; by the most in use it would be 24.
    expect(rig.minRtt.probeLimit).toBe(16);
  });

  it("looks further where a baseline turns out to have had a queue in it", () => {
    const rig = new Rig();
    rig.limit = 36;
    // As if some queue had been there: truly, it is 20 servers of 50 ms.
    rig.see({ rttMs: 90, inFlightMax: 36 });
    while (rig.minRtt.probeLimit !== undefined) rig.see({ rttMs: 80, inFlightMax: 14 });
    expect(rig.minRtt.minRttMs).toBe(80);
    rig.age({ rttMs: 90 });
    const levels = new Set<number>();
    while (rig.minRtt.probeLimit !== undefined) {
      const inFlightMax = rig.minRtt.probeLimit;
      levels.add(inFlightMax);
      rig.see({ rttMs: Math.max(50, inFlightMax * 2.5), inFlightMax });
    }
    // 0.8 x 80 / 2.5, and then 0.8 of what is a queue there, too.
    expect([...levels]).toEqual([25, 20, 16]);
    expect(rig.minRtt.minRttMs).toBe(50);
  });

  it("tells in a probe that latency did not fall with permits, and what capacity that is", () => {
    const rig = new Rig();
    expect(rig.see({ rttMs: 100, inFlightMax: 20 })).toEqual({ kind: "probing" });
    const finding = rig.see({ rttMs: 60, inFlightMax: 8 });
    expect(finding).toEqual({ kind: "measured", capacity: 12, isConfirmed: false });
    expect(rig.minRtt.minRttMs).toBe(60);
  });

  it("takes no more for capacity than was served", () => {
    const rig = new Rig();
    rig.see({ rttMs: 60, inFlightMax: 20, servedPerMs: 0.1 });
    // By the most in use it would be 20.
    const finding = rig.see({ rttMs: 60, inFlightMax: 8 });
    expect(finding).toEqual({ kind: "measured", capacity: 8, isConfirmed: true });
  });

  it("goes deeper while latency falls with the permits", () => {
    const rig = new Rig();
    rig.limit = 600;
    rig.see({ rttMs: 3_000, inFlightMax: 600 });
    const levels: (number | undefined)[] = [rig.minRtt.probeLimit];
    for (let i = 0; i < 60 && rig.minRtt.probeLimit !== undefined; i += 1) {
      const inFlightMax = rig.minRtt.probeLimit;
      // Ten servers of 50 ms.
      rig.see({ rttMs: Math.max(50, inFlightMax * 5), inFlightMax, sampleCount: 1_000 });
      if (rig.minRtt.probeLimit !== levels.at(-1)) levels.push(rig.minRtt.probeLimit);
    }
    expect(levels).toEqual([240, 144, 86, 51, 30, 18, 10, 6, undefined]);
    expect(rig.minRtt.minRttMs).toBe(50);
  });

  it("looks in a probe only at windows that lie within it", () => {
    const rig = new Rig();
    rig.see({ rttMs: 100, inFlightMax: 20 });
    rig.see({ rttMs: 999, inFlightMax: 9 });
    expect(rig.see({ rttMs: 60, inFlightMax: 7 })).toMatchObject({ kind: "measured" });
    expect(rig.minRtt.minRttMs).toBe(60);
  });

  it("lets three round trips pass before it looks, in a probe and after it", () => {
    const rig = new Rig();
    rig.learn(2_000);
    expect(rig.minRtt.settledMs).toBeGreaterThan(3_000);
    expect(rig.see({ rttMs: 1, inFlightMax: 20 })).toEqual({ kind: "probing" });
    expect(rig.minRtt.minRttMs).toBe(2_000);
    while (rig.minRtt.probeLimit === undefined) rig.see({ rttMs: 2_000, inFlightMax: 20 });
    for (let i = 0; i < 5; i += 1) rig.see({ rttMs: 1, inFlightMax: 8 });
    expect([rig.minRtt.probeLimit, rig.minRtt.minRttMs]).toEqual([16, 2_000]);
  });

  it("spends a twentieth of the permits on regular probes, a quarter on suspected ones", () => {
    for (const { isSuspect, share, shortMs } of [
      { isSuspect: false, share: probeShareMax, shortMs: 1_000 },
      { isSuspect: true, share: suspectedProbeShareMax, shortMs: 1_000 },
      { isSuspect: true, share: suspectedProbeShareMax, shortMs: 50 },
    ]) {
      const rig = new Rig();
      let probedCount = 0;
      for (let second = 0; second < 2_000; second += 1) {
        probedCount += 1 - (rig.minRtt.probeLimit ?? 20) / 20;
        // Each probe finds another baseline, which is news.
        const rttMs = rig.minRtt.probeCount % 2 === 0 ? shortMs : 3 * shortMs;
        rig.see({ rttMs, inFlightMax: rig.minRtt.probeLimit ?? 20, sampleCount: 20 }, isSuspect);
      }
      expect(rig.minRtt.probeCount).toBeGreaterThan(3);
      expect(probedCount / 2_000).toBeLessThan(1.2 * share);
    }
  });

  it("believes a lower latency at once", () => {
    const rig = new Rig();
    rig.learn(100);
    rig.see({ rttMs: 70, inFlightMax: 20 });
    expect(rig.minRtt.minRttMs).toBe(70);
  });

  it("believes no single window of few, but those of one measurement together", () => {
    const rig = new Rig();
    rig.learn(100);
    const sampleCount = measuredCountMin / 2;
    rig.see({ rttMs: 20, inFlightMax: 20, sampleCount });
    expect(rig.minRtt.minRttMs).toBe(100);
    rig.see({ rttMs: 80, inFlightMax: 20, sampleCount });
    expect(rig.minRtt.minRttMs).toBe(50);
  });

  it("probes anew after half a minute at its limit, and follows a slower release up", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.pass(baselineMsMax - 1_000, { rttMs: 120, inFlightMax: 20 });
    expect(rig.minRtt.probeCount).toBe(1);
    rig.see({ rttMs: 120, inFlightMax: 20 });
    expect(rig.minRtt.probeCount).toBe(2);
    rig.see({ rttMs: 110, inFlightMax: 8 });
    expect(rig.minRtt.minRttMs).toBe(50);
    rig.see({ rttMs: 110, inFlightMax: 8 });
    expect(rig.minRtt.minRttMs).toBe(110);
  });

  it("measures a much higher baseline again for as long as it falls", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.pass(baselineMsMax, { rttMs: 1_000, inFlightMax: 20 });
    rig.see({ rttMs: 950, inFlightMax: 3 });
    rig.see({ rttMs: 700, inFlightMax: 3 });
    expect(rig.minRtt.probeLimit).toBe(3);
    rig.see({ rttMs: 690, inFlightMax: 3 });
    expect([rig.minRtt.probeLimit, rig.minRtt.minRttMs]).toEqual([undefined, 690]);
  });

  it("measures it once where nobody left unanswered for half a minute", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.isLeft = false;
    rig.pass(Math.max(baselineMsMax, leftMsMax), { rttMs: 1_000, inFlightMax: 20 });
    rig.see({ rttMs: 950, inFlightMax: 3 });
    expect([rig.minRtt.probeLimit, rig.minRtt.minRttMs]).toEqual([undefined, 950]);
  });

  it("looks longer where it is a close thing, before it goes deeper", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.pass(baselineMsMax, { rttMs: 100, inFlightMax: 20 });
    const sampleCount = measuredCountMin;
    const close = { rttMs: 42, inFlightMax: 8, sampleCount };
    for (let count = sampleCount; count < closeCountMin; count += sampleCount) {
      rig.see(close);
      expect(rig.minRtt.probeLimit).toBe(8);
    }
    rig.see(close);
    expect(rig.minRtt.probeLimit).toBeLessThan(8);
  });

  it("takes a queue at its first level for lost servers, and keeps the baseline", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.pass(2 * probeGapMsMin, { rttMs: 100, inFlightMax: 20 });
    // Five of ten servers are left: 20 in flight take 200 ms, and 7 take 70.
    for (let i = 0; i < 2; i += 1) rig.see({ rttMs: 200, inFlightMax: 20 }, true);
    expect(rig.minRtt.probeLimit).toBe(7);
    const finding = rig.see({ rttMs: 70, inFlightMax: 7, sampleCount: 200 });
    expect(finding).toEqual({ kind: "measured", capacity: 5, isConfirmed: true });
    expect([rig.minRtt.probeLimit, rig.minRtt.minRttMs]).toEqual([undefined, 50]);
  });

  it("probes when queueing is suspected for two windows, at most so often", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.pass(2 * probeGapMsMin, { rttMs: 60, inFlightMax: 20 });
    rig.see({ rttMs: 200, inFlightMax: 20 }, true);
    rig.see({ rttMs: 60, inFlightMax: 20 });
    rig.see({ rttMs: 200, inFlightMax: 20 }, true);
    expect(rig.minRtt.probeCount).toBe(1);
    rig.see({ rttMs: 200, inFlightMax: 20 }, true);
    expect(rig.minRtt.probeCount).toBe(2);
  });

  it("waits twice as long each time that suspicion found nothing new, to half a minute", () => {
    const rig = new Rig();
    rig.learn(50);
    const beganMs: number[] = [];
    for (let second = 0; second < 200; second += 1) {
      const before = rig.minRtt.probeCount;
      rig.see({ rttMs: 50, inFlightMax: rig.minRtt.probeLimit ?? 20 }, true);
      if (rig.minRtt.probeCount > before) beganMs.push(second * 1_000);
    }
    const gapsMs = beganMs.slice(1).map((ms, i) => ms - (beganMs[i] ?? 0));
    expect(gapsMs[0]).toBeGreaterThanOrEqual(probeGapMsMin);
    expect(gapsMs.at(-1)).toBeGreaterThanOrEqual(baselineMsMax);
    expect(gapsMs).toEqual(gapsMs.toSorted((a, b) => a - b));
  });

  /** A first probe of many levels, after which none is due for long, and a suspicion. */
  function searched(): Rig {
    const rig = new Rig();
    rig.limit = 60;
    rig.see({ rttMs: 300, inFlightMax: 60 });
    while (rig.minRtt.probeLimit !== undefined) {
      const inFlightMax = rig.minRtt.probeLimit;
      rig.see({ rttMs: Math.max(50, inFlightMax * 5), inFlightMax });
    }
    expect([rig.minRtt.minRttMs, rig.minRtt.probeCount]).toEqual([50, 1]);
    rig.limit = 20;
    suspect(rig);
    return rig;
  }

  /** Three windows that look like queueing. */
  function suspect(rig: Rig): void {
    for (let i = 0; i < 3; i += 1) rig.see({ rttMs: 100, inFlightMax: 20 }, true);
  }

  /** As `searched`, and one probe before its time found nothing: the next one has to wait. */
  function hurried(): Rig {
    const rig = searched();
    while (rig.minRtt.probeLimit !== undefined) rig.see({ rttMs: 50, inFlightMax: 8 });
    suspect(rig);
    expect([rig.minRtt.minRttMs, rig.minRtt.probeCount]).toEqual([50, 2]);
    return rig;
  }

  /**
   * Half of the servers went right after a long probe: for half a minute there was no other one,
   * and the law went down by steps of a twentieth a second.
   */
  it("probes once before its time, where something looks like queueing right after a probe", () => {
    const rig = searched();
    expect([rig.minRtt.probeCount, rig.minRtt.probeLimit]).toEqual([2, 8]);
  });

  it("remembers a suspicion until it may probe, though the law has found a limit by then", () => {
    const rig = hurried();
    // It was lowered as if servers had gone. But it is a slower release: no queue is left.
    rig.limit = 10;
    for (let doneMs = 0; doneMs < baselineMsMax; doneMs += 1_000) {
      rig.see({ rttMs: 100, inFlightMax: rig.minRtt.probeLimit ?? 10 });
    }
    expect(rig.minRtt.minRttMs).toBe(100);
  });

  it("forgets it where the limit is not reached any more", () => {
    const rig = hurried();
    rig.see({ rttMs: 50, inFlightMax: 5 });
    rig.pass(baselineMsMax - 10_000, { rttMs: 50, inFlightMax: 20 });
    expect(rig.minRtt.probeCount).toBe(2);
  });

  it("does not suspect few samples of a slow service", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.pass(2 * probeGapMsMin, { rttMs: 60, inFlightMax: 20 });
    const few = { rttMs: 200, inFlightMax: 20, sampleCount: 10 };
    for (let i = 0; i < 4; i += 1) rig.see(few, true);
    expect(rig.minRtt.probeCount).toBe(1);
    rig.see(few, true);
    expect(rig.minRtt.probeCount).toBe(2);
  });

  it("goes down to where nobody gives up, whatever those who waited took", () => {
    const rig = new Rig();
    rig.limit = 100;
    const late = { rttMs: 990, sampleCount: 50, droppedCount: 50 };
    rig.see({ ...late, inFlightMax: 100 });
    rig.see({ ...late, inFlightMax: 100 });
    expect(rig.minRtt.probeLimit).toBe(40);
    rig.see({ ...late, inFlightMax: 40 });
    // Three of those who were served pass before the next look.
    rig.pass(3_000, { ...late, inFlightMax: 40 });
    expect(rig.minRtt.probeLimit).toBe(16);
  });

  it("calls one permit the capacity where nobody is served in time even so", () => {
    const rig = new Rig();
    rig.limit = 4;
    const late = { rttMs: undefined, sampleCount: 0, droppedCount: 60 };
    rig.see({ ...late, inFlightMax: 4 });
    rig.see({ ...late, inFlightMax: 4 });
    expect(rig.minRtt.probeLimit).toBe(1);
    const finding = rig.see({ ...late, inFlightMax: 1 });
    expect(finding).toEqual({ kind: "measured", capacity: 1, isConfirmed: false });
    expect(rig.minRtt.minRttMs).toBeUndefined();
  });

  it("ends a probe in which nothing comes, and knows no more than before", () => {
    const rig = new Rig();
    rig.see({ rttMs: 100, inFlightMax: 20 });
    rig.pass(probeMsMax, { rttMs: 60, inFlightMax: 8, sampleCount: 1 });
    expect(rig.minRtt.probeLimit).toBe(8);
    rig.see({ rttMs: 60, inFlightMax: 8, sampleCount: 1 });
    expect([rig.minRtt.probeLimit, rig.minRtt.minRttMs]).toEqual([undefined, 100]);
  });

  it("refuses nobody for a measurement where the limit is far away, and takes the least", () => {
    const rig = new Rig();
    rig.learn(50);
    rig.see({ rttMs: 80, inFlightMax: 9 });
    rig.pass(baselineMsMax - 1_000, { rttMs: 90, inFlightMax: 9 });
    expect(rig.minRtt.minRttMs).toBe(50);
    rig.see({ rttMs: 90, inFlightMax: 9 });
    expect([rig.minRtt.minRttMs, rig.minRtt.probeCount]).toEqual([80, 1]);
  });

  it("takes what it sees with one permit in use, up or down", () => {
    const rig = new Rig();
    rig.limit = 1;
    rig.see({ rttMs: 50, inFlightMax: 1 });
    rig.see({ rttMs: 90, inFlightMax: 1 });
    expect([rig.minRtt.minRttMs, rig.minRtt.probeCount]).toEqual([90, 0]);
  });

  it("probes no lower than the least limit, and takes what it finds there", () => {
    const rig = new Rig();
    rig.limitMin = 15;
    rig.see({ rttMs: 100, inFlightMax: 20 });
    expect(rig.minRtt.probeLimit).toBe(15);
    rig.see({ rttMs: 75, inFlightMax: 15 });
    rig.see({ rttMs: 75, inFlightMax: 15 });
    expect([rig.minRtt.probeLimit, rig.minRtt.minRttMs]).toEqual([undefined, 75]);
    rig.limit = 15;
    rig.pass(2 * baselineMsMax, { rttMs: 80, inFlightMax: 15 });
    expect(rig.minRtt.probeCount).toBe(1);
  });
});
