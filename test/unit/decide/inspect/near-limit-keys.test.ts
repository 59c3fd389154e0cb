import { beforeEach, describe, expect, it } from "vitest";
import {
  NearLimitKeys,
  nearKeptMs,
  nearKeysPerRuleMax,
  nearRulesMax,
} from "../../../../src/decide/inspect/near-limit-keys.js";
import { seenKey } from "../../../../src/decide/inspect/seen-key.js";

const all = { domains: undefined, ruleLabel: undefined };
const user = { domain: "shop", label: "user" };

let keys: NearLimitKeys;

beforeEach(() => {
  keys = new NearLimitKeys();
});

function note(value: string, usedRatio: number, { isOver = false, rule = user, atMs = 0 } = {}) {
  const key = seenKey([{ key: "user", value }]) ?? "";
  keys.note(rule, key, { limitName: undefined, usedRatio, isOver, seenEpochMs: atMs });
}

function near({ usedRatioMin = 0.8, countMax = 1_000_000, epochMs = 0, selector = all } = {}) {
  return keys
    .near(selector, { usedRatioMin, countMax, epochMs })
    .map(({ entries }) => entries[0]?.value);
}

describe("NearLimitKeys", () => {
  it("tells the fullest first, and what is over before what is full", () => {
    note("ann", 0.9);
    note("bob", 1);
    note("cat", 1, { isOver: true });
    note("dan", 0.7);
    expect(near()).toEqual(["cat", "bob", "ann"]);
    expect(near({ usedRatioMin: 0.6 })).toEqual(["cat", "bob", "ann", "dan"]);
    expect(near({ countMax: 1 })).toEqual(["cat"]);
  });

  it("tells how a key was when it was seen last", () => {
    note("ann", 1, { isOver: true, atMs: 1 });
    note("ann", 0.85, { atMs: 2 });
    expect(keys.near(all, { usedRatioMin: 0.8, countMax: 9, epochMs: 2 })).toEqual([
      {
        domain: "shop",
        entries: [{ key: "user", value: "ann" }],
        ruleLabel: "user",
        usedRatio: 0.85,
        isOver: false,
        seenEpochMs: 2,
      },
    ]);
    note("ann", 0.2, { atMs: 3 });
    expect(near({ usedRatioMin: 0.01 })).toEqual([]);
  });

  it("forgets what was seen long ago", () => {
    note("ann", 0.9, { atMs: 1_000 });
    expect(near({ epochMs: 1_000 + nearKeptMs })).toEqual(["ann"]);
    expect(near({ epochMs: 1_001 + nearKeptMs })).toEqual([]);
  });

  it("holds so many keys of a rule and so many rules, those seen last", () => {
    for (let i = 0; i <= nearKeysPerRuleMax; i += 1) {
      note(`key-${i}`, 0.9);
      note("ann", 0.9);
    }
    expect(near()).toHaveLength(nearKeysPerRuleMax);
    expect(near()).toContain("ann");
    expect(near()).not.toContain("key-0");
    for (let i = 0; i < nearRulesMax; i += 1) {
      note("bob", 0.9, { rule: { domain: "shop", label: `rule-${i}` } });
    }
    expect(near()).toHaveLength(nearRulesMax);
    expect(near()).not.toContain("ann");
  });

  it("tells of the rules that are asked about", () => {
    note("ann", 0.9);
    note("bob", 0.9, { rule: { domain: "api", label: "user" } });
    const selector = { domains: ["api"] as readonly string[], ruleLabel: "user" };
    expect(keys.near(selector, { usedRatioMin: 0.8, countMax: 9, epochMs: 0 })).toHaveLength(1);
  });
});
