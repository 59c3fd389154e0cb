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

function reported(index: number, name?: string) {
  const rule = rules[index];
  if (rule === undefined) throw new Error("no such rule");
  return reportedRule(rule, name === undefined ? {} : { name });
}

describe("reportedRule()", () => {
  it.each([
    { reported: reported(0), text: "user.path_/login" },
    { reported: reported(0, "daily"), text: "user.path_/login/daily" },
    { reported: reported(1), text: "gr??e" },
    { reported: { ...reported(0), rule: " a\r\nb: c\u0000 " }, text: "a??b: c?" },
  ])("is $text in a header", ({ reported: one, text }) => {
    expect(reportedRuleText(one)).toBe(text);
  });

  it("is named whole in metadata", () => {
    expect([...reportedRuleFields(reported(1))]).toEqual([
      ["domain", "shop"],
      ["rule", "größe"],
    ]);
    expect(reportedRuleFields(reported(0, "daily")).get("limit")).toBe("daily");
  });
});
