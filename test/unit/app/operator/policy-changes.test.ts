import { describe, expect, it } from "vitest";
import { changesMax, describeChanges } from "../../../../src/app/operator/policy-changes.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

describe("describeChanges()", () => {
  it("says limit by limit what is another one", () => {
    const before = testPolicy([{ path: ["user"], effect: [testLimit(10)] }]);
    const after = testPolicy([{ path: ["user"], effect: [testLimit(5)] }], "v2");
    expect(describeChanges(before, before)).toEqual([]);
    const [change, ...others] = describeChanges(before, after);
    expect(others).toEqual([]);
    expect(change).toMatch(/user.*10.*5/);
    expect(describeChanges(undefined, after)).not.toEqual([]);
  });

  it("tells no more of them one by one than its bound", () => {
    const rules = Array.from({ length: changesMax + 2 }, (_, i) => {
      return { path: [`k${i}`], effect: [testLimit(1)] };
    });
    const empty = testPolicy([]);
    const changes = describeChanges(empty, testPolicy(rules, "v2"));
    expect(changes).toHaveLength(changesMax + 1);
    expect(changes.at(-1)).toBe("and 2 more changes");
  });
});
