import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runCli } from "../../src/cli/program.js";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { type AlertName, alertWords } from "../../src/generate/observe/alert-words.js";
import { alertRules } from "../../src/generate/observe/alerts.js";
import { renderRunbook } from "../../src/generate/observe/runbook.js";
import { casePolicy, generatedCases, renderCase } from "../support/generated.js";
import { runPromtool, writeTexts } from "../support/promtool.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
const alertCases = generatedCases()
  .filter(({ target }) => target === "alerts")
  .map((given) => ({ ...given, files: renderCase(given) }));

interface RuleFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[];
}

interface TrialFile {
  readonly tests: readonly {
    readonly alert_rule_test: readonly { readonly alertname: string }[];
  }[];
}

/**
 * The trials of each alert, with its rules alone: no alert sees another, and promtool evaluates all
 * rules of a file in each trial. An alert that several cases have alike is tried once.
 */
function trialsByAlert(): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const known = new Set<string>();
  for (const given of alertCases) {
    const { files } = given;
    const { groups }: RuleFile = parse(files.get("rules/headgate.yaml") ?? "");
    const { tests, ...settings }: TrialFile = parse(files.get("tests/headgate.yaml") ?? "");
    const all = groups.flatMap(({ rules }) => rules);
    const trialsOf = (name: string) =>
      tests.filter(({ alert_rule_test }) => alert_rule_test[0]?.alertname === name);
    const names = [...new Set(all.map(({ alert }) => alert))];
    expect(names.flatMap(trialsOf)).toHaveLength(tests.length);
    for (const name of names) {
      const rules = { groups: [{ name, rules: all.filter(({ alert }) => alert === name) }] };
      const trials = trialsOf(name);
      const text = JSON.stringify([rules, trials]);
      if (known.has(text)) continue;
      known.add(text);
      const path = `${given.name}/${name}`;
      texts.set(`${path}.rules.yaml`, JSON.stringify(rules));
      const own = { ...settings, rule_files: [`${name}.rules.yaml`], tests: trials };
      texts.set(`${path}.tests.yaml`, JSON.stringify(own));
    }
  }
  return texts;
}

describe("generated rules", () => {
  it.each(alertCases.map((given) => [given.name, given] as const))(
    "of %s are taken by promtool",
    async (name, given) => {
      const folder = join(stage.folder, "whole", name);
      writeTexts(folder, given.files);
      const rules = join(folder, "rules/headgate.yaml");
      const { isOk, output } = await runPromtool(stage, ["check", "rules", rules]);
      expect(isOk, output).toBe(true);
    },
  );

  it("are raised when they ought to be, each of every case", async () => {
    const folder = join(stage.folder, "apart");
    const texts = trialsByAlert();
    writeTexts(folder, texts);
    const tests = [...texts.keys()].filter((path) => path.endsWith(".tests.yaml"));
    const paths = tests.map((path) => join(folder, path));
    const { isOk, output } = await runPromtool(stage, ["test", "rules", ...paths]);
    expect(isOk, output).toBe(true);
  });

  it("fail their trials where they are wrong", async () => {
    const { files = new Map<string, string>() } =
      alertCases.find(({ name }) => name === "alerts/limits-only") ?? {};
    const folder = join(stage.folder, "changed");
    const rules = files.get("rules/headgate.yaml") ?? "";
    const changed = rules.replace(/expr: absent\(.*/, "expr: vector(0) > 1");
    const all: TrialFile = parse(files.get("tests/headgate.yaml") ?? "");
    // As written but for those of other alerts, which take promtool seconds.
    const tests = all.tests.filter(
      ({ alert_rule_test: [test] }) => test?.alertname === "HeadgateAbsent",
    );
    const trials = JSON.stringify({ ...all, tests });
    const run = (text: string) => {
      writeTexts(
        folder,
        new Map([
          ["rules/headgate.yaml", text],
          ["tests/headgate.yaml", trials],
        ]),
      );
      return runPromtool(stage, ["test", "rules", join(folder, "tests/headgate.yaml")]);
    };
    const right = await run(rules);
    expect(right.isOk, right.output).toBe(true);
    const { isOk, output } = await run(changed);
    expect(isOk).toBe(false);
    expect(output).toContain("HeadgateAbsent");
  });

  it("raise every alert that there is somewhere", () => {
    const raised = alertCases.flatMap((given) =>
      alertRules(casePolicy(given), defaultGenerateOptions).map(({ alert }) => alert),
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
