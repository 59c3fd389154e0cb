import { beforeEach, describe, expect, it } from "vitest";
import {
  KeySketches,
  sketchedDenialsMax,
  sketchedHitsMax,
  sketchedRulesMax,
  sketchWindowMs,
} from "../../../../src/decide/inspect/key-sketches.js";
import { seenKey, seenKeyCharsMax } from "../../../../src/decide/inspect/seen-key.js";

const all = { domains: undefined, ruleLabel: undefined };
const user = { domain: "shop", label: "user" };

let sketches: KeySketches;
let nowMs: number;

beforeEach(() => {
  nowMs = 0;
  sketches = new KeySketches(time());
});

function time() {
  return { nowMs, epochMs: 1_000_000 + nowMs };
}

function count(value: string, times: number, { rule = user, isOver = false } = {}): void {
  const key = seenKey([{ key: "user", value }]) ?? "";
  sketches.count(rule, key, { ...time(), times, isOver });
}

function top(
  order: "hits" | "denials" = "hits",
  selector = all as Parameters<KeySketches["top"]>[0],
) {
  const { keys } = sketches.top(selector, { ...time(), order, countMax: 3 });
  return keys.map(({ entries, count: seen }) => `${entries[0]?.value} ${seen}`);
}

describe("KeySketches", () => {
  it("tells the most frequent keys, by calls and by denials", () => {
    count("ann", 5);
    count("bob", 3, { isOver: true });
    count("ann", 5);
    count("cat", 1);
    count("dan", 2, { isOver: true });
    expect(top()).toEqual(["ann 10", "bob 3", "dan 2"]);
    expect(top("denials")).toEqual(["bob 3", "dan 2"]);
  });

  it("keeps rules apart, and tells of those that are asked about", () => {
    const other = { domain: "api", label: "user" };
    count("ann", 1);
    count("ann", 2, { rule: other });
    count("ann", 4, { rule: { domain: "shop", label: "plan" } });
    expect(top()).toEqual(["ann 4", "ann 2", "ann 1"]);
    expect(top("hits", { domains: ["shop"], ruleLabel: undefined })).toEqual(["ann 4", "ann 1"]);
    expect(top("hits", { domains: ["shop", "api"], ruleLabel: "user" })).toHaveLength(2);
    expect(top("hits", { domains: [], ruleLabel: undefined })).toEqual([]);
  });

  it("counts out of the running window and the one before it", () => {
    count("ann", 5);
    nowMs = sketchWindowMs;
    count("ann", 2);
    expect(top()).toEqual(["ann 7"]);
    expect(sketches.top(all, { ...time(), order: "hits", countMax: 1 }).sinceEpochMs).toBe(
      1_000_000,
    );
    nowMs = 2 * sketchWindowMs;
    expect(top()).toEqual(["ann 2"]);
    nowMs = 4 * sketchWindowMs;
    expect(top()).toEqual([]);
  });

  it("holds so many keys of a rule, and says how far counts may be off", () => {
    for (let i = 0; i < 10 * sketchedHitsMax; i += 1) {
      count(`key-${i}`, 1, { isOver: true });
      count("ann", 1, { isOver: true });
    }
    const most = { ...time(), countMax: 10_000 };
    const hits = sketches.top(all, { ...most, order: "hits" }).keys;
    expect(hits).toHaveLength(sketchedHitsMax);
    expect(hits[0]).toMatchObject({ count: 10 * sketchedHitsMax, errorMax: 0 });
    expect(hits[1]?.errorMax).toBeGreaterThan(0);
    const denials = sketches.top(all, { ...most, order: "denials" }).keys;
    expect(denials).toHaveLength(sketchedDenialsMax);
  });

  it("holds as many keys as their bytes allow, and counts what it left out", () => {
    const held = (length: number): number => {
      sketches = new KeySketches(time(), 40_000);
      for (let i = 0; i < 100; i += 1) count(String(i).padStart(length, "k"), 1);
      const seen = { ...time(), order: "hits", countMax: 200 } as const;
      const { keys } = sketches.top(all, seen);
      expect(sketches.leftOutCount).toBe(100 - keys.length);
      return keys.length;
    };
    expect(held(10)).toBeGreaterThan(80);
    expect(held(400)).toBeGreaterThan(10);
    expect(held(400)).toBeLessThan(20_000 / 800);
    // What is counted already goes on counting.
    count("0".padStart(400, "k"), 50);
    expect(top()[0]).toBe(`${"0".padStart(400, "k")} 51`);
  });

  it("gives the room of a key to the one that takes its place", () => {
    const countBytes = 170 + 2 * '["user","10000"]'.length;
    sketches = new KeySketches(time(), 2 * (sketchedHitsMax + 1) * countBytes);
    for (let i = 0; i < 1_000; i += 1) count(String(10_000 + i), 1);
    expect(sketches.leftOutCount).toBe(0);
  });

  it("holds so many rules in a window, and counts what it left out", () => {
    for (let i = 0; i < sketchedRulesMax + 2; i += 1) {
      count("ann", 1, { rule: { domain: "shop", label: `rule-${i}` } });
    }
    expect(sketches.top(all, { ...time(), order: "hits", countMax: 1_000 }).keys).toHaveLength(
      sketchedRulesMax,
    );
    expect(sketches.leftOutCount).toBe(2);
    nowMs = sketchWindowMs;
    count("ann", 1, { rule: { domain: "shop", label: "late" } });
    expect(top("hits", { domains: undefined, ruleLabel: "late" })).toEqual(["ann 1"]);
  });
});

describe("seenKey()", () => {
  it("makes no text of what is longer than may be kept", () => {
    const longest = seenKeyCharsMax - '["user",""]'.length;
    expect(seenKey([{ key: "user", value: "v".repeat(longest) }])).toHaveLength(seenKeyCharsMax);
    expect(seenKey([{ key: "user", value: "v".repeat(longest + 1) }])).toBeUndefined();
    expect(seenKey([{ key: "user", value: "\u0000".repeat(longest) }])).toBeUndefined();
  });
});
