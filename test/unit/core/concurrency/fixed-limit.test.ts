import { describe, expect, it } from "vitest";
import { FixedLimit } from "../../../../src/core/concurrency/fixed-limit.js";

describe("FixedLimit", () => {
  it("is the most that the policy allows, sheds nobody and drops nothing", () => {
    const law = new FixedLimit({ initial: 5, min: 1, max: 80 });
    expect(law.limit).toBe(80);
    expect(law.shedRatio()).toBe(0);
    expect(law.dropsQueued()).toBe(false);
    expect(law.facts()).toEqual({});
  });

  it("learns nothing", () => {
    const law = new FixedLimit({ initial: 5, min: 1, max: 80 });
    law.record();
    law.update();
    law.read();
    expect(law.limit).toBe(80);
  });
});
