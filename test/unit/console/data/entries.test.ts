import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseEntries } from "../../../../src/cli/terminal/key-selector.js";
import {
  clipText,
  readEntries,
  showText,
  writeEntries,
} from "../../../../src/console/data/entries.js";

const entries = fc.array(fc.record({ key: fc.string({ minLength: 1 }), value: fc.string() }), {
  minLength: 1,
  maxLength: 5,
});

describe("a descriptor as text", () => {
  it("is read back as it was written, here and by the command line", () => {
    fc.assert(
      fc.property(entries, (given) => {
        expect(readEntries(writeEntries(given))).toEqual(given);
        expect(parseEntries(writeEntries(given))).toEqual(given);
      }),
    );
  });

  it("is none without a key", () => {
    expect(readEntries("")).toBeUndefined();
    expect(readEntries("=ann")).toBeUndefined();
    expect(readEntries("plan=free,")).toBeUndefined();
  });
});

describe("what a caller sent", () => {
  it("shows what cannot be seen, or would turn what stands around it", () => {
    expect(showText("<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>");
    expect(showText("a\u202eb\u0000c\nd")).toBe("a\\u{202e}b\\u{0}c\\u{a}d");
    expect(showText("lone \ud800 half")).toBe("lone \\u{d800} half");
    expect(showText("שלום 🎈")).toBe("שלום 🎈");
  });

  it("is cut to whole characters", () => {
    expect(clipText("🎈🎈🎈🎈", 3)).toBe("🎈🎈…");
    expect(clipText("abc", 3)).toBe("abc");
    expect(clipText("x".repeat(4_096), 60)).toHaveLength(60);
  });
});
