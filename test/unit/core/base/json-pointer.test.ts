import { describe, expect, it } from "vitest";
import {
  followJsonPointer,
  parseJsonPointer,
  pointerStepsMax,
} from "../../../../src/core/base/json-pointer.js";

const document = {
  lag: { "a/b": 1, "~": 2, "": 3 },
  list: [4, { x: 5 }],
  none: undefined,
  no: null,
  text: "abc",
};

describe("JSON pointers", () => {
  it.each([
    { pointer: "", found: document },
    { pointer: "/lag/a~1b", found: 1 },
    { pointer: "/lag/~0", found: 2 },
    { pointer: "/lag/", found: 3 },
    { pointer: "/list/0", found: 4 },
    { pointer: "/list/1/x", found: 5 },
    { pointer: "/list/01", found: undefined },
    { pointer: "/list/length", found: undefined },
    { pointer: "/list/2", found: undefined },
    { pointer: "/lag/a~1b/c", found: undefined },
    { pointer: "/no/a", found: undefined },
    { pointer: "/text/0", found: undefined },
    { pointer: "/toString", found: undefined },
    { pointer: "/__proto__", found: undefined },
  ])("lead by $pointer to $found", ({ pointer, found }) => {
    const steps = parseJsonPointer(pointer);
    expect(steps && followJsonPointer(document, steps)).toEqual(found);
  });

  it.each(["a", "a/b", "/a~", "/a~2"])("are not %s", (text) => {
    expect(parseJsonPointer(text)).toBeUndefined();
  });

  it("have as many steps as they may", () => {
    expect(parseJsonPointer("/a".repeat(pointerStepsMax))).toHaveLength(pointerStepsMax);
    expect(parseJsonPointer("/a".repeat(pointerStepsMax + 1))).toBeUndefined();
  });
});
