import { describe, expect, it } from "vitest";
import { bucketsPerDomainMax, QuotaBuckets } from "../../../../src/decide/quota/quota-buckets.js";
import { tenantQuota } from "../../../support/quota-rig.js";

describe("QuotaBuckets", () => {
  const [quota] = tenantQuota(1).quotas;
  if (quota === undefined) throw new Error("it has a quota");
  const entriesOf = (value: string) => [{ key: "tenant", value }];

  it("has one record of a descriptor, as long as a bucket stands for it", () => {
    const buckets = new QuotaBuckets();
    const first = buckets.take(quota, entriesOf("a"), "fleet");
    expect(buckets.take(quota, entriesOf("a"), "fleet")).toBe(first);
    buckets.release(first);
    expect(buckets.take(quota, entriesOf("a"), "fleet")).toBe(first);
    buckets.release(first);
    buckets.release(first);
    expect(buckets.take(quota, entriesOf("a"), "fleet")).not.toBe(first);
  });

  it("sends a domain's descriptors beyond the bound to the overflow, until there is room", () => {
    const buckets = new QuotaBuckets();
    const first = buckets.take(quota, entriesOf("0"), "fleet");
    for (let i = 1; i < bucketsPerDomainMax; i += 1)
      buckets.take(quota, entriesOf(String(i)), "fleet");
    const beyond = buckets.take(quota, entriesOf("beyond"), "fleet");
    expect([first.isOverflow, beyond.isOverflow]).toEqual([false, true]);
    expect(buckets.take(quota, entriesOf("1"), "fleet").isOverflow).toBe(false);
    expect(
      buckets.take({ ...quota, name: "o", domain: "o" }, entriesOf("x"), "fleet").isOverflow,
    ).toBe(false);
    buckets.release(beyond);
    buckets.release(first);
    expect(buckets.take(quota, entriesOf("beyond"), "fleet").isOverflow).toBe(false);
  });

  it("sends what an identity brings beyond its part to the overflow, and nothing of others", () => {
    const buckets = new QuotaBuckets(10);
    const most = bucketsPerDomainMax / 10;
    const take = (value: string, identity: string) =>
      buckets.take(quota, entriesOf(value), identity);
    const first = take("0", "fleet");
    for (let i = 1; i < most; i += 1) take(String(i), "fleet");
    expect(take("beyond", "fleet").isOverflow).toBe(true);
    // What is there already is no more for it.
    expect(take("1", "fleet").isOverflow).toBe(false);
    expect(take("beyond", "other").isOverflow).toBe(false);
    buckets.release(first);
    expect(take("again", "fleet").isOverflow).toBe(false);
  });
});
