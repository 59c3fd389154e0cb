import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findRuleLines } from "../../../../src/console/data/rule-lines.js";

const demo = readFileSync("envoy/demo/policy.yaml", "utf8");

function linesOf(path: readonly { key: string; value: string }[]): string | undefined {
  const range = findRuleLines(demo, "demo", path);
  return (
    range &&
    demo
      .split("\n")
      .slice(range.first - 1, range.last)
      .join("\n")
  );
}

describe("the lines of a rule", () => {
  it("are found below its domain, by keys and values", () => {
    expect(linesOf([{ key: "remote_address", value: "" }])).toContain("per-address");
    const partner = linesOf([
      { key: "plan", value: "partner" },
      { key: "user", value: "" },
    ]);
    expect(partner).toContain("partner-daily");
    expect(partner).not.toContain("unlimited");
    const free = linesOf([
      { key: "plan", value: "" },
      { key: "user", value: "" },
    ]);
    expect(free).toContain("free-pace");
    expect(free).not.toContain("partner");
    expect(linesOf([{ key: "path", value: "/reports/*" }])).toContain("reports-trial");
  });

  it("are not guessed", () => {
    expect(linesOf([{ key: "colour", value: "" }])).toBeUndefined();
    expect(findRuleLines(demo, "shop", [])).toBeUndefined();
    expect(findRuleLines("{}", "demo", [])).toBeUndefined();
  });
});
