import { describe, expect, it } from "vitest";
import { FixedLimit } from "../../../../src/core/concurrency/fixed-limit.js";

describe("FixedLimit", () => {
  it("is the most that the policy allows", () => {
    const law = new FixedLimit({ initial: 5, min: 1, max: 80 });
    expect(law.limit).toBe(80);
    expect(law.facts()).toEqual({});
  });

  it("learns nothing", () => {
    const law = new FixedLimit({ initial: 5, min: 1, max: 80 });
    law.record();
    law.update();
    expect(law.limit).toBe(80);
  });
});
