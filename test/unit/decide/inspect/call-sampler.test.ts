import { beforeEach, describe, expect, it } from "vitest";
import {
  CallSampler,
  sampledPerSecondMax,
  sampleWeightMax,
} from "../../../../src/decide/inspect/call-sampler.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { firstSeed } from "../../../support/seeds.js";

const seed = firstSeed(1);

let clock: FakeClock;
let sampler: CallSampler;

beforeEach(() => {
  clock = new FakeClock();
  sampler = new CallSampler(clock, new FakeRandom(seed));
});

/** Calls spread evenly over so many milliseconds; the weights of those that were chosen. */
function call(count: number, overMs: number): number[] {
  const weights: number[] = [];
  for (let i = 0; i < count; i += 1) {
    clock.advance(overMs / count);
    if (sampler.wants()) weights.push(sampler.take(clock.monotonicMs()));
  }
  return weights;
}

function sum(weights: readonly number[]): number {
  return weights.reduce((total, weight) => total + weight, 0);
}

describe("CallSampler", () => {
  it("takes each call while they are few", () => {
    const few = 0.8 * sampledPerSecondMax;
    expect(call(few, 1_000)).toEqual(Array.from({ length: few }, () => 1));
  });

  it(`takes a bounded number of many, which stand for all (seed ${seed})`, () => {
    call(100_000, 1_000);
    const weights = call(100_000, 1_000);
    expect(weights.length).toBeGreaterThan(0.7 * sampledPerSecondMax);
    expect(weights.length).toBeLessThan(1.5 * sampledPerSecondMax);
    expect(Math.abs(sum(weights) - 100_000)).toBeLessThan(2 * Math.max(...weights));
    expect(new Set(weights).size).toBeGreaterThan(20);
  });

  it("takes no more of a rush than of many", () => {
    call(100, 1_000);
    expect(call(100_000, 50).length).toBeLessThan(200);
  });

  it("takes each call again soon after a rush", () => {
    call(1_000_000, 100);
    call(20, 400);
    expect(call(20, 400)).toEqual(Array.from({ length: 20 }, () => 1));
    expect(clock.timerCount).toBeLessThanOrEqual(1);
  });

  it("lets no sample stand for more than so many calls on average", () => {
    const weights = call(4_000_000, 100);
    expect(Math.max(...weights)).toBeGreaterThan(sampleWeightMax);
    expect(Math.max(...weights)).toBeLessThan(2 * sampleWeightMax);
  });
});
