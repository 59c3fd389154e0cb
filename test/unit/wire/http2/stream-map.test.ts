import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StreamMap } from "../../../../src/wire/http2/stream-map.js";
import { propertyRuns } from "../../../support/seeds.js";

interface Stream {
  readonly id: number;
}

/** Numbers that stand side by side, and numbers whose places collide in maps of any size here. */
const ids = fc.oneof(
  fc.integer({ min: 0, max: 40 }).map((n) => 2 * n + 1),
  fc.integer({ min: 0, max: 40 }).map((n) => 4_096 * n + 1),
  fc.integer({ min: 0, max: 2 ** 30 - 1 }).map((n) => 2 * n + 1),
);

const steps = fc.array(fc.record({ id: ids, kind: fc.constantFrom("open", "open", "end") }), {
  maxLength: 400,
});

describe("StreamMap", () => {
  it("holds what a Map holds, whatever is opened and ended", () => {
    fc.assert(
      fc.property(steps, (taken) => {
        const map = new StreamMap<Stream>();
        const model = new Map<number, Stream>();
        for (const { id, kind } of taken) {
          if (kind === "end") {
            expect(map.delete(id)).toBe(model.delete(id));
          } else if (!model.has(id)) {
            const stream = { id };
            map.add(stream);
            model.set(id, stream);
          }
          expect(map.size).toBe(model.size);
        }
        for (const { id } of taken) expect(map.get(id)).toBe(model.get(id));
        const inOrder = [...model.values()].sort((one, other) => one.id - other.id);
        expect(map.inOrder()).toEqual(inOrder);
      }),
      propertyRuns(200),
    );
  });

  it("finds the streams behind one that has ended, across the end of its places", () => {
    const map = new StreamMap<Stream>();
    // Of 16 places, all of these want the last one.
    const colliding = [31, 63, 95, 127].map((id) => ({ id }));
    for (const stream of colliding) map.add(stream);
    expect(map.delete(31)).toBe(true);
    expect(map.delete(95)).toBe(true);
    expect([31, 63, 95, 127].map((id) => map.get(id)?.id)).toEqual([undefined, 63, undefined, 127]);
  });

  it("is empty after clear()", () => {
    const map = new StreamMap<Stream>();
    for (let id = 1; id < 100; id += 2) map.add({ id });
    map.clear();
    expect([map.size, map.get(1), map.inOrder(), map.delete(1)]).toEqual([0, undefined, [], false]);
  });
});
