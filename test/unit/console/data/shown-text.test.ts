import { describe, expect, it } from "vitest";
import { clipText, showText } from "../../../../src/console/data/shown-text.js";

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
