import { describe, expect, it } from "vitest";
import { limitKey } from "../../../../../src/core/limits/key.js";
import {
  clusterTags,
  clusterTagsMax,
  keySlot,
  slotCount,
  tagIndex,
} from "../../../../../src/store/redis/cluster/cluster-tags.js";
import { testKey } from "../../../../support/charges.js";

describe("keySlot()", () => {
  // What CLUSTER KEYSLOT of Redis 7.0 answers.
  it.each([
    ["123456789", 12_739],
    ["", 0],
    ["foo", 12_182],
    ["a{foo}b", 12_182],
    ["{foo}{bar}", 12_182],
    ["foo{}", 5_542],
    ["{}foo", 9_500],
    ["foo{", 7_673],
    ["größe", 9_425],
  ])("of %j is %i", (key, slot) => {
    expect(keySlot(key)).toBe(slot);
  });
});

describe("clusterTags()", () => {
  it.each([1, 2, 7, 12, clusterTagsMax])("spreads %i tags evenly over the slots", (count) => {
    const slots = clusterTags(count).map((tag) => keySlot(`headgate:{${tag}}anything`));
    const parts = slots.map((slot) => Math.floor((slot * count) / slotCount));
    expect(parts).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  it("gives each third of the slots four of twelve tags", () => {
    const thirds = clusterTags(12).map((tag) => Math.floor((keySlot(tag) * 3) / slotCount));
    expect(thirds).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
  });

  it("never changes, or buckets would be lost", () => {
    expect(clusterTags(3)).toEqual(["21418", "8209", "16418"]);
  });
});

describe("tagIndex()", () => {
  it("spreads keys that differ in one number", () => {
    const counts = Array.from({ length: 12 }, () => 0);
    for (let i = 0; i < 12_000; i += 1) {
      const entries = [{ key: "user", value: String(i) }];
      const index = tagIndex(limitKey("shop", entries, { periodUs: 60_000_000 }), 12);
      counts[index] = (counts[index] ?? 0) + 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(800);
    expect(Math.max(...counts)).toBeLessThan(1_200);
  });

  it("goes by the key alone, and never changes, or buckets would be lost", () => {
    const keys = ["", "k", "1g4:shop4:user1:7p3:60s", "𝄞☃"].map(testKey);
    expect(keys.map((key) => tagIndex(key, 1_000))).toEqual([364, 986, 270, 650]);
    expect(keys.map((key) => tagIndex(key, 1))).toEqual([0, 0, 0, 0]);
  });
});
