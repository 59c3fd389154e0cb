import { describe, expect, it } from "vitest";
import { Codel } from "../../../../src/core/admission/codel.js";

const settings = { targetMs: 100, intervalMs: 1_000 };
const long = { sojournMs: 101, isLast: false };
const short = { sojournMs: 99, isLast: false };

/** Times of drops among departures each 10 ms, in milliseconds from `fromMs`. */
function dropTimes(codel: Codel, fromMs: number, untilMs: number): readonly number[] {
  const times: number[] = [];
  for (let nowMs = fromMs; nowMs <= untilMs; nowMs += 10) {
    if (codel.drops(long, nowMs)) times.push(nowMs - fromMs);
  }
  return times;
}

describe("Codel", () => {
  it("drops the first after an interval above the target, then ever faster", () => {
    // 1,000, and from there 1,000 / sqrt(1), / sqrt(2), / sqrt(3) ... later; departures each 10 ms.
    expect(dropTimes(new Codel(settings), 0, 5_000)).toEqual([
      1_000, 2_000, 2_710, 3_290, 3_790, 4_240, 4_640,
    ]);
  });

  it("drops nothing of a queue that is short now and then", () => {
    const codel = new Codel(settings);
    for (let nowMs = 0; nowMs < 60_000; nowMs += 10) {
      expect(codel.drops(nowMs % 990 === 0 ? short : long, nowMs)).toBe(false);
    }
  });

  it("takes exactly the target for too long, and less for short", () => {
    const codel = new Codel(settings);
    codel.drops({ sojournMs: 100, isLast: false }, 0);
    expect(codel.drops({ sojournMs: 100, isLast: false }, 1_000)).toBe(true);
  });

  it("stops as soon as one has waited less", () => {
    const codel = new Codel(settings);
    dropTimes(codel, 0, 3_000);
    expect(codel.isDropping).toBe(true);
    expect(codel.drops(short, 3_010)).toBe(false);
    expect(codel.isDropping).toBe(false);
    expect(dropTimes(codel, 3_020, 4_010)).toEqual([]);
  });

  it("goes on at the rate that had worked, when it has to drop again soon after", () => {
    const codel = new Codel(settings);
    // Seven drops: the last run began with a count of 1 and ended with one of 7.
    expect(dropTimes(codel, 0, 4_700)).toHaveLength(7);
    codel.drops(short, 4_710);
    const [first = 0, second = 0] = dropTimes(codel, 4_720, 8_000);
    expect(first).toBe(1_000);
    // 1,000 / sqrt(6) = 408, seen at the next departure.
    expect(second - first).toBe(410);
  });

  it("begins with one drop again where one had been enough", () => {
    const codel = new Codel(settings);
    expect(dropTimes(codel, 0, 1_500)).toEqual([1_000]);
    codel.drops(short, 1_510);
    expect(dropTimes(codel, 1_520, 4_000)).toEqual([1_000, 2_000]);
  });

  it("has forgotten that rate after sixteen intervals", () => {
    const codel = new Codel(settings);
    dropTimes(codel, 0, 4_700);
    codel.drops(short, 4_710);
    const [first = 0, second = 0] = dropTimes(codel, 25_000, 28_000);
    expect([first, second]).toEqual([1_000, 2_000]);
  });

  it("never drops the last one, which delays nobody", () => {
    const codel = new Codel(settings);
    dropTimes(codel, 0, 990);
    expect(codel.drops({ sojournMs: 5_000, isLast: true }, 1_000)).toBe(false);
    expect(dropTimes(codel, 1_010, 2_000)).toEqual([]);
  });

  it("begins anew with a queue that was empty", () => {
    const codel = new Codel(settings);
    dropTimes(codel, 0, 2_500);
    codel.emptied();
    expect(codel.isDropping).toBe(false);
    expect(dropTimes(codel, 2_510, 3_500)).toEqual([]);
  });

  it("drops several at one time where it is behind, each counted", () => {
    const codel = new Codel(settings);
    codel.drops(long, 0);
    expect(codel.drops(long, 1_000)).toBe(true);
    // Nobody left for 2 s: by then 2,000, 2,707 and 3,284 were due; 2 of them are over at 3,000.
    const verdicts = [1, 2, 3].map(() => codel.drops(long, 3_000));
    expect(verdicts).toEqual([true, true, false]);
  });
});
