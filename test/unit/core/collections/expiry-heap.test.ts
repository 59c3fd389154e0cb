import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Expiring, ExpiryHeap } from "../../../../src/core/collections/expiry-heap.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("ExpiryHeap", () => {
  it("is as good as a sorted list, whatever goes in and out", () => {
    const step = fc.record({ isPush: fc.nat(2), key: fc.nat(1_000) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: "max" }), (steps) => {
        const heap = new ExpiryHeap<Expiring>();
        const model: Expiring[] = [];
        const faults: string[] = [];
        for (const { isPush, key } of steps) {
          const chosen = model[key % Math.max(1, model.length)];
          if (isPush > 0 || chosen === undefined) {
            const item = { expiresMs: key, heapPlace: undefined };
            model.push(item);
            heap.push(item);
          } else {
            model.splice(model.indexOf(chosen), 1);
            heap.remove(chosen);
            if (chosen.heapPlace !== undefined) faults.push(`${key} kept its place`);
          }
          const least = Math.min(...model.map(({ expiresMs }) => expiresMs));
          const first = heap.first?.expiresMs ?? Number.POSITIVE_INFINITY;
          if (first !== least) faults.push(`${first} is first, not ${least}`);
          const places = new Set(model.map(({ heapPlace }) => heapPlace));
          if (places.size !== model.length) faults.push(`${model.length} at ${places.size} places`);
        }
        expect(faults).toEqual([]);
        const order: number[] = [];
        for (let item = heap.first; item !== undefined; item = heap.first) {
          order.push(item.expiresMs);
          heap.remove(item);
        }
        expect(order).toEqual(
          model.map(({ expiresMs }) => expiresMs).toSorted((one, other) => one - other),
        );
      }),
      propertyRuns(100),
    );
  });
});
