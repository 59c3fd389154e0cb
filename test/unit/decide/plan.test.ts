import { describe, expect, it } from "vitest";
import { planQuery } from "../../../src/decide/plan.js";
import type { DescriptorQuery } from "../../../src/decide/query.js";
import { requestChargesMax } from "../../../src/store/limit-store.js";
import { testLimit, testPolicy } from "../../support/policies.js";

const perUser = testLimit(10);
const perDay = testLimit(100, { name: "daily", unit: "day", periodUs: 86_400_000_000 });
const policy = testPolicy([
  { path: ["user"], effect: [perUser, perDay] },
  { path: ["user=root"], effect: { kind: "unlimited" } },
  { path: ["group"], effect: { kind: "none" } },
  { path: ["group", "user"], effect: [perUser] },
  { path: ["tokens"], effect: [testLimit(5, { role: "settle", peek: "exhausted" })] },
]);

function descriptor(
  entries: readonly string[],
  fields: Partial<DescriptorQuery> = {},
): DescriptorQuery {
  const parsed = entries.map((entry) => {
    const [key = "", value = ""] = entry.split("=");
    return { key, value };
  });
  return { entries: parsed, hits: 1, isRefund: false, ...fields };
}

function plan(...descriptors: readonly DescriptorQuery[]): ReturnType<typeof planQuery> {
  return planQuery(policy, { domain: "shop", descriptors });
}

describe("planQuery()", () => {
  it("makes a charge for each limit of each matched descriptor, in order", () => {
    const { descriptors, asks } = plan(
      descriptor(["user=ann"]),
      descriptor(["group=a", "user=ann"]),
    );
    expect(descriptors).toMatchObject([
      { kind: "limited", rule: { index: 0 }, firstCharge: 0, chargeCount: 2 },
      { kind: "limited", rule: { index: 3 }, firstCharge: 2, chargeCount: 1 },
    ]);
    expect(asks.map((ask) => ask.limit)).toEqual([perUser, perDay, perUser]);
    const charges = asks.map((ask) => ask.charge);
    expect(charges.map(({ hits, burst, cost, role }) => [hits, burst, cost, role])).toEqual([
      [10, 10, 1, "enforce"],
      [100, 100, 1, "enforce"],
      [10, 10, 1, "enforce"],
    ]);
    expect(new Set(charges.map((charge) => charge.key)).size).toBe(3);
  });

  it.each([
    { story: "an unlimited rule", entries: ["user=root"], kind: "unlimited" },
    { story: "a rule without a limit", entries: ["group=a"], kind: "unmatched" },
    { story: "no rule", entries: ["color=red"], kind: "unmatched" },
    { story: "a path that goes on", entries: ["user=ann", "color=red"], kind: "unmatched" },
  ])("charges nothing for $story", ({ entries, kind }) => {
    const { descriptors, asks } = plan(descriptor(entries));
    expect(descriptors[0]?.kind).toBe(kind);
    expect(asks).toEqual([]);
  });

  it("knows a domain from one that no policy names", () => {
    const other = planQuery(policy, { domain: "else", descriptors: [descriptor(["user=ann"])] });
    expect(other).toEqual({
      isDomainKnown: false,
      descriptors: [{ kind: "unmatched" }],
      asks: [],
    });
    expect(plan(descriptor(["user=root"])).isDomainKnown).toBe(true);
  });

  it("carries hits, refunds and the way of peeking into the charge", () => {
    const { asks } = plan(
      descriptor(["group=a", "user=ann"], { hits: 7, isRefund: true }),
      descriptor(["tokens=x"], { hits: 0 }),
    );
    expect(asks.map((ask) => ask.charge)).toMatchObject([
      { cost: 7, isRefund: true, peekExhausted: false },
      { cost: 0, isRefund: false, role: "settle", peekExhausted: true },
    ]);
  });

  it("charges the limit that a request carries apart from the policy's, enforced", () => {
    const override = { hits: 3, unit: "hour", unitMultiplier: 2 } as const;
    const carried = plan(descriptor(["tokens=x"], { override }));
    expect(carried.descriptors).toEqual([{ kind: "limited", firstCharge: 0, chargeCount: 1 }]);
    expect(carried.asks.map((ask) => ask.charge)).toMatchObject([
      { hits: 3, burst: 3, periodUs: 7_200_000_000, role: "enforce" },
    ]);
    const [own] = plan(descriptor(["tokens=x"])).asks;
    expect(carried.asks[0]?.charge.key).not.toBe(own?.charge.key);
  });

  it("refuses a carried limit whose period is above ten years", () => {
    const override = { hits: 3, unit: "year", unitMultiplier: 11 } as const;
    expect(() => plan(descriptor(["user=a"], { override }))).toThrowError(
      expect.objectContaining({ code: "REQUEST_INVALID" }),
    );
  });

  it("refuses a request with more charges than are decided at once", () => {
    const many = Array.from({ length: requestChargesMax / 2 }, () => descriptor(["user=ann"]));
    expect(plan(...many).asks).toHaveLength(requestChargesMax);
    expect(() => plan(...many, descriptor(["user=ann"]))).toThrowError(
      expect.objectContaining({ code: "REQUEST_INVALID" }),
    );
  });
});
