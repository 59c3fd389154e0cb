import { describe, expect, it } from "vitest";
import type { LayerValue } from "../../../../src/rpc/nodes/layer-ledger.js";
import {
  areSameValues,
  LayerBuilder,
  LayerValues,
} from "../../../../src/rpc/nodes/layer-values.js";

type Entries = readonly (readonly [string, LayerValue])[];

function built(entries: Entries, likely?: ReadonlyMap<string, LayerValue>) {
  const builder = new LayerBuilder(likely);
  for (const [key, value] of entries) builder.set(key, value);
  return builder.finish();
}

const before: Entries = [
  ["a", 1],
  ["b", false],
  ["c", 3],
];

describe("LayerBuilder", () => {
  it.each<{ readonly name: string; readonly entries: Entries }>([
    {
      name: "the same keys",
      entries: [
        ["a", 4],
        ["b", true],
        ["c", 5],
      ],
    },
    {
      name: "fewer keys",
      entries: [
        ["a", 4],
        ["b", true],
      ],
    },
    { name: "more keys", entries: [...before, ["d", 1]] },
    {
      name: "another key first",
      entries: [
        ["z", 1],
        ["b", true],
        ["c", 5],
      ],
    },
    {
      name: "another key in between",
      entries: [
        ["a", 4],
        ["z", true],
        ["c", 5],
      ],
    },
    { name: "other keys", entries: [["x", 1]] },
    { name: "no key", entries: [] },
  ])("is a map of what was set, after a layer with $name", ({ entries }) => {
    const values = built(entries, built(before));
    const map = new Map(entries);
    expect([...values]).toEqual([...map]);
    expect([...values.keys()]).toEqual([...map.keys()]);
    expect([...values.values()]).toEqual([...map.values()]);
    expect(values.size).toBe(map.size);
    for (const key of ["a", "b", "c", "d", "x", "z"]) {
      expect(values.get(key)).toBe(map.get(key));
      expect(values.has(key)).toBe(map.has(key));
    }
    const seen: unknown[] = [];
    values.forEach((value, key) => void seen.push([key, value]));
    expect(seen).toEqual(entries);
  });

  it("has one object of keys for all layers in a row that have the same ones", () => {
    const first = built(before);
    const second = built(
      [
        ["a", 7],
        ["b", true],
        ["c", 9],
      ],
      first,
    );
    expect(first instanceof LayerValues && second instanceof LayerValues).toBe(true);
    expect(Reflect.get(second, "known")).toBe(Reflect.get(first, "known"));
  });
});

describe("areSameValues()", () => {
  it("compares by keys and values, whoever made them", () => {
    const one = built(before);
    expect(areSameValues(one, built(before, one))).toBe(true);
    expect(areSameValues(one, new Map(before))).toBe(true);
    expect(
      areSameValues(
        one,
        built(
          [
            ["a", 1],
            ["b", false],
            ["c", 4],
          ],
          one,
        ),
      ),
    ).toBe(false);
    expect(
      areSameValues(
        one,
        built(
          [
            ["a", 1],
            ["b", false],
            ["d", 3],
          ],
          one,
        ),
      ),
    ).toBe(false);
    expect(
      areSameValues(
        one,
        built(
          [
            ["a", 1],
            ["b", false],
          ],
          one,
        ),
      ),
    ).toBe(false);
  });
});
