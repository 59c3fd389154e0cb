import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GenerationalMap, wantedOneIn } from "../../../../src/core/collections/generational-map.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("GenerationalMap", () => {
  it("never holds more than its bound, and always what was looked at last", () => {
    const keys = fc.array(fc.nat(30), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 16 }), keys, (sizeMax, asked) => {
        const map = new GenerationalMap<number, string>(sizeMax);
        const recent: number[] = [];
        for (const key of asked) {
          if (map.get(key) === undefined) map.set(key, `value ${key}`);
          const at = recent.indexOf(key);
          if (at !== -1) recent.splice(at, 1);
          recent.push(key);
          expect(map.size).toBeLessThanOrEqual(sizeMax);
          // Half of the bound is certain: the generation in use and a part of the one before.
          const certain = recent.slice(-Math.max(1, Math.floor(sizeMax / 2)));
          if (sizeMax % 2 === 0) {
            for (const one of certain) expect(map.has(one)).toBe(true);
          }
        }
      }),
      propertyRuns(100),
    );
  });

  it("never holds more than its bound of entries that have a size, but for the last one", () => {
    const entries = fc.array(fc.record({ key: fc.nat(30), isLooked: fc.boolean() }), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 60 }), entries, (sizeMax, asked) => {
        const sizeOf = (key: number): number => 1 + (key % 9);
        const map = new GenerationalMap<number, string>(sizeMax, sizeOf);
        for (const { key, isLooked } of asked) {
          if (!isLooked || map.get(key) === undefined) map.set(key, `value ${key}`);
          expect(map.has(key)).toBe(true);
          let held = 0;
          for (let other = 0; other <= 30; other += 1) if (map.has(other)) held += sizeOf(other);
          // One that is larger than a generation is held alone, in each of the two.
          expect(held).toBeLessThanOrEqual(Math.max(sizeMax, Math.floor(sizeMax / 2) + 9, 18));
        }
      }),
      propertyRuns(100),
    );
  });

  it("wants every key until a generation is full, and one in so many from then on", () => {
    const map = new GenerationalMap<number, string>(4);
    const wanted = Array.from({ length: 3 + 2 * wantedOneIn }, (_, key) => {
      const isWanted = map.wantsMore();
      if (isWanted) map.set(key, "value");
      return isWanted;
    });
    const oneIn = Array.from({ length: wantedOneIn }, (_, i) => i === wantedOneIn - 1);
    expect(wanted).toEqual([true, true, true, ...oneIn, ...oneIn]);
    map.clear();
    expect(map.wantsMore()).toBe(true);
  });

  it("answers the value that was set last", () => {
    const map = new GenerationalMap<string, number>(4);
    map.set("a", 1);
    map.set("a", 2);
    expect([map.get("a"), map.size]).toEqual([2, 1]);
  });

  it("is empty after clear()", () => {
    const map = new GenerationalMap<string, number>(4);
    for (const key of ["a", "b", "c"]) map.set(key, 1);
    map.clear();
    expect([map.size, map.get("c")]).toEqual([0, undefined]);
  });
});
