import { describe, expect, it } from "vitest";
import { bucketsPerDomainMax, QuotaBuckets } from "../../../src/decide/quota-buckets.js";
import { tenantQuota } from "../../support/quota-rig.js";

describe("QuotaBuckets", () => {
  const [quota] = tenantQuota(1).quotas;
  if (quota === undefined) throw new Error("it has a quota");
  const entriesOf = (value: string) => [{ key: "tenant", value }];

  it("has one record of a descriptor, as long as a bucket stands for it", () => {
    const buckets = new QuotaBuckets();
    const first = buckets.take(quota, entriesOf("a"));
    expect(buckets.take(quota, entriesOf("a"))).toBe(first);
    buckets.release(first);
    expect(buckets.take(quota, entriesOf("a"))).toBe(first);
    buckets.release(first);
    buckets.release(first);
    expect(buckets.take(quota, entriesOf("a"))).not.toBe(first);
  });

  it("sends a domain's descriptors beyond the bound to the overflow, until there is room", () => {
    const buckets = new QuotaBuckets();
    const first = buckets.take(quota, entriesOf("0"));
    for (let i = 1; i < bucketsPerDomainMax; i += 1) buckets.take(quota, entriesOf(String(i)));
    const beyond = buckets.take(quota, entriesOf("beyond"));
    expect([first.isOverflow, beyond.isOverflow]).toEqual([false, true]);
    expect(buckets.take(quota, entriesOf("1")).isOverflow).toBe(false);
    expect(buckets.take({ ...quota, name: "o", domain: "o" }, entriesOf("x")).isOverflow).toBe(
      false,
    );
    buckets.release(beyond);
    buckets.release(first);
    expect(buckets.take(quota, entriesOf("beyond")).isOverflow).toBe(false);
  });
});
