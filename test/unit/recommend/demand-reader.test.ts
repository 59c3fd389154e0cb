import { describe, expect, it } from "vitest";
import { sha256 } from "../../../src/app/base/sha256.js";
import { parsePolicy } from "../../../src/policy/parse.js";
import { buildPolicy } from "../../../src/policy/policy.js";
import { DemandReader } from "../../../src/recommend/demand-reader.js";
import type { DemandBounds } from "../../../src/recommend/rule-observer.js";
import { firstDayUs, generateRequests, requestOf } from "../../support/generated-log.js";
import { noSwitches } from "../../support/switches.js";

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limit: {unit: minute, requests_per_unit: 600}
        - key: cost
          rate_limit: {unit: minute, requests_per_unit: 600}
  services:
    - name: orders
      rateLimit:
        domain: shop
        descriptors:
          - [{header: x-user, as: user}]
          - {entries: [{header: x-user, as: cost}], hits: 7}
          - {entries: [{header: x-user, as: user}], hits: 0}
`;

function createReader(bounds?: DemandBounds, text = policyText): DemandReader {
  const parsed = parsePolicy([{ file: "policy.yaml", text }]);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const policy = buildPolicy("test", parsed);
  return new DemandReader({
    policy,
    forAll: undefined,
    digest: sha256,
    switches: noSwitches,
    ...(bounds && { bounds }),
  });
}

describe("DemandReader", () => {
  it("tells requests by rule, hour and day, and what they cost", () => {
    const reader = createReader();
    // On Monday at 03:00, on Tuesday at 13:00 and 14:00.
    for (const hour of [3, 37, 38]) {
      reader.take(requestOf("ann", firstDayUs + hour * 3_600_000_000));
    }
    reader.take(requestOf("", firstDayUs + 38 * 3_600_000_000));
    const { rules, requestCount, unlimitedCount } = reader.finish();
    expect([requestCount, unlimitedCount]).toEqual([4, 1]);
    const [user, cost] = rules;
    expect([user?.demand.rule, cost?.demand.rule]).toEqual(["user", "cost"]);
    const { byHour = [], byWeekday = [] } = user?.demand ?? {};
    expect([byHour[3], byHour[13], byHour[14]]).toEqual([1 / 3, 1 / 3, 1 / 3]);
    expect(byWeekday).toEqual([1 / 3, 2 / 3, 0, 0, 0, 0, 0]);
    expect(user?.demand).toMatchObject({ requestCount: 3, callerCount: 1, dayCount: 2 });
    expect(cost?.demand.busiest.day).toEqual({ p50: 7, p90: 14, p99: 14, max: 14 });
  });

  it("keeps its bounds however many callers there are, and stays near the truth", () => {
    const bounds = { callersMax: 2_000, callerDaysMax: 3_000 };
    const [bounded, exact] = [createReader(bounds), createReader()];
    const log = { seed: 3, days: 2, callers: 10_000, perDay: 20_000, zipf: 0.6 };
    for (const { user, timeUs } of generateRequests(log)) {
      for (const reader of [bounded, exact]) reader.take(requestOf(user, timeUs));
    }
    const [sample, all] = [bounded.finish(), exact.finish()].map(({ rules }) => rules[0]);
    const days = sample?.limits[0]?.callerDays;
    // Bounds are looked at now and then, and the last day is written down at the end; two rules.
    expect(days?.rowCount).toBeLessThanOrEqual(3_000 + 2_000 + 2 * 1_024);
    expect(days?.callers.length).toBeLessThanOrEqual(3_000 + 2_000 + 2 * 1_024);
    expect(sample?.demand.sampledRatio).toBeLessThan(0.5);
    const [estimated = 0, counted = 1] = [sample, all].map((one) => one?.demand.callerCount);
    expect(Math.abs(estimated / counted - 1)).toBeLessThan(0.15);
    expect(sample?.demand.requestCount).toBe(all?.demand.requestCount);
    expect(sample?.demand.busiest.minute).toMatchObject({ p50: all?.demand.busiest.minute.p50 });
    // The busiest callers are followed in any case.
    expect(sample?.demand.busiest.day.max).toBe(all?.demand.busiest.day.max);
  });

  it("knows where all share a bucket", () => {
    const text = policyText
      .replace("- key: user", "- key: user\n          value: us*\n          share_threshold: true")
      .replace("- key: cost", "- key: cost\n          value: user-2");
    const reader = createReader(undefined, text);
    for (let i = 0; i < 10; i += 1) reader.take(requestOf(`user-${i}`, firstDayUs + i));
    const { rules } = reader.finish();
    expect(rules.map(({ demand }) => [demand.rule, demand.isShared, demand.callerCount])).toEqual([
      ["user_us*", true, 1],
      ["cost_user-2", true, 1],
    ]);
  });
});
