import { describe, expect, it } from "vitest";
import { LimitNames } from "../../../../src/policy/limits/limit-names.js";

/** The names that were missed, each with those that its domain has. */
function missed(fill: (names: LimitNames, refer: (domain: string, name: string) => void) => void) {
  const names = new LimitNames();
  const found: [string, readonly string[]][] = [];
  fill(names, (domain, name) => {
    names.refer({ domain, name, reportMissing: (known) => found.push([name, known]) });
  });
  names.reportMissing();
  return found;
}

describe("LimitNames", () => {
  it("misses no name that is defined, before or after", () => {
    const found = missed((names, refer) => {
      names.define("shop", "a");
      refer("shop", "a");
      refer("shop", "b");
      names.define("shop", "b");
    });
    expect(found).toEqual([]);
  });

  it("misses a name of another domain, and says which there are", () => {
    const found = missed((names, refer) => {
      names.define("shop", "a");
      names.define("other", "b");
      refer("shop", "b");
      refer("empty", "a");
    });
    expect(found).toEqual([
      ["b", ["a"]],
      ["a", []],
    ]);
  });
});
