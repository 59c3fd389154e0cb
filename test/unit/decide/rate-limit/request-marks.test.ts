import { describe, expect, it } from "vitest";
import { unitsPerHit } from "../../../../src/core/limits/bucket.js";
import type { ChargeResult } from "../../../../src/core/limits/gcra.js";
import type { Limit } from "../../../../src/core/limits/limit.js";
import { joinMarks } from "../../../../src/core/limits/request-marks.js";
import { present } from "../../../../src/decide/rate-limit/answers.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const named = (name: string) => [{ name, value: "yes" }];
const cheap = { kind: "cluster", cluster: "cheap" } as const;
const free = { kind: "header", header: { name: "x-tier", value: "free" } } as const;

/** What a request passes with that found these hits used of limits of ten each. */
function marksAt(limits: readonly Partial<Limit>[], found: readonly (number | "over")[]) {
  const effect = limits.map((limit, i) => testLimit(10, { name: `limit-${i}`, ...limit }));
  const policy = testPolicy([{ path: ["user"], effect }]);
  const decider = createTestDecider({
    policies: { current: () => policy },
    clock: new FakeClock(),
    counters: new DecisionCounters(),
  });
  const descriptors = [{ entries: [{ key: "user", value: "a" }], hits: 1, isRefund: false }];
  const prepared = decider.prepare({ domain: "shop", descriptors }, false);
  const results = found.map((hits): ChargeResult => {
    const isOver = hits === "over";
    return { isOver, bucket: { level: (isOver ? 10 : hits) * unitsPerHit, tUs: 0 } };
  });
  const { charges } = prepared;
  const isDenied = limits.some((limit, i) => limit.over === undefined && found[i] === "over");
  const decided = { isDenied, charges, results, nowUs: 0, isFromMemory: false };
  return present(prepared, decided).marks;
}

describe("marks of a request that passes", () => {
  const warning = { warn: { atRatio: 0.8, headers: named("x-near") } };
  const annotating = {
    role: "shadow",
    over: { kind: "annotate", headers: named("x-over") },
  } as const;

  it("are a warning from the ratio on, and none below it", () => {
    expect(marksAt([warning], [7])).toBeUndefined();
    for (const hits of [7.01, 8]) {
      expect(marksAt([warning], [hits])).toEqual({ setHeaders: named("x-near") });
    }
  });

  it("are none where the request is refused", () => {
    expect(marksAt([warning], ["over"])).toBeUndefined();
    expect(marksAt([warning, {}], [9, "over"])).toBeUndefined();
  });

  it("are those of the limits that have some, beside others", () => {
    expect(marksAt([{}, warning], [9, 9])).toEqual({ setHeaders: named("x-near") });
    expect(marksAt([{}, {}], [9, 9])).toBeUndefined();
  });

  it("are those of all limits, in their order", () => {
    const both = marksAt([annotating, warning], ["over", 9]);
    expect(both).toEqual({ setHeaders: [...named("x-over"), ...named("x-near")] });
  });

  it("send it where the first limit says that it is over", () => {
    const falling = (to: typeof cheap | typeof free): Partial<Limit> => {
      return { role: "shadow", over: { kind: "fallback", to } };
    };
    expect(marksAt([falling(free), falling(cheap)], [1, "over"])).toEqual({
      setHeaders: [],
      fallback: cheap,
    });
    expect(marksAt([falling(free), falling(cheap)], ["over", "over"])?.fallback).toEqual(free);
  });

  it("are joined with others: the first fallback counts", () => {
    const one = { setHeaders: named("a") };
    const other = { setHeaders: named("b"), fallback: cheap };
    expect(joinMarks(one, undefined)).toBe(one);
    expect(joinMarks(undefined, other)).toBe(other);
    expect(joinMarks(one, other)).toEqual({
      setHeaders: [...named("a"), ...named("b")],
      fallback: cheap,
    });
    expect(joinMarks({ setHeaders: [], fallback: free }, other)?.fallback).toBe(free);
    expect(joinMarks(one, one)).not.toHaveProperty("fallback");
  });
});
