import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PathStep } from "../../../../src/core/limits/limit.js";
import { RuleList, stepLabel } from "../../../../src/policy/limits/rule-list.js";
import { propertyRuns } from "../../../support/seeds.js";

/** The labels that rules of these labels get, all in one domain. */
function labelsOf(labels: readonly string[]): readonly string[] {
  const list = new RuleList();
  for (const label of labels) {
    list.add({ domain: "a", path: [{ key: "k" }], effect: { kind: "none" }, label });
  }
  return list.rules.map((rule) => rule.label);
}

describe("RuleList", () => {
  it("numbers rules in the order they are added", () => {
    const list = new RuleList();
    for (const domain of ["a", "b"]) {
      list.add({ domain, path: [{ key: "k" }], effect: { kind: "none" }, label: "k" });
    }
    expect(list.rules.map(({ domain, label, index }) => [domain, label, index])).toEqual([
      ["a", "k", 0],
      ["b", "k", 1],
    ]);
  });

  it.each([
    { given: ["a", "a", "a"], labels: ["a", "a#2", "a#3"] },
    { given: ["a#2", "a", "a", "a"], labels: ["a#2", "a", "a#3", "a#4"] },
    { given: ["a", "a", "a#2", "a"], labels: ["a", "a#2", "a#2#2", "a#3"] },
  ])("makes $labels of $given", ({ given, labels }) => {
    expect(labelsOf(given)).toEqual(labels);
  });

  it("never gives one label twice in a domain", () => {
    const label = fc.constantFrom("a", "a#2", "a#3", "a#2#2", "a#2#3", "b");
    fc.assert(
      fc.property(fc.array(label), (given) => {
        const labels = labelsOf(given);
        expect(new Set(labels).size).toBe(labels.length);
      }),
      propertyRuns(100),
    );
  });
});

describe("stepLabel()", () => {
  const steps: readonly (readonly [PathStep, string])[] = [
    [{ key: "user" }, "user"],
    [{ key: "plan", value: "free" }, "plan_free"],
    [{ key: "path", value: "/v1/*" }, "path_/v1/*"],
  ];
  it.each(steps)("joins key and value of %o", (step, label) => {
    expect(stepLabel(step)).toBe(label);
  });
});
