import { describe, expect, it } from "vitest";
import { readQuotaBucket } from "../../../../src/policy/quotas/quota-bucket.js";
import type { QuotaPolicy } from "../../../../src/policy/quotas/quota-policy.js";

const quota: QuotaPolicy = {
  name: "q",
  domain: "shop",
  services: undefined,
  match: [],
  when: undefined,
  bucket: [
    { kind: "fixed", key: "where", value: "edge", fallback: undefined },
    { kind: "header", header: "x-tenant", key: "tenant", fallback: "none" },
  ],
  classes: { header: "x-plan", weights: { gold: 3, free: 1 } },
  callsShareRatio: 0.1,
  ttlSeconds: 10,
  beforeAssignment: "allow",
  afterExpiry: { forSeconds: 60, fallback: { kind: "blanket", rule: "allow" } },
  deny: { status: 429, body: undefined, headers: [], grpcStatus: 8 },
};

const own = { quota: "q", where: "edge", tenant: "a" };
const entries = [
  { key: "where", value: "edge" },
  { key: "tenant", value: "a" },
];

describe("readQuotaBucket()", () => {
  it("gives the parts in the order of the policy, whatever that of the id", () => {
    expect(readQuotaBucket(quota, { tenant: "a", quota: "q", where: "edge" })).toEqual({
      kind: "bucket",
      bucket: { entries, weight: 1 },
    });
  });

  it("gives a class its weight, and leaves it out of the descriptor", () => {
    expect(readQuotaBucket(quota, { ...own, class: "gold" })).toEqual({
      kind: "bucket",
      bucket: { entries, weight: 3 },
    });
  });

  it.each([
    ["another quota", { ...own, quota: "r" }],
    ["no quota", { where: "edge", tenant: "a" }],
    ["a missing part", { quota: "q", where: "edge" }],
    ["another fixed value", { ...own, where: "inside" }],
    ["one entry more", { ...own, more: "a" }],
    ["an unknown class", { ...own, class: "silver" }],
    ["a class that objects have", { ...own, class: "toString" }],
    ["nothing", {}],
  ])("does not know an id of %s", (_, id) => {
    expect(readQuotaBucket(quota, id)).toEqual({ kind: "foreign" });
  });

  it("knows no class where the quota has none", () => {
    const plain = { ...quota, classes: undefined };
    expect(readQuotaBucket(plain, { ...own, class: "gold" })).toEqual({ kind: "foreign" });
    expect(readQuotaBucket(plain, own).kind).toBe("bucket");
  });
});
