import { describe, expect, it } from "vitest";
import { renderComparison, reportLimitsMax } from "../../../../src/cli/policy/ratelimit-report.js";
import { compareWithReference } from "../../../../src/policy/diff/comparison.js";
import { parsePolicy } from "../../../../src/policy/parse.js";

function report(descriptors: string, columnsMax = Number.POSITIVE_INFINITY): string {
  const text = `domain: shop\ndescriptors: [${descriptors}]`;
  const parsed = parsePolicy([{ file: "a.yaml", text }]);
  expect(parsed.kind).toBe("policy");
  return renderComparison(
    compareWithReference(parsed.kind === "policy" ? parsed.rules : []),
    columnsMax,
  );
}

const daily = "rate_limit: {unit: day, requests_per_unit: 1000}";

describe("renderComparison()", () => {
  it("shows both numbers of a limit, and how to have the other behaviour", () => {
    const lines = report(`{key: user, ${daily}}`).split("\n");
    const row = lines.find((line) => line.startsWith("  shop "));
    expect(row).toMatch(
      /^ {2}shop +user +1,000 a day +2,000, here 1,000 +1,000, here 1,999 +algorithm: fixed_w/,
    );
    const choice = lines.find((line) =>
      line.startsWith("    keep the old way: HEADGATE_ALGORITHM="),
    );
    expect(choice).toContain("fixed_window; or algorithm: fixed_window");
  });

  it("cuts names to a terminal, and never where a program reads", () => {
    const path = Array.from({ length: 12 }, (_, i) => `a_rather_long_key_${i}`);
    const tree = path.reduceRight(
      (below, key) => `, descriptors: [{key: ${key}${below}}]`,
      `, ${daily}`,
    );
    const whole = ["top", ...path].join(".");
    expect(report(`{key: top${tree}}`)).toContain(whole);
    const lines = report(`{key: top${tree}}`, 120).split("\n");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
    expect(lines.join("\n")).not.toContain(whole);
  });

  it("shows no character that a terminal would act on", () => {
    expect(report(`{key: "a\\u202eb", ${daily}}`)).toContain("a\ufffdb");
  });

  it("leaves out what there is nothing to say of", () => {
    expect(report("")).toBe("");
    expect(report("{key: a}")).not.toMatch(/Better|Different|The most that/);
  });

  it("shows as many limits as fit a screen or two, and counts the others", () => {
    const text = (count: number): string =>
      report(Array.from({ length: count }, (_, i) => `{key: k${i}, ${daily}}`).join(", "));
    const rowCount = (of: string): number => of.match(/ 1,000 a day +2,000/g)?.length ?? 0;
    expect(rowCount(text(reportLimitsMax))).toBe(reportLimitsMax);
    expect(text(reportLimitsMax)).not.toContain("more (");
    expect(rowCount(text(reportLimitsMax + 3))).toBe(reportLimitsMax);
    expect(text(reportLimitsMax + 3)).toContain("  and 3 more (-o json shows all)");
  });
});
