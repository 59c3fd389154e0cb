import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../../src/core/limits/bucket.js";
import { type BucketTable, decideRequest } from "../../../../src/core/limits/gcra.js";
import {
  defaultDefaults,
  type LimitDefaults,
  type Rule,
} from "../../../../src/core/limits/limit.js";
import { type Comparison, compareWithReference } from "../../../../src/policy/diff/comparison.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { testCharge } from "../../../support/charges.js";

function rulesOf(descriptors: string, defaults: LimitDefaults): readonly Rule[] {
  const text = `domain: shop\ndescriptors: ${descriptors}`;
  const parsed = parsePolicy([{ file: "a.yaml", text }], { defaults });
  expect(parsed).toMatchObject({ kind: "policy" });
  return parsed.kind === "policy" ? parsed.rules : [];
}

function compare(descriptors: string, defaults: LimitDefaults = defaultDefaults): Comparison {
  return compareWithReference(rulesOf(descriptors, defaults));
}

/** Hits that the law admits to who asks for each as soon as it fits, up to a time. */
function greedyCount({ hits, periodUs }: { hits: number; periodUs: number }, untilUs: number) {
  const buckets = new Map<string, Bucket>();
  const table: BucketTable = {
    get: (key) => buckets.get(key),
    set: (key, bucket) => void buckets.set(key, bucket),
    delete: (key) => void buckets.delete(key),
  };
  const charge = testCharge({ hits, periodUs, burst: hits });
  let count = 0;
  let nowUs = 0;
  while (nowUs <= untilUs && !decideRequest([charge], table, nowUs).isDenied) {
    count += 1;
    // One more than drained by then: what the bucket held, and what drained since.
    nowUs = Math.ceil((Math.max(0, count - hits + 1) * periodUs) / hits);
  }
  return count;
}

describe("compareWithReference(), its worst cases", () => {
  it.each([1, 2, 7, 1_000])("are what the law admits at %i a day", (hits) => {
    const rate = `{unit: day, requests_per_unit: ${hits}}`;
    const [limit] = compare(`[{key: user, rate_limit: ${rate}}]`).limits;
    const pace = { hits, periodUs: 86_400_000_000 };
    expect(limit?.headgate.atOnceCount).toBe(greedyCount(pace, 0));
    expect(limit?.headgate.inWindowCount).toBe(greedyCount(pace, pace.periodUs - 1));
  });

  it("say what windows admit", () => {
    const rate = "{unit: day, requests_per_unit: 1000}";
    expect(compare(`[{key: user, rate_limit: ${rate}}]`).limits).toEqual([
      {
        domain: "shop",
        rule: "user",
        requestsPerUnit: 1_000,
        unit: "day",
        role: "enforce",
        reference: { atOnceCount: 2_000, inWindowCount: 1_000 },
        headgate: { atOnceCount: 1_000, inWindowCount: 1_999 },
        suggestion: "algorithm: fixed_window",
      },
    ]);
  });

  it.each([
    { limit: "unit: hour, requests_per_unit: 1000", isSuggested: false },
    { limit: "unit: day, requests_per_unit: 2", isSuggested: true },
    { limit: "unit: day, requests_per_unit: 1", isSuggested: false },
    { limit: "unit: day, requests_per_unit: 0", isSuggested: false },
    { limit: "unit: week, requests_per_unit: 2", isSuggested: true },
    { limit: "unit: month, requests_per_unit: 2", isSuggested: true },
    { limit: "unit: year, requests_per_unit: 2", isSuggested: true },
  ])(
    "suggest a window where it is another promise: $limit ($isSuggested)",
    ({ limit, isSuggested }) => {
      const [found] = compare(`[{key: user, rate_limit: {${limit}}}]`).limits;
      expect(found?.suggestion !== undefined).toBe(isSuggested);
    },
  );

  it("suggest nothing for a limit that denies nobody, and block what is blocked", () => {
    const rate = "{unit: day, requests_per_unit: 5}";
    const [shadow] = compare(`[{key: a, shadow_mode: true, rate_limit: ${rate}}]`).limits;
    expect(shadow).not.toHaveProperty("suggestion");
    const [blocked] = compare("[{key: a, rate_limit: {unit: day, requests_per_unit: 0}}]").limits;
    expect(blocked?.headgate).toEqual({ atOnceCount: 0, inWindowCount: 0 });
  });
});

