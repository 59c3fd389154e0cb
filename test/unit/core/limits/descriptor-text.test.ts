import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatEntries, readEntries } from "../../../../src/core/limits/descriptor-text.js";
import { propertyRuns } from "../../../support/seeds.js";

const entries = fc.array(fc.record({ key: fc.string({ minLength: 1 }), value: fc.string() }), {
  minLength: 1,
  maxLength: 5,
});

describe("a descriptor as text", () => {
  it("is read back as it was written", () => {
    fc.assert(
      fc.property(entries, (given) => {
        expect(readEntries(formatEntries(given))).toEqual(given);
      }),
      propertyRuns(100),
    );
  });

  it("is none without a key", () => {
    expect(readEntries("")).toBeUndefined();
    expect(readEntries("=ann")).toBeUndefined();
    expect(readEntries("plan=free,")).toBeUndefined();
  });
});
