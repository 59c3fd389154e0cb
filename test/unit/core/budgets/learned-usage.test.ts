import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import {
  type CallKind,
  type LearnedCount,
  LearnedUsage,
} from "../../../../src/core/budgets/learned-usage.js";
import { type Usage, usageCountMax } from "../../../../src/core/budgets/usage.js";
import { propertyRuns } from "../../../support/seeds.js";

const kind: CallKind = { caller: "llm\ngpt\nann", model: "llm\ngpt" };
const allCounts: readonly LearnedCount[] = [
  "inputTokens",
  "outputTokens",
  "responseBytes",
  "durationMs",
  "customUnits",
];

let learned: LearnedUsage;

beforeEach(() => {
  learned = new LearnedUsage();
});

interface Calls {
  readonly of?: CallKind;
  readonly count?: number;
  readonly requestBytes?: number;
  readonly wanted?: readonly LearnedCount[];
}

function learn(usage: Usage, calls: Calls = {}): void {
  const { of = kind, count = 1, requestBytes, wanted = allCounts } = calls;
  const call = { usage, requestBytes, wanted: new Set(wanted) };
  for (let i = 0; i < count; i += 1) learned.of(of).learn(call);
}

function quantile(ratio: number, of = kind): number | undefined {
  return learned.of(of).quantile("outputTokens", ratio);
}

