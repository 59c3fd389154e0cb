import { describe, expect, it } from "vitest";
import { objectName, objectNameCharsMax } from "../../../../src/generate/base/custom-object.js";

describe("objectName()", () => {
  it("makes names that Kubernetes takes", () => {
    expect(objectName("Orders_v2.internal")).toBe("orders-v2-internal");
    expect(objectName("--a--")).toBe("a");
  });

  it("is at most as long as a DNS label, and never ends in a dash", () => {
    expect(objectName("a".repeat(objectNameCharsMax + 1))).toHaveLength(objectNameCharsMax);
    expect(objectName(`${"a".repeat(objectNameCharsMax - 1)}_b`)).toBe(
      "a".repeat(objectNameCharsMax - 1),
    );
  });
});
