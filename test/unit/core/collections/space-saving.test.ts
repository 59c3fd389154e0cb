import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SpaceSaving } from "../../../../src/core/collections/space-saving.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("SpaceSaving", () => {
  it("counts exactly while there are no more keys than counters", () => {
    const sketch = new SpaceSaving<string>(3);
    for (const key of ["a", "b", "a", "c", "a", "b"]) sketch.add(key);
    expect(sketch.top(2)).toEqual([
      { key: "a", count: 3, errorMax: 0 },
      { key: "b", count: 2, errorMax: 0 },
    ]);
    expect(sketch.totalCount).toBe(6);
  });

  it("gives a new key the place of the least, and says how much it may be too much", () => {
    const sketch = new SpaceSaving<string>(2);
    for (const key of ["a", "a", "b", "c"]) sketch.add(key);
    expect(sketch.top(10)).toEqual([
      { key: "a", count: 2, errorMax: 0 },
      { key: "c", count: 2, errorMax: 1 },
    ]);
    expect(["a", "b", "c"].map((key) => sketch.leastCountOf(key))).toEqual([2, 0, 1]);
  });

  it("keeps its two promises in any stream", () => {
    const arrivals = fc.array(
      fc.record({ key: fc.integer({ min: 0, max: 12 }), times: fc.integer({ min: 1, max: 5 }) }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(arrivals, fc.integer({ min: 1, max: 8 }), (stream, countersMax) => {
        const sketch = new SpaceSaving<number>(countersMax);
        const exact = new Map<number, number>();
        for (const { key, times } of stream) {
          sketch.add(key, times);
          exact.set(key, (exact.get(key) ?? 0) + times);
        }
        const slack = sketch.totalCount / countersMax;
        const top = sketch.top(countersMax);
        expect(top.length).toBeLessThanOrEqual(countersMax);
        const kept = new Map(top.map((one) => [one.key, one]));
        for (const [key, count] of exact) {
          const known = kept.get(key);
          if (known === undefined) expect(count).toBeLessThanOrEqual(slack);
          else {
            expect(known.count).toBeGreaterThanOrEqual(count);
            expect(known.count - known.errorMax).toBeLessThanOrEqual(count);
            expect(known.errorMax).toBeLessThanOrEqual(slack);
          }
        }
      }),
      propertyRuns(100),
    );
  });
});