describe("LearnedUsage", () => {
  it("believes ten calls, and no fewer", () => {
    learn({ outputTokens: 200 }, { count: 9 });
    expect(quantile(0.9)).toBeUndefined();
    learn({ outputTokens: 200 });
    expect(quantile(0.9)).toBe(216);
  });

  it("rounds a quantile up, by 19 % at most", () => {
    const counts = fc.array(fc.oneof(fc.nat(50), fc.nat(1_000_000), fc.nat(2 ** 39)), {
      minLength: 10,
      maxLength: 200,
    });
    const ratios = fc.constantFrom(0.01, 0.5, 0.9, 0.999);
    fc.assert(
      fc.property(counts, ratios, (values, ratio) => {
        learned = new LearnedUsage();
        for (const outputTokens of values) learn({ outputTokens });
        const sorted = values.toSorted((a, b) => a - b);
        const exact = sorted[Math.max(1, Math.ceil(ratio * values.length)) - 1] ?? 0;
        expect(quantile(ratio)).toBeGreaterThanOrEqual(exact);
        expect(quantile(ratio)).toBeLessThanOrEqual(Math.ceil(exact * 1.1893));
      }),
      propertyRuns(200),
    );
  });

  it("answers each ratio, and again after another call", () => {
    learn({ outputTokens: 10 }, { count: 10 });
    learn({ outputTokens: 1_000 }, { count: 9 });
    expect([quantile(0.5), quantile(0.9), quantile(0.5)]).toEqual([12, 1_024, 12]);
    learn({ outputTokens: 1_000 }, { count: 2 });
    expect(quantile(0.5)).toBe(1_024);
  });

  it("takes nothing used, and the largest counts", () => {
    learn({ outputTokens: 0, responseBytes: usageCountMax }, { count: 10 });
    expect(quantile(0.9)).toBe(0);
    const largest = learned.of(kind).quantile("responseBytes", 0.9);
    expect(largest).toBeGreaterThanOrEqual(usageCountMax);
    expect(largest).toBeLessThan(1.2 * usageCountMax);
  });

  it("lets calls count half after 1,024 others", () => {
    learn({ outputTokens: 1_000 }, { count: 1_024 });
    learn({ outputTokens: 10 }, { count: 500 });
    expect(quantile(0.5)).toBe(1_024);
    learn({ outputTokens: 10 }, { count: 100 });
    expect(quantile(0.5)).toBe(12);
  });

  it("counts more calls than a bucket holds", () => {
    learn({ outputTokens: 1_000 }, { count: 66_000 });
    learn({ outputTokens: 10 }, { count: 100 });
    expect(quantile(0.5)).toBe(1_024);
  });

  it("takes the calls of all callers of a model while a caller has few", () => {
    const bob = { ...kind, caller: "llm\ngpt\nbob" };
    learn({ outputTokens: 1_000 }, { of: bob, count: 10 });
    learn({ outputTokens: 10 }, { count: 9 });
    expect(quantile(0.5)).toBe(1_024);
    learn({ outputTokens: 10 });
    expect(quantile(0.5)).toBe(12);
    expect(quantile(0.5, bob)).toBe(1_024);
    expect(quantile(0.5, { caller: "llm\nother\nann", model: "llm\nother" })).toBeUndefined();
  });

  it("learns what is wanted and reported, and nothing else", () => {
    const calls: Calls = { count: 10, wanted: ["outputTokens", "durationMs"] };
    learn({ outputTokens: 10, customUnits: 10 }, calls);
    const known = allCounts.filter((count) => learned.of(kind).quantile(count, 0.5) !== undefined);
    expect(known).toEqual(["outputTokens"]);
  });

  it("counts tokens of caches as input, and not where the request's size tells it", () => {
    const usage = { inputTokens: 10, cachedTokens: 60, cacheWriteTokens: 30 };
    learn(usage, { count: 10, requestBytes: 200 });
    expect(learned.of(kind).quantile("inputTokens", 0.5)).toBeUndefined();
    expect(learned.of(kind).inputPerByte).toBeCloseTo(0.5);
    learn({ cachedTokens: 100 }, { count: 10 });
    expect(learned.of(kind).quantile("inputTokens", 0.5)).toBe(108);
  });

  it("takes a token for four bytes until ten calls say otherwise", () => {
    const usage = { inputTokens: 300, outputTokens: 200, responseBytes: 100 };
    learn(usage, { count: 9, requestBytes: 100 });
    // What has no size says nothing.
    learn({ inputTokens: 300, outputTokens: 200, responseBytes: 0 }, { requestBytes: 0 });
    expect(learned.of(kind).inputPerByte).toBe(0.25);
    expect(learned.of(kind).outputPerByte).toBe(0.25);
    learn(usage, { requestBytes: 100 });
    expect(learned.of(kind).inputPerByte).toBeCloseTo(3);
    expect(learned.of(kind).outputPerByte).toBeCloseTo(2);
  });

  it("forgets the tokens of a byte of long ago", () => {
    learn({ inputTokens: 100 }, { count: 5_000, requestBytes: 100 });
    learn({ inputTokens: 300 }, { count: 5_000, requestBytes: 100 });
    expect(learned.of(kind).inputPerByte).toBeGreaterThan(2.9);
  });

  it("tells callers apart whatever they call themselves", () => {
    const hostile = ["__proto__", "constructor", "", " ", "a\u0000b", "x".repeat(100_000)];
    hostile.forEach((caller, i) => {
      learn({ outputTokens: 4 ** i }, { of: { caller, model: caller }, count: 10 });
    });
    const known = hostile.map((caller) => quantile(0.5, { caller, model: caller }));
    expect(known).toEqual([2, 5, 20, 77, 305, 1_218]);
  });

  it("forgets callers that were not seen for longest, and keeps who calls again", () => {
    const regular = { caller: "regular", model: "m" };
    const early = { caller: "early", model: "m" };
    for (const of of [regular, early]) learn({ outputTokens: 10 }, { of, count: 10 });
    // Of callers beyond the maximum, one in eight is learned.
    for (let i = 0; i < 100_000; i += 1) {
      learn({ outputTokens: 1_000 }, { of: { caller: `c${i}`, model: "m" } });
      if (i % 1_000 === 0) learn({ outputTokens: 10 }, { of: regular });
    }
    expect(quantile(0.5, regular)).toBe(12);
    expect(quantile(0.5, early)).toBe(1_024);
  });

  it("forgets models that were not seen for longest", () => {
    const early = { caller: "a", model: "early" };
    learn({ outputTokens: 10 }, { of: { ...early, caller: "b" }, count: 10 });
    expect(quantile(0.5, early)).toBe(12);
    for (let i = 0; i < 5_000; i += 1) {
      learn({ outputTokens: 10 }, { of: { caller: "c", model: `m${i}` } });
    }
    expect(quantile(0.5, early)).toBeUndefined();
  });
});
