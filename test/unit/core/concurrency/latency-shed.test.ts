import { describe, expect, it } from "vitest";
import {
  LatencyShed,
  type LatencyShedSettings,
  latencyShedRatioMax,
  latencyShedStaleMs,
  latencyShedWindowCountMax,
} from "../../../../src/core/concurrency/latency-shed.js";
import { statisticOf } from "../../../../src/core/concurrency/rtt-statistic.js";
import { sampleOf, windowOf } from "../../../support/concurrency-samples.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { firstSeed, seedCount } from "../../../support/seeds.js";

const usual: LatencyShedSettings = {
  law: "latencyShed",
  thresholdMs: 200,
  statistic: { kind: "mean" },
  windowCount: 4,
  factor: 1,
  sustainedMs: 1_000,
};
const limits = { initial: 5, min: 1, max: 500 };

function lawOf(settings: Partial<LatencyShedSettings> = {}): LatencyShed {
  return new LatencyShed({ ...usual, ...settings }, limits);
}

function end(law: LatencyShed, endMs: number, ...rttsMs: readonly number[]): void {
  for (const rttMs of rttsMs) law.record(sampleOf({ startMs: endMs - rttMs, endMs }));
}

describe("LatencyShed", () => {
  it.each([
    { meanMs: 100, factor: 1, ratio: 0 },
    { meanMs: 200, factor: 1, ratio: 0 },
    { meanMs: 250, factor: 1, ratio: 0.25 },
    { meanMs: 300, factor: 0.5, ratio: 0.25 },
    { meanMs: 370, factor: 1, ratio: 0.85 },
    { meanMs: 380, factor: 1, ratio: latencyShedRatioMax },
    { meanMs: 5_000, factor: 1, ratio: latencyShedRatioMax },
  ])("sheds $ratio at a mean of $meanMs ms and a factor of $factor", (row) => {
    const law = lawOf({ factor: row.factor });
    end(law, 0, row.meanMs - 10, row.meanMs + 10, row.meanMs, row.meanMs);
    expect(law.shedRatio(1_000)).toBeCloseTo(row.ratio, 10);
    expect(law.limit).toBe(500);
  });

  it("lets all pass until its window has filled", () => {
    const law = lawOf();
    end(law, 0, 900, 900, 900);
    expect(law.shedRatio(5_000)).toBe(0);
    end(law, 5_000, 900);
    expect(law.shedRatio(6_000)).toBe(latencyShedRatioMax);
  });

  it("acts once the latency has stood above the threshold for long enough", () => {
    const law = lawOf();
    end(law, 0, 300, 300, 300, 300);
    end(law, 500, 300);
    expect([law.shedRatio(999), law.shedRatio(1_000)]).toEqual([0, 0.5]);
    end(law, 1_100, 0, 0, 0, 0);
    expect(law.shedRatio(1_100)).toBe(0);
    end(law, 1_200, 300, 300, 300, 300);
    expect([law.shedRatio(2_199), law.shedRatio(2_200)]).toEqual([0, 0.5]);
  });

  it("looks at the last of its window, and at the time that dropped ones took", () => {
    const law = lawOf();
    end(law, 0, 9_000, 9_000, 300, 300, 300);
    law.record(sampleOf({ startMs: 0, endMs: 300, outcome: "dropped" }));
    law.record(sampleOf({ startMs: 0, endMs: 9_000, outcome: "ignore" }));
    expect(law.facts()).toEqual({ statisticMs: 300 });
  });

  it("begins anew after ten seconds without a sample", () => {
    const law = lawOf();
    end(law, 0, 300, 300, 300, 300);
    expect(law.shedRatio(latencyShedStaleMs)).toBe(0.5);
    expect(law.shedRatio(latencyShedStaleMs + 1)).toBe(0);
    end(law, latencyShedStaleMs + 1, 300, 300, 300);
    expect(law.facts()).toEqual({});
  });

  it("knows the percentile of its window as sorting it would", () => {
    const seed = firstSeed(7);
    const random = new FakeRandom(seed);
    const statistic = { kind: "percentile", percentile: 90 } as const;
    const law = lawOf({ statistic, windowCount: 25 });
    const last: number[] = [];
    for (let i = 0; i < seedCount(1_000); i += 1) {
      const rttMs = Math.floor(random.next() * 40);
      last.push(rttMs);
      if (last.length > 25) last.shift();
      end(law, i, rttMs);
      if (last.length < 25) continue;
      const expected = statisticOf(
        statistic,
        last.toSorted((a, b) => a - b),
      );
      expect(law.facts(), `seed ${seed}`).toEqual({ statisticMs: expected });
    }
  });

  it("keeps its mean exact however long it runs", () => {
    const law = lawOf({ windowCount: 10 });
    end(law, 0, 1e15);
    for (let i = 0; i < 20; i += 1) end(law, 1, 0.1);
    expect(law.facts()["statisticMs"]).toBeCloseTo(0.1, 12);
  });

  it("takes a window for as many samples of its latency", () => {
    const law = lawOf({ windowCount: 10 });
    law.update(windowOf({ rttMs: 100, sampleCount: 1_000_000_000 }));
    law.update(windowOf({ rttMs: 300, sampleCount: 5 }));
    law.update(windowOf({ rttMs: undefined, sampleCount: 0 }));
    expect(law.facts()).toEqual({ statisticMs: 200 });
  });

  it("holds ten thousand samples, and not one more", () => {
    expect(() => lawOf({ windowCount: latencyShedWindowCountMax })).not.toThrow();
    expect(() => lawOf({ windowCount: latencyShedWindowCountMax + 1 })).toThrow("out of bounds");
    expect(() => lawOf({ windowCount: 0 })).toThrow("out of bounds");
  });
});
