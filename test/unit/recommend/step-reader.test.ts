import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../src/policy/parse.js";
import { buildPolicy } from "../../../src/policy/policy.js";
import { recommendFromSteps } from "../../../src/recommend/recommend-from-steps.js";
import { daysMax } from "../../../src/recommend/rule-observer.js";
import { type StepHits, StepReader } from "../../../src/recommend/step-reader.js";
import { FakeRandom } from "../../support/fake-random.js";

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;

function recommend(limit: string, stepMs: number, steps: Iterable<StepHits>) {
  const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: user, detailed_metric: true, rate_limit: ${limit}}
`;
  const sources = [{ file: "policy.yaml", text }];
  const parsed = parsePolicy(sources);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const [rule] = buildPolicy("test", parsed).rules;
  if (rule === undefined) throw new Error("the policy has no rule");
  const reader = new StepReader();
  reader.add(rule, { seconds: stepMs / 1_000, notes: ["A note."] });
  for (const step of steps) reader.take(rule, step);
  const recommended = recommendFromSteps(reader.finish(), {
    sources,
    options: { refusedCallerRatioMax: 0.01, refusedRequestRatioMax: 0.001, headroom: 1 },
    nameOf: (caller) => `<${caller}>`,
    random: new FakeRandom(1),
  });
  if (recommended.kind === "problem") throw new Error(recommended.message);
  return { ...recommended.recommendation, text: recommended.sources[0]?.text };
}

/** Three hits in each step of each caller, and 90 of one that floods. */
function* evenSteps(stepMs: number, count: number, hits = 3): Generator<StepHits> {
  for (let step = 0; step < count; step += 1) {
    for (let i = 0; i < 30; i += 1) {
      yield { caller: `user-${i}`, startMs: step * stepMs, hits: i === 0 ? 30 * hits : hits };
    }
  }
}

describe("recommendFromSteps()", () => {
  it("fits what windows of one step hold, and estimates whom that refuses", () => {
    const limit = "{unit: minute, requests_per_unit: 9, algorithm: fixed_window}";
    const { proposals, demands } = recommend(limit, minuteMs, evenSteps(minuteMs, 120));
    const [{ hits, refusals, reasons } = expect.fail("nothing is proposed")] = proposals;
    expect(hits).toMatchObject({ value: 3, was: 9 });
    expect(demands).toMatchObject([{ requestCount: 120 * (90 + 29 * 3), callerCount: 30 }]);
    // 87 of its 90 in the busiest window of the day; needs are known within 9 %.
    const [flood = expect.fail("nobody is refused")] = refusals.callers;
    expect(flood).toMatchObject({ name: "<user-0>", isOutlier: true });
    expect(refusals.callers).toHaveLength(1);
    expect(flood.refusedCount).toBeGreaterThanOrEqual(87);
    expect(flood.refusedCount).toBeLessThan(1.09 * 90 - 3);
    expect(refusals.ordinaryRequestRatio).toBe(0);
    expect(refusals.callerDayRatio).toBeCloseTo(1 / 30);
    expect(reasons).toContain("A note.");
  });

  it("estimates that a caller who always sends too much is refused the rest", () => {
    const limit = "{unit: minute, requests_per_unit: 9}";
    const { proposals, text } = recommend(limit, minuteMs, evenSteps(minuteMs, 600));
    const [{ hits, burst, refusals } = expect.fail("nothing is proposed")] = proposals;
    expect([hits.value, burst.value]).toEqual([3, 7]);
    const refused = (600 * (90 - hits.value)) / (600 * (90 + 29 * 3));
    expect(refusals.requestRatio).toBeGreaterThan(refused);
    expect(refusals.requestRatio).toBeLessThan(1.09 * refused);
    expect(text).toMatch(/requests_per_unit: 3, # for 1 times what 30 callers sent in 1 day/);
  });

  it("fits no windows that are neither whole steps nor parts of one", () => {
    const limit = "{unit: minute, requests_per_unit: 9, algorithm: fixed_window}";
    const { proposals, notEnough } = recommend(limit, 45_000, evenSteps(45_000, 120));
    expect(proposals).toEqual([]);
    expect(notEnough[0]?.missing).toEqual([
      "its limits count in windows of a calendar, or in windows that are no whole steps, " +
        "which are not fitted",
    ]);
  });

  it("says how much more it needs, and leaves out days beyond those that it tells apart", () => {
    const few = recommend("{unit: minute, requests_per_unit: 9}", minuteMs, evenSteps(1_000, 3));
    expect(few.notEnough[0]?.missing[0]).toBe("531 hits; 1,000 are needed, about 2 times as many");
    expect(few.notEnough[0]?.missing[1]).toBe("the data covers 1m2s; 1 h is needed");
    const many = recommend(
      "{unit: minute, requests_per_unit: 9}",
      dayMs,
      evenSteps(dayMs, daysMax + 5),
    );
    expect(many.demands[0]?.dayCount).toBe(daysMax);
  });
});
