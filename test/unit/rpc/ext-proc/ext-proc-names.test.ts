import { describe, expect, it } from "vitest";
import { WantedNames } from "../../../../src/rpc/ext-proc/ext-proc-names.js";

describe("WantedNames", () => {
  it("finds the names that it has, wherever they stand", () => {
    const all = [":path", ":host", "x-a", "", "é", "x".repeat(300)];
    const names = new WantedNames(new Set(all));
    for (const name of all) {
      const bytes = Buffer.from(`ab${name}cd`);
      expect(names.find(bytes, 2, bytes.length - 2)).toBe(name);
    }
  });

  it.each([":pat", ":path2", ":Path", "y-a", "x-", "\u00e9\u00e9", "toString"])(
    "does not find %j",
    (name) => {
      const names = new WantedNames(new Set([":path", "x-a", "x-b", "é"]));
      const bytes = Buffer.from(name);
      expect(names.find(bytes, 0, bytes.length)).toBeUndefined();
    },
  );

  it("finds nothing where nothing is wanted", () => {
    expect(new WantedNames(new Set()).find(Buffer.from("x-a"), 0, 3)).toBeUndefined();
  });
});
