import { describe, expect, it } from "vitest";
import type { DescriptorEntry } from "../../../../src/core/limits/key.js";
import {
  reportMatch,
  triedRulesMax,
  whyNotText,
} from "../../../../src/core/limits/match-report.js";
import { type TestRule, testLimit, testPolicy } from "../../../support/policies.js";

const limits = [testLimit(1)];

function rule(...path: readonly string[]): TestRule {
  return { path, effect: limits };
}

function report(rules: readonly TestRule[], text: string) {
  const policy = testPolicy(rules);
  const entries = text.split(",").map((part): DescriptorEntry => {
    const [key = "", value = ""] = part.split("=");
    return { key, value };
  });
  const matched = policy.domains.get("shop")?.match(entries);
  return reportMatch(policy.rules, entries, matched).map(({ rule: { label }, why }) => {
    return why === undefined ? label : `${label}: ${whyNotText(why)}`;
  });
}

describe("reportMatch()", () => {
  it("tells the rule that is met first, then why each other one is not", () => {
    const rules = [
      rule("plan=free", "user"),
      rule("plan", "user"),
      rule("plan=free"),
      rule("plan=partner", "user"),
      rule("plan=free", "user", "path"),
      rule("remote_address"),
    ];
    expect(report(rules, "plan=free,user=ann")).toEqual([
      "plan_free.user",
      'plan.user: at entry 1, "plan": "free" takes precedence',
      "plan_free.user.path: the rule has 3 entries, but the descriptor has fewer",
      "plan_free: the rule has 1 entry, but the descriptor has more",
      'plan_partner.user: "plan" does not have the value "partner"',
      'remote_address: entry 1 has a different key; this rule needs "remote_address"',
    ]);
  });

  it("tells of patterns, and which of them came first", () => {
    const rules = [rule("path=/a/*"), rule("path=/*"), rule("path"), rule("p*h=/b")];
    expect(report(rules, "path=/a/x")).toEqual([
      "path_/a/*",
      'path_/*: at entry 1, the pattern "path": "/a/*" takes precedence',
      'path: at entry 1, the pattern "path": "/a/*" takes precedence',
      'p*h_/b: "p*h" does not have the value "/b"',
    ]);
  });

  it("tells why nothing is met, without levels that hold no limit", () => {
    const level = { path: ["team"], effect: { kind: "none" } } as const;
    expect(report([level, rule("team", "user"), rule("plan", "user")], "plan=free")).toEqual([
      "plan.user: the rule has 2 entries, but the descriptor has fewer",
      'team.user: entry 1 has a different key; this rule needs "team"',
    ]);
  });

  it("tells of so many, and no more", () => {
    const rules = Array.from({ length: triedRulesMax + 5 }, (_, i) => rule(`key-${i}`));
    expect(report(rules, "key-54=a")).toHaveLength(triedRulesMax);
    expect(report(rules, "key-54=a")[0]).toBe("key-54");
  });
});
