import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DigestTable } from "../../../../src/core/collections/digest-table.js";
import type { Digest } from "../../../../src/core/collections/keyed-hash.js";
import { propertyRuns } from "../../../support/seeds.js";

/** Few homes in two parts: entries lie in each other's way, over pages and behind the end. */
const digests: fc.Arbitrary<Digest> = fc.record({
  a: fc.constantFrom(0, 255),
  b: fc.constantFrom(0, 1, 0x7fffffff, -1, -2),
  c: fc.nat(15),
  d: fc.constantFrom(1, -1),
});

const steps = fc.record({
  kind: fc.constantFrom("add", "add", "add", "delete", "deleteFound"),
  digest: digests,
});

function nameOf({ a, b, c, d }: Digest): string {
  return `${a}/${b}/${c}/${d}`;
}

/** A digest as a hash would make it. */
function digestOf(i: number): Digest {
  const mixed = Math.imul(i + 1, 0x9e3779b1);
  return { a: mixed ^ (mixed >>> 15), b: Math.imul(mixed, 0x85ebca6b), c: i, d: i | 1 };
}

/** What the table must hold: the plainest form of it. */
type Model = Map<string, { readonly digest: Digest; readonly number: number }>;

function assertHeld(table: DigestTable, model: Model): void {
  assert.equal(table.size, model.size);
  for (const { digest, number } of model.values()) {
    const place = table.find(digest);
    assert.equal(place === undefined ? undefined : table.word(place, 0), number);
    assert.equal(place === undefined ? undefined : table.double(place, 1), number / 3);
  }
}

describe("DigestTable", () => {
  it("holds what a plain Map does, wherever entries lie", () => {
    const property = fc.property(fc.array(steps, { maxLength: 120, size: "max" }), (history) => {
      const table = new DigestTable();
      const model: Model = new Map();
      history.forEach(({ kind, digest }, number) => {
        const known = table.find(digest);
        assert.equal(known !== undefined, model.has(nameOf(digest)));
        if (kind === "deleteFound") {
          const found = table.next(1_000);
          assert.equal(found !== undefined, model.size > 0);
          if (found === undefined) return;
          const held = [...model].find(([, one]) => table.find(one.digest) === found);
          table.deleteFound(found);
          model.delete(held?.[0] ?? "");
        } else if (kind === "delete") {
          if (known !== undefined) table.delete(known);
          model.delete(nameOf(digest));
        } else {
          const place = known ?? table.add(digest);
          table.setWord(place, 0, number);
          table.setDouble(place, 1, number / 3);
          model.set(nameOf(digest), { digest, number });
        }
        assertHeld(table, model);
      });
    });
    fc.assert(property, propertyRuns(100));
  });

  it("begins every entry with zeros, also where another one lay", () => {
    const table = new DigestTable();
    const digest = digestOf(1);
    for (let round = 0; round < 2; round += 1) {
      const place = table.add(digest);
      expect([0, 1, 2, 3, 4].map((field) => table.word(place, field))).toEqual(Array(5).fill(0));
      table.setWord(place, 0, -1);
      for (const field of [0, 1]) table.setDouble(place, field, Number.MAX_SAFE_INTEGER);
      table.delete(place);
    }
  });

  it("says where an entry lies that nothing is in the way of, and only reads", () => {
    const table = new DigestTable();
    table.readAhead(Int32Array.of(table.home(digestOf(1)), table.home(digestOf(2))), 2);
    expect(table.home(digestOf(1))).toBe(table.add(digestOf(1)));
    for (let i = 2; i < 1_000; i += 1) table.add(digestOf(i));
    const homes = Int32Array.from({ length: 1_000 }, (_, i) => table.home(digestOf(i)));
    table.readAhead(homes, homes.length);
    for (let i = 1; i < 1_000; i += 1) expect(table.find(digestOf(i))).toBeDefined();
    expect([table.size, table.find(digestOf(0))]).toEqual([999, undefined]);
  });

  it("takes at most 43 bytes an entry once it holds many", () => {
    const table = new DigestTable();
    const count = 400_000;
    let most = 0;
    for (let i = 0; i < count; i += 1) {
      table.add(digestOf(i));
      if (i > count / 4) most = Math.max(most, i % 1_000 === 0 ? table.bytes / table.size : 0);
    }
    expect(table.size).toBe(count);
    expect(most).toBeLessThan(43);
    expect(table.bytes / table.size).toBeGreaterThan(37);
    for (let i = 0; i < count; i += 997) expect(table.find(digestOf(i))).toBeDefined();
    expect(table.find(digestOf(count))).toBeUndefined();
    table.clear();
    expect([table.size, table.bytes, table.find(digestOf(0))]).toEqual([0, 0, undefined]);
  });

  it("meets every entry once in a round, and says when none is near", () => {
    const table = new DigestTable();
    for (let i = 0; i < 1_000; i += 1) table.add(digestOf(i));
    const met = new Set(Array.from({ length: 1_000 }, () => table.next(1_000)));
    expect(met.size).toBe(1_000);
    expect(met.has(undefined)).toBe(false);
    const alone = new DigestTable();
    alone.add({ a: 200, b: 0, c: 0, d: 1 });
    expect(alone.next(200)).toBeUndefined();
    expect(alone.next(10)).toBe(alone.find({ a: 200, b: 0, c: 0, d: 1 }));
    expect(alone.next(10)).toBeUndefined();
  });
});
