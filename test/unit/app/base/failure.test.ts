import { describe, expect, it } from "vitest";
import { bugTrace } from "../../../../src/app/base/failure.js";

describe("bugTrace()", () => {
  it("tells the class and the place of an error and of its cause, and no words", () => {
    const cause = new TypeError("caller-73");
    const trace = bugTrace(new RangeError("caller-73\n    caller-73", { cause }));
    expect(trace.error).toBe("RangeError: TypeError");
    expect(trace.stack).toContain("failure.test.ts");
    expect(trace.stack).toContain("caused by");
    expect(JSON.stringify(trace)).not.toContain("caller-73");
  });

  it.each([
    ["text", "string"],
    [undefined, "undefined"],
  ])("tells what kind of thing was thrown: %s", (thrown, kind) => {
    expect(bugTrace(thrown)).toEqual({ error: kind, stack: "" });
  });
});
