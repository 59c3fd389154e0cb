import { describe, expect, it } from "vitest";
import type { CallerDays } from "../../../src/recommend/caller-days.js";
import { CallerObserver } from "../../../src/recommend/caller-observer.js";
import { type FitOptions, fitLimit } from "../../../src/recommend/fit.js";
import { observedRates } from "../../../src/recommend/number-scales.js";
import { FakeRandom } from "../../support/fake-random.js";
import { firstDayUs } from "../../support/generated-log.js";

const minuteUs = 60_000_000;
const dayUs = 1_440 * minuteUs;

function options(changed: Partial<FitOptions> = {}): FitOptions {
  return {
    refusedRatioMax: 0.01,
    refusedRequestRatioMax: 1,
    headroom: 1,
    isShared: false,
    isWindowed: false,
    hasBurst: true,
    random: new FakeRandom(1),
    ...changed,
  };
}

/** Callers that send `size(caller, day)` requests at once in each of ten minutes of a day. */
function regularCallers(
  { callers, days }: { readonly callers: number; readonly days: number },
  size: (caller: number, day: number) => number,
): CallerDays {
  const ratesPerUs = observedRates.map((hits) => hits / minuteUs);
  const observer = new CallerObserver({ kind: "rates", ratesPerUs }, 1);
  for (let day = 0; day < days; day += 1) {
    for (let caller = 0; caller < callers; caller += 1) {
      const startUs = firstDayUs + day * dayUs;
      for (let minute = 0; minute < 10; minute += 1) {
        observer.take(`user-${caller}`, startUs + minute * minuteUs, size(caller, day));
      }
    }
  }
  return observer.finish();
}

describe("fitLimit()", () => {
  it("allows exactly what callers need that send six at once in each minute", () => {
    const days = regularCallers({ callers: 30, days: 4 }, () => 6);
    // 7 in a minute drain 6 in time; at 5 a minute, 10 minutes of 6 need a burst of 15.
    expect(fitLimit(days, options())).toMatchObject({ hits: 7, burst: 7, refusedRatio: 0 });
  });

  it("fits callers that send so many times as much in the same rhythm", () => {
    const days = regularCallers({ callers: 30, days: 4 }, () => 6);
    // At 10 a minute they need what they need now at 6.7, between 15 at 5 and 6 at 7: near 7.
    expect(fitLimit(days, options({ headroom: 1.5 }))).toMatchObject({ hits: 10, burst: 15 });
    expect(fitLimit(days, options({ headroom: 10 }))).toMatchObject({ hits: 70, burst: 70 });
  });

  it("lets as many callers be refused as it may, and no more", () => {
    // 2 of 100 callers send 50 at once; no outliers, since that is not 10 times 6.
    const days = regularCallers({ callers: 100, days: 3 }, (caller) => (caller < 2 ? 50 : 6));
    expect(fitLimit(days, options({ refusedRatioMax: 0.01 }))).toMatchObject({
      hits: 50,
      burst: 50,
    });
    const fit = fitLimit(days, options({ refusedRatioMax: 0.02 }));
    expect(fit).toMatchObject({ hits: 7, burst: 7, refusedRatio: 0.02 });
    expect(fit.outliers.size).toBe(0);
  });

  it("leaves out a caller that needs far more than all others", () => {
    const days = regularCallers({ callers: 20, days: 3 }, (caller) => (caller === 7 ? 600 : 6));
    const fit = fitLimit(days, options());
    expect(fit).toMatchObject({ hits: 7, burst: 7, refusedRatio: 0 });
    expect([...fit.outliers]).toEqual(["user-7"]);
  });

  it("takes many callers that need far more for a kind of callers", () => {
    const days = regularCallers({ callers: 20, days: 3 }, (caller) => (caller < 2 ? 600 : 6));
    expect(fitLimit(days, options()).outliers.size).toBe(0);
  });

  it("has headroom for how much days differ", () => {
    const even = regularCallers({ callers: 20, days: 5 }, () => 10);
    expect(fitLimit(even, options({ headroom: undefined })).headroom.factor).toBe(1.25);
    // Each day has a hundredth of the callers that send 30: but one day, where half of them do.
    const days = regularCallers({ callers: 100, days: 50 }, (caller, day) =>
      day === 7 && caller < 50 ? 30 : 10,
    );
    const { headroom } = fitLimit(days, options({ headroom: undefined }));
    expect(headroom.factor).toBeGreaterThan(2.5);
    expect(headroom.why).toMatch(/^the busiest day, fitted alone, needed \d\.\d\d times as much/);
    const short = regularCallers({ callers: 20, days: 2 }, () => 10);
    expect(fitLimit(short, options({ headroom: undefined })).headroom).toEqual({
      factor: 2,
      why: "two days were observed, so days may differ more",
    });
  });

  it("has a band as wide as days differ, and none with fewer than three", () => {
    const bandOf = (days: number, size: (day: number) => number) =>
      fitLimit(
        regularCallers({ callers: 30, days }, (_, day) => size(day)),
        options(),
      ).bands;
    expect(bandOf(2, () => 6)).toBeUndefined();
    expect(bandOf(3, () => 6)?.hits).toEqual({ low: 7, high: 7, level: 0.9 });
    const bands = bandOf(7, (day) => (day === 3 ? 30 : 6));
    expect(bands?.hits).toEqual({ low: 7, high: 30, level: 0.9 });
  });

  it("predicts the last day from the days before, and says how wrong that was", () => {
    const same = fitLimit(
      regularCallers({ callers: 30, days: 7 }, () => 6),
      options(),
    );
    expect(same.heldOut).toEqual({
      day: firstDayUs / dayUs + 6,
      fittedDayCount: 6,
      predictedRatio: 0,
      actualRatio: 0,
      needError: 0,
    });
    const more = regularCallers({ callers: 30, days: 7 }, (_, day) => (day === 6 ? 20 : 6));
    expect(fitLimit(more, options()).heldOut).toMatchObject({
      predictedRatio: 0,
      actualRatio: 1,
      needError: 40 / 13 - 1,
    });
    expect(
      fitLimit(
        regularCallers({ callers: 30, days: 2 }, () => 6),
        options(),
      ).heldOut,
    ).toBe(undefined);
  });

  it("refuses nothing of a bucket that all share", () => {
    const days = regularCallers({ callers: 1, days: 7 }, (_, day) => (day === 3 ? 300 : 6));
    expect(fitLimit(days, options({ isShared: true, refusedRatioMax: 1 }))).toMatchObject({
      hits: 300,
      burst: 300,
    });
  });

  it("has one number where there is no burst to set", () => {
    const slow = regularCallers({ callers: 30, days: 3 }, () => 6);
    expect(fitLimit(slow, options({ hasBurst: false }))).toMatchObject({ hits: 7, burst: 7 });
    const observer = new CallerObserver({ kind: "windows", periodUs: minuteUs }, 1);
    for (let caller = 0; caller < 30; caller += 1) observer.take(`${caller}`, firstDayUs, 14);
    expect(fitLimit(observer.finish(), options({ isWindowed: true }))).toMatchObject({
      hits: 15,
      burst: 15,
    });
  });
});