describe("compareWithReference(), what it names", () => {
  const rate = "rate_limit: {unit: second, requests_per_unit: 5}";

  it.each([
    { descriptor: `{key: a, ${rate}}`, id: "smooth-limits", isMet: true },
    { descriptor: "{key: a}", id: "smooth-limits", isMet: false },
    { descriptor: `{key: a, ${rate}}`, id: "store-failure", isMet: true },
    { descriptor: "{key: a*}", id: "key-patterns", isMet: true },
    { descriptor: "{key: a, value: b*}", id: "key-patterns", isMet: false },
    { descriptor: "{key: a_b}", id: "key-and-value", isMet: true },
    { descriptor: "{key: a, value: b*}", id: "key-and-value", isMet: true },
    { descriptor: "{key: a, value: b}", id: "key-and-value", isMet: false },
    {
      descriptor: `{key: a, detailed_metric: true, metadata: {}, ${rate}}`,
      id: "kept-metadata",
      isMet: true,
    },
    { descriptor: `{key: a, metadata: {}, ${rate}}`, id: "kept-metadata", isMet: false },
    { descriptor: `{key: a, ${rate}}`, id: "bounded-keys", isMet: true },
    { descriptor: `{key: a, value: b, ${rate}}`, id: "bounded-keys", isMet: false },
    {
      descriptor: "{key: a, rate_limit: {unit: week, requests_per_unit: 5}}",
      id: "calendar-time",
      isMet: true,
    },
    { descriptor: `{key: a, ${rate}}`, id: "calendar-time", isMet: false },
  ])("meets $id in $descriptor: $isMet", ({ descriptor, id, isMet }) => {
    const ids = compare(`[${descriptor}]`).differences.map((one) => one.id as string);
    expect(ids.includes(id)).toBe(isMet);
  });

  it.each([
    { descriptor: "{key: a}", what: /^no `rate_limit`/ },
    { descriptor: "{key: a, rate_limit: {unlimited: true}}", what: /unlimited/ },
    { descriptor: `{key: a, shadow_mode: true, ${rate}}`, what: /shadow_mode/ },
    { descriptor: `{key: a, quota_mode: true, ${rate}}`, what: /quota_mode/ },
    {
      descriptor: "{key: a, rate_limit: {unlimited: true, replaces: [{name: b}]}}",
      what: /replaces/,
    },
    { descriptor: `{key: a, value: "*", share_threshold: true, ${rate}}`, what: /share_threshold/ },
    { descriptor: `{key: a, value_to_metric: true, ${rate}}`, what: /value_to_metric/ },
    { descriptor: `{key: a, metadata: {}, ${rate}}`, what: /metadata/ },
    { descriptor: "{key: a, rate_limit: {unit: day}}", what: /^`requests_per_unit: 0`/ },
    { descriptor: "{key: a, rate_limit: {unit: year, requests_per_unit: 1}}", what: /365/ },
  ])("finds the same in $descriptor", ({ descriptor, what }) => {
    const { same } = compare(`[${descriptor}, {key: other, ${rate}}]`);
    const found = same.filter((one) => what.test(one.what));
    expect(found.map(({ ruleCount }) => ruleCount)).toEqual([1]);
    expect(same[0]?.ruleCount).toBe(2);
    const plain = compare(`[{key: other, ${rate}}]`).same.filter((one) => what.test(one.what));
    expect(plain).toEqual([]);
  });

  it("meets no difference that the process's defaults take away", () => {
    const as = { algorithm: "fixed_window", onStoreFailure: "error" } as const;
    const { limits, differences } = compare(
      "[{key: a, rate_limit: {unit: day, requests_per_unit: 9}}]",
      as,
    );
    const ids = differences.map(({ id }) => id as string);
    expect(ids).not.toContain("smooth-limits");
    expect(ids).not.toContain("store-failure");
    const [limit] = limits;
    expect(limit?.headgate).toEqual(limit?.reference);
    expect(limit).not.toHaveProperty("suggestion");
  });

  it("names nothing for no rules", () => {
    expect(compareWithReference([])).toEqual({ limits: [], same: [], differences: [] });
  });
});
