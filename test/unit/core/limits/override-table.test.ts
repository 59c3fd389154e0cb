import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DescriptorEntry } from "../../../../src/core/limits/key.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { propertyRuns } from "../../../support/seeds.js";

function override(text: string, fields: Partial<Override> = {}): Override {
  return {
    id: text,
    domain: "shop",
    entries: entriesOf(text),
    isPrefix: false,
    effect: { kind: "frozen" },
    reason: "a test",
    author: "ann",
    createdEpochMs: 0,
    ...fields,
  };
}

/** `a=1,b=2` */
function entriesOf(text: string): readonly DescriptorEntry[] {
  return text.split(",").map((entry) => {
    const [key = "", value = ""] = entry.split("=");
    return { key, value };
  });
}

function findIn(overrides: readonly Override[], text: string, limitName?: string) {
  return new OverrideTable(overrides, 1, 0).find("shop", entriesOf(text), limitName);
}

describe("OverrideTable", () => {
  it("finds the one of the whole descriptor, and no other", () => {
    const one = override("plan=free,user=ann");
    expect(findIn([one], "plan=free,user=ann")).toBe(one);
    expect(findIn([one], "plan=free,user=bob")).toBeUndefined();
    expect(findIn([one], "plan=free")).toBeUndefined();
    expect(findIn([{ ...one, domain: "other" }], "plan=free,user=ann")).toBeUndefined();
    expect(noOverrides.find("shop", entriesOf("plan=free"), undefined)).toBeUndefined();
  });

  it("prefers the whole, then the longest prefix, the named limit, and the newest", () => {
    const short = override("plan=free", { isPrefix: true });
    const long = override("plan=free,user=ann", { isPrefix: true });
    const whole = override("plan=free,user=ann");
    const named = override("plan=free,user=ann", { limitName: "daily" });
    const newer = override("plan=free,user=ann", { createdEpochMs: 5 });
    const all = [short, long, whole, named, newer];
    expect(findIn([short, long], "plan=free,user=ann")).toBe(long);
    expect(findIn([short, long], "plan=free,user=bob")).toBe(short);
    expect(findIn([short], "plan=free")).toBe(short);
    expect(findIn(all, "plan=free,user=ann", "daily")).toBe(named);
    expect(findIn(all, "plan=free,user=ann", "pace")).toBe(newer);
    expect(findIn([long, whole], "plan=free,user=ann")).toBe(whole);
  });

  it("leaves out what has expired, and knows what expires next", () => {
    const overrides = [
      override("user=ann", { expiresEpochMs: 10 }),
      override("user=bob", { expiresEpochMs: 20 }),
      override("user=cid", { expiresEpochMs: 30 }),
    ];
    const table = new OverrideTable(overrides, 7, 10);
    expect(table.size).toBe(2);
    expect(table.version).toBe(7);
    expect(table.nextExpiryEpochMs).toBe(20);
    expect(table.find("shop", entriesOf("user=ann"), undefined)).toBeUndefined();
    expect(new OverrideTable([], 1, 0).nextExpiryEpochMs).toBe(Number.POSITIVE_INFINITY);
    expect(table.concerns("shop")).toBe(true);
    expect(table.concerns("edge")).toBe(false);
  });

  it("names those of some domains, also what has expired", () => {
    const overrides = [
      override("user=ann", { expiresEpochMs: 10 }),
      override("user=bob", { domain: "edge" }),
      override("user=cid"),
      override("user=dan", { domain: "mail" }),
    ];
    const table = new OverrideTable(overrides, 1, 10);
    expect([...table.idsOf(["shop"])]).toEqual(["user=ann", "user=cid"]);
    expect([...table.idsOf(["edge", "mail"])]).toEqual(["user=bob", "user=dan"]);
    expect([...table.idsOf(["unknown"])]).toEqual([]);
  });

  it("tells descriptors apart whatever their texts hold", () => {
    const text = fc.constantFrom("", "a", "1:a", "a1:", ":");
    const entry = fc.record({ key: text, value: text });
    const entries = fc.array(entry, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(entries, entries, (given, asked) => {
        const one = override("x", { entries: given });
        const found = new OverrideTable([one], 1, 0).find("shop", asked, undefined);
        expect(found !== undefined).toBe(JSON.stringify(given) === JSON.stringify(asked));
      }),
      propertyRuns(100),
    );
  });
});
