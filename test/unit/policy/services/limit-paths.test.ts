import { describe, expect, it } from "vitest";
import type { DescriptorPart } from "../../../../src/policy/services/descriptor-parts.js";
import { LimitPaths } from "../../../../src/policy/services/limit-paths.js";
import { type TestRule, testLimit, testPolicy } from "../../../support/policies.js";

const limits = [testLimit(1)];

function pathsOf(rules: readonly TestRule[]): LimitPaths {
  const paths = new LimitPaths();
  for (const rule of testPolicy(rules).rules) paths.add(rule);
  return paths;
}

/** `key` stands for a header, `key=value` for a fixed value. */
function parts(...texts: readonly string[]): readonly DescriptorPart[] {
  return texts.map((text) => {
    const [key = "", value] = text.split("=");
    return value === undefined
      ? { kind: "header", header: "x", key }
      : { kind: "fixed", key, value };
  });
}

describe("LimitPaths", () => {
  const paths = pathsOf([
    { path: ["plan=free", "user"], effect: limits },
    { path: ["plan=free"], effect: { kind: "none" } },
    { path: ["health"], effect: { kind: "unlimited" } },
    { path: ["path=/a/*"], effect: limits },
    { path: ["*_id"], effect: limits },
  ]);

  it.each([
    [["plan", "user"], true],
    [["plan=free", "user"], true],
    [["plan=paid", "user"], false],
    [["plan", "user=me"], true],
    [["plan"], false],
    [["user", "plan"], false],
    [["plan", "user", "x"], false],
    [["health"], true],
    [["path=/a/b"], true],
    [["path=/b"], false],
    [["user_id"], true],
    [["user"], false],
    [[], false],
  ])("says of %j: %s", (texts, canMeet) => {
    expect(paths.canMeet(parts(...texts))).toBe(canMeet);
  });

  it("takes an address for anything that it may be", () => {
    const byAddress = pathsOf([{ path: ["remote_address=10.0.0.1"], effect: limits }]);
    expect(byAddress.canMeet([{ kind: "remoteAddress", key: "remote_address" }])).toBe(true);
  });

  it("tells keys apart that read the same when joined", () => {
    const joined = pathsOf([{ path: ["a,b"], effect: limits }]);
    expect(joined.canMeet(parts("a", "b"))).toBe(false);
    expect(joined.canMeet(parts("a,b"))).toBe(true);
  });

  it("knows the keys of all descriptors", () => {
    expect([...paths.keys].sort()).toEqual(["*_id", "health", "path", "plan", "user"]);
  });
});
