import { describe, expect, it } from "vitest";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { ReportedRules, refusingRule } from "../../../../src/decide/rate-limit/refusing-rule.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const hour = { unit: "hour", periodUs: 3_600_000_000 } as const;

const policy = testPolicy([
  { path: ["none"], effect: [testLimit(0, { name: "none" })] },
  { path: ["never"], effect: [testLimit(0, { name: "never", ...hour })] },
  { path: ["wide"], effect: [testLimit(10, { name: "wide", ...hour })] },
  { path: ["free"], effect: { kind: "unlimited" } },
]);

/** Asks for one hit of each key, or for one of a limit of none that the request carries. */
async function refusingOf(...keys: readonly string[]) {
  const clock = new FakeClock();
  const policies = { current: () => policy };
  const decider = createTestDecider({ clock, policies, counters: new DecisionCounters() });
  const override = { hits: 0, unit: "day", unitMultiplier: 1 } as const;
  const descriptors = keys.map((key) => ({
    entries: [{ key, value: "a" }],
    hits: 1,
    isRefund: false,
    ...(key === "carried" ? { override } : {}),
  }));
  const prepared = decider.prepare({ domain: "shop", descriptors }, false);
  const hits = descriptors.map(() => 1);
  const asked = decider.decidePrepared(prepared, hits, Number.POSITIVE_INFINITY);
  clock.runTurns();
  return refusingRule(prepared, await asked);
}

describe("refusingRule()", () => {
  it.each([
    { keys: ["free", "none"], label: "none" },
    { keys: ["none", "never"], label: "never" },
    { keys: ["never", "none"], label: "never" },
    // Takes longer to be full again, but has room.
    { keys: ["none", "wide"], label: "none" },
    { keys: ["carried", "none"], label: "none" },
  ])("is of $keys the one that makes the caller wait longest", async ({ keys, label }) => {
    const refusing = await refusingOf(...keys);
    expect(refusing?.rule.label).toBe(label);
    expect(refusing?.limit.name).toBe(label);
  });

  it.each([{ keys: ["wide", "free"] }, { keys: ["carried"] }])(
    "is none of $keys",
    async ({ keys }) => {
      expect(await refusingOf(...keys)).toBeUndefined();
    },
  );
});

describe("ReportedRules", () => {
  it("gives the same object for a limit of a rule each time, and names it", async () => {
    const refusing = await refusingOf("none");
    if (refusing === undefined) throw new Error("it was refused");
    const reported = new ReportedRules();
    const first = reported.of(refusing);
    expect(first).toMatchObject({ domain: "shop", rule: "none", limit: "none" });
    const daily = { ...refusing, limit: testLimit(0, { name: "daily" }) };
    const second = reported.of(daily);
    expect(second).toMatchObject({ rule: "none", limit: "daily" });
    expect(reported.of(refusing)).toBe(first);
    expect(reported.of(daily)).toBe(second);
  });
});
