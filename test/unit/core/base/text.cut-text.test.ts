import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { cutText } from "../../../../src/core/base/text.js";

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

describe("cutText()", () => {
  it.each([
    ["short", 5, "short"],
    ["shorter", 5, "short"],
    ["\ud83d\ude00\ud83d\ude00", 3, "\ud83d\ude00\ud83d"],
    ["\udc80\udcff", 1, "\udc80"],
  ])("cuts %j to %s characters", (text, charsMax, cut) => {
    expect(cutText(text, charsMax)).toBe(cut);
  });

  it("keeps nothing alive of the text that it cuts", () => {
    const before = heapBytes();
    const kept = Array.from({ length: 200 }, (_, i) =>
      cutText([i, "x".repeat(200_000)].join("."), 100),
    );
    expect(heapBytes() - before).toBeLessThan(10_000_000);
    expect(kept).toHaveLength(200);
  });
});
