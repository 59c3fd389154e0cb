import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatRoute,
  keyOfRoute,
  keyRoute,
  parseRoute,
} from "../../../../src/console/data/route.js";
import { propertyRuns } from "../../../support/seeds.js";

const word = fc.string({ minLength: 1, unit: "grapheme" });

describe("a route", () => {
  it("is read back from its URL, whatever its parts hold", () => {
    fc.assert(
      fc.property(fc.array(word), fc.dictionary(word, word), (path, params) => {
        const hash = formatRoute(path, params);
        expect(new URL(hash, "http://console/").hash).toBe(hash);
        const read = parseRoute(hash);
        expect(read.path).toEqual(path);
        expect(Object.entries(read.params).sort()).toEqual(Object.entries(params).sort());
      }),
      propertyRuns(100),
    );
  });

  it("takes a name that objects have of themselves for one like any other", () => {
    const { params } = parseRoute("#/limits?__proto__=a&constructor=b");
    expect(Object.entries(params)).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
  });

  it("opens where it was cut off", () => {
    expect(parseRoute("#/rule/shop/%E")).toEqual({ path: ["rule", "shop", "%E"], params: {} });
    expect(parseRoute("")).toEqual({ path: [], params: {} });
  });

  it("names a key with any entries", () => {
    const entry = fc.record({ key: word, value: fc.string() });
    fc.assert(
      fc.property(word, fc.array(entry, { minLength: 1 }), (domain, entries) => {
        const { path } = parseRoute(keyRoute(domain, entries));
        const wellFormed = entries.map(({ key, value }) => {
          return { key: key.toWellFormed(), value: value.toWellFormed() };
        });
        expect(keyOfRoute(path)).toEqual({ domain, entries: wellFormed });
      }),
      propertyRuns(100),
    );
    expect(keyOfRoute(["key", "shop"])).toBeUndefined();
  });
});
