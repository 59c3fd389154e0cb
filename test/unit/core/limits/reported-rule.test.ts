import { describe, expect, it } from "vitest";
import {
  reportedRule,
  reportedRuleFields,
  reportedRuleText,
} from "../../../../src/core/limits/reported-rule.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const { rules } = testPolicy([
  { path: ["user", "path=/login"], effect: [testLimit(1), testLimit(2, { name: "daily" })] },
  { path: ["größe"], effect: [testLimit(1)] },
]);

function told(index: number, name?: string) {
  const rule = rules[index];
  if (rule === undefined) throw new Error("no such rule");
  return reportedRule(rule, name === undefined ? {} : { name });
}

describe("reportedRule()", () => {
  it.each([
    { told: told(0), text: "user.path_/login" },
    { told: told(0, "daily"), text: "user.path_/login/daily" },
    { told: told(1), text: "gr??e" },
    { told: { ...told(0), rule: " a\r\nb: c\u0000 " }, text: "a??b: c?" },
  ])("is $text in a header", ({ told: one, text }) => {
    expect(reportedRuleText(one)).toBe(text);
  });

  it("is named whole in metadata", () => {
    expect([...reportedRuleFields(told(1))]).toEqual([
      ["domain", "shop"],
      ["rule", "größe"],
    ]);
    expect(reportedRuleFields(told(0, "daily")).get("limit")).toBe("daily");
  });
});
