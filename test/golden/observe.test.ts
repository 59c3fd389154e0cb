import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/program.js";
import { usualGenerateOptions } from "../../src/generate/generate-options.js";
import { type AlertName, alertWords } from "../../src/generate/observe/alert-words.js";
import { alertRules } from "../../src/generate/observe/alerts.js";
import { renderRunbook } from "../../src/generate/observe/runbook.js";
import { casePolicy, generatedCases, renderCase } from "../support/generated.js";
import { runPromtool, writeTexts } from "../support/promtool.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
const alertCases = generatedCases().filter(({ target }) => target === "alerts");

describe("generated rules", () => {
  it.each(alertCases.map((given) => [given.name, given] as const))(
    "of %s are taken by promtool, and each is raised when it ought to be",
    async (name, given) => {
      const folder = join(stage.folder, name);
      writeTexts(folder, renderCase(given));
      const rules = join(folder, "rules/headgate.yaml");
      const checked = await runPromtool(stage, ["check", "rules", rules]);
      expect(checked.isOk, checked.output).toBe(true);
      const tests = join(folder, "tests/headgate.yaml");
      const tried = await runPromtool(stage, ["test", "rules", tests]);
      expect(tried.isOk, tried.output).toBe(true);
    },
    120_000,
  );

  it("fail their trials where they are not what they ought to be", async () => {
    const given = alertCases.find(({ name }) => name === "alerts/limits-only");
    const files = new Map(given === undefined ? [] : renderCase(given));
    const rules = files.get("rules/headgate.yaml") ?? "";
    files.set("rules/headgate.yaml", rules.replace(/expr: absent\(.*/, "expr: vector(0) > 1"));
    const folder = join(stage.folder, "wrong");
    writeTexts(folder, files);
    const tests = join(folder, "tests/headgate.yaml");
    const { isOk, output } = await runPromtool(stage, ["test", "rules", tests]);
    expect(isOk).toBe(false);
    expect(output).toContain("HeadgateAbsent");
  }, 120_000);

  it("raise every alert that there is somewhere", () => {
    const raised = alertCases.flatMap((given) =>
      alertRules(casePolicy(given), usualGenerateOptions).map(({ alert }) => alert),
    );
    expect(Object.keys(alertWords).sort()).toEqual([...new Set<string>(raised)].sort());
  });
});

describe("k8s/runbook.md", () => {
  it("has a section for each alert, and none for others", () => {
    const names = Object.keys(alertWords).filter((name): name is AlertName => name in alertWords);
    const text = `${renderRunbook(names).trimEnd()}\n`;
    if (isUpdating) writeFileSync("k8s/runbook.md", text);
    expect(readFileSync("k8s/runbook.md", "utf8")).toBe(text);
    const sections = [...text.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(sections.sort()).toEqual([...names].sort());
  });
});

describe("envoy/compose", () => {
  it.each([
    { target: "dashboards", folder: "envoy/compose/grafana/dashboards" },
    { target: "alerts", folder: "envoy/compose/prometheus" },
  ])("has the $target that headgate makes of its policy", async ({ target, folder }) => {
    const words = ["generate", target, "envoy/compose/policy.yaml", "--out", folder];
    let said = "";
    const say = (text: string): void => {
      said += `${text}\n`;
    };
    const output = { out: say, err: say };
    const code = await runCli([...words, isUpdating ? "--force" : "--check"], output);
    expect(code, said).toBe(0);
  });
});
