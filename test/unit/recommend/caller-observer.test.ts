import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/core/limits/bucket.js";
import { decideRequest } from "../../../src/core/limits/gcra.js";
import { shortKey } from "../../../src/core/limits/key.js";
import type { LimitKey } from "../../../src/core/limits/limit.js";
import { CallerObserver } from "../../../src/recommend/caller-observer.js";
import { needOfStep, observedRates } from "../../../src/recommend/number-scales.js";
import { FakeRandom } from "../../support/fake-random.js";
import { firstDayUs } from "../../support/generated-log.js";
import { runSeeds, seedsFrom } from "../../support/seeds.js";

const secondUs = 1_000_000;
const minuteUs = 60 * secondUs;
const dayUs = 1_440 * minuteUs;

/** Limits of a minute. */
function observePerMinute(stepUs = 0): CallerObserver {
  const ratesPerUs = observedRates.map((hits) => hits / minuteUs);
  return new CallerObserver({ kind: "rates", ratesPerUs }, 0.05, stepUs);
}

describe("CallerObserver", () => {
  it("finds the least burst that the decision code refuses nothing with", async () => {
    await runSeeds(seedsFrom(1, 30), (seed) => {
      const random = new FakeRandom(seed);
      const observer = observePerMinute();
      let timeUs = firstDayUs;
      const times = Array.from({ length: 200 }, () => {
        timeUs += Math.floor(random.next() ** 4 * 60 * secondUs);
        return timeUs;
      });
      for (const time of times) observer.take("ann", time, 1);
      const days = observer.finish();
      for (const hits of [1, 3, 10, 30]) {
        const rate = observedRates.indexOf(hits);
        const need = needOfStep(days.needStepAt(0, rate));
        expect(refusedCount(times, hits, need), `${hits} and ${need}`).toBe(0);
        if (need > 1 && need <= 40) {
          expect(refusedCount(times, hits, need - 1), `${hits}, less than ${need}`).toBeGreaterThan(
            0,
          );
        }
      }
    });
  });

  it("finds a burst that is enough, however the requests of a step lie within it", async () => {
    await runSeeds(seedsFrom(1, 30), (seed) => {
      const random = new FakeRandom(seed);
      const observer = observePerMinute(minuteUs);
      const times: number[] = [];
      for (let step = 0; step < 60; step += 1) {
        const startUs = firstDayUs + step * minuteUs;
        const hits = Math.floor(random.next() ** 3 * 20);
        // At its end, at its start, or anywhere: at a border, those of two steps come at once.
        const [from, width] = [random.next(), random.next() ** 2];
        const own = Array.from({ length: hits }, () => {
          const within = Math.min(0.999_999, from + width * random.next());
          return startUs + Math.floor(within * minuteUs);
        });
        times.push(...own.sort((a, b) => a - b));
        if (hits > 0) observer.take("ann", startUs, hits);
      }
      const days = observer.finish();
      for (const hits of [1, 3, 10, 30]) {
        const need = needOfStep(days.needStepAt(0, observedRates.indexOf(hits)));
        expect(refusedCount(times, hits, need), `${hits} and ${need}`).toBe(0);
      }
    });
    const observer = observePerMinute(minuteUs);
    for (const step of [0, 1, 5]) observer.take("ann", firstDayUs + step * minuteUs, 10);
    // Ten at the end of a step and ten at the start of the next one.
    expect(observer.finish().needStepAt(0, observedRates.indexOf(10))).toBe(20);
  });

  it("follows fewer callers even where each of them sends a large part", () => {
    const observer = observePerMinute();
    for (let i = 0; i < 4_000; i += 1) {
      observer.take(`caller ${i % 20}`, firstDayUs + i * minuteUs, 1);
    }
    for (let times = 0; times < 20; times += 1) observer.halve();
    expect(observer.liveCount).toBe(0);
    expect(observer.days.rowCount).toBe(0);
  });

  it("has a row for each caller and day, with its busiest windows", () => {
    const observer = observePerMinute();
    for (const second of [0, 0, 1, 90, 3_700]) {
      observer.take("ann", firstDayUs + second * secondUs, 1);
    }
    observer.take("bob", firstDayUs + dayUs - 1, 2);
    observer.take("ann", firstDayUs + dayUs, 5);
    const days = observer.finish();
    const rows = Array.from({ length: days.rowCount }, (_, row) => ({
      caller: days.callers[days.callerAt(row)],
      day: days.dayAt(row) - firstDayUs / dayUs,
      hits: days.hitsAt(row),
      busiest: [0, 1, 2].map((window) => days.busiestAt(row, window)),
    }));
    expect(rows).toEqual([
      { caller: "ann", day: 0, hits: 5, busiest: [2, 3, 4] },
      { caller: "ann", day: 1, hits: 5, busiest: [5, 5, 5] },
      { caller: "bob", day: 0, hits: 2, busiest: [2, 2, 2] },
    ]);
  });

  it("counts windows that end at once", () => {
    const observer = new CallerObserver({ kind: "windows", periodUs: minuteUs }, 1);
    for (const second of [10, 59, 61, 62, 63]) {
      observer.take("ann", firstDayUs + second * secondUs, 1);
    }
    expect(needOfStep(observer.finish().needStepAt(0, 0))).toBe(3);
  });

  it("takes requests that come out of order for simultaneous ones", () => {
    const observer = observePerMinute();
    for (const second of [60, 0, 59]) observer.take("ann", firstDayUs + second * secondUs, 1);
    const days = observer.finish();
    expect([days.rowCount, needOfStep(days.needStepAt(0, 0))]).toEqual([1, 3]);
  });

  it("forgets half of the callers and nothing of the others", () => {
    const [all, halved] = [observePerMinute(), observePerMinute()];
    for (let i = 0; i < 20_000; i += 1) {
      for (const observer of [all, halved]) {
        observer.take(`user-${i % 2_000}`, firstDayUs + i * 20 * secondUs, 1);
      }
      if (i === 9_999 || i === 15_000) halved.halve();
    }
    const rest = halved.finish();
    expect(rest.sampledRatio).toBe(0.25);
    expect(halved.liveCount).toBeGreaterThan(400);
    expect(halved.liveCount).toBeLessThan(600);
    const whole = all.finish();
    const kept = new Set(rest.callers);
    whole.keepOnly((key) => kept.has(key));
    const contentOf = (days: typeof rest) =>
      Array.from({ length: days.rowCount }, (_, row) => {
        const needs = observedRates.map((_number, rate) => days.needStepAt(row, rate));
        const hits = `${days.hitsAt(row)} ${days.busiestAt(row, 1)}`;
        return `${days.callers[days.callerAt(row)]} ${days.dayAt(row)} ${hits} ${needs.join()}`;
      }).sort();
    expect(contentOf(rest)).toEqual(contentOf(whole));
  });

  it("goes on following a caller with many requests, and begins to where it is a new one", () => {
    const observer = observePerMinute();
    for (let i = 0; i < 4_000; i += 1) {
      const timeUs = firstDayUs + i * secondUs;
      observer.take(`user-${i % 400}`, timeUs, 1);
      if (i % 4 === 0) observer.take("heavy", timeUs, 1);
      if (i % 1_000 === 999) observer.halve();
      if (i > 3_000) observer.take("late", timeUs, 1);
    }
    const days = observer.finish();
    const weights = days.weights();
    const weightOf = (key: string) => weights[days.callers.indexOf(key)];
    expect([days.sampledRatio, weightOf("heavy"), weightOf("late")]).toEqual([1 / 16, 1, 1]);
    expect(new Set(weights)).toEqual(new Set([1, 16]));
    const rowOf = (key: string) =>
      Array.from({ length: days.rowCount }, (_, row) => row).find((row) => {
        return days.callers[days.callerAt(row)] === key;
      });
    expect(days.hitsAt(rowOf("heavy") ?? -1)).toBe(1_000);
    // Its first ones show that it is one.
    expect(days.hitsAt(rowOf("late") ?? -1)).toBeGreaterThan(650);
    expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeGreaterThan(250);
  });

  it("follows callers with any name", () => {
    const observer = observePerMinute();
    for (const key of ["__proto__", "constructor", "", "\0"]) observer.take(key, firstDayUs, 1);
    expect(observer.finish().callers).toEqual(["__proto__", "constructor", "", "\0"]);
  });
});

function refusedCount(times: readonly number[], hits: number, burst: number): number {
  const table = new Map<LimitKey, Bucket>();
  const charge = {
    key: shortKey({ a: 1, b: 0, c: 0, d: 0 }),
    hits,
    periodUs: minuteUs,
    burst,
    cost: 1,
    role: "enforce" as const,
    isRefund: false,
    peekExhausted: false,
  };
  return times.filter((timeUs) => decideRequest([charge], table, timeUs).isDenied).length;
}
