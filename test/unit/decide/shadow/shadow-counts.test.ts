import { describe, expect, it } from "vitest";
import {
  noDifference,
  ShadowCounter,
  shadowRulesMax,
} from "../../../../src/decide/shadow/shadow-counts.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

function call(rule: ReturnType<typeof testPolicy>["rules"][number] | undefined, isOver: boolean) {
  const descriptor =
    rule === undefined ? { kind: "unmatched" as const } : { kind: "replaced" as const, rule };
  const verdict = { isDenied: isOver, statuses: [{ isOver }] };
  return { prepared: { descriptors: [descriptor] }, verdict };
}

describe("ShadowCounter", () => {
  it("counts what would pass for rules in force, and what would not for others", () => {
    const [first] = testPolicy([{ path: ["a"], effect: [testLimit(1)] }]).rules;
    const [second] = testPolicy([{ path: ["b"], effect: [testLimit(1)] }]).rules;
    const counter = new ShadowCounter();
    counter.compare("shop", call(first, true), call(second, false));
    counter.compare("shop", call(first, false), call(second, true));
    counter.compare("shop", call(undefined, false), call(undefined, false));
    counter.noteUnseen();
    const none = { ...noDifference, domain: "shop" };
    expect(counter.take()).toEqual({
      comparedCount: 3,
      newlyDeniedCount: 1,
      newlyAllowedCount: 1,
      unseenCount: 1,
      rules: [
        { ...none, label: "a", newlyAllowedCount: 1, sameCount: 1 },
        { ...none, label: "b", newlyDeniedCount: 1, sameCount: 1 },
      ],
    });
  });

  it("tells so many rules apart, and counts the calls of all", () => {
    const rules = Array.from({ length: shadowRulesMax + 1 }, (_, i) => {
      return { path: [`k${i}`], effect: [testLimit(1)] };
    });
    const counter = new ShadowCounter();
    for (const rule of testPolicy(rules).rules) {
      counter.compare("shop", call(rule, false), call(rule, true));
    }
    const counts = counter.take();
    expect(counts?.rules).toHaveLength(shadowRulesMax);
    expect(counts?.newlyDeniedCount).toBe(shadowRulesMax + 1);
  });
});
