import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readGenerateOptions } from "../../../../src/cli/generate/generate-flags.js";
import { defaultGenerateOptions } from "../../../../src/generate/base/generate-options.js";
import { type AlertName, alertWords } from "../../../../src/generate/observe/alert-words.js";
import { alertRules, generateAlerts } from "../../../../src/generate/observe/alerts.js";
import { watchedClusters } from "../../../../src/generate/observe/envoy-alerts.js";
import { inhibitRules } from "../../../../src/generate/observe/inhibit-rules.js";
import { sectionOf } from "../../../../src/generate/observe/runbook.js";
import { caseOptions, casePolicy, policyOf } from "../../../support/generated.js";
import { readQuery } from "../../../support/promql.js";
import { recordedTranslation, translatedCases } from "../../../support/translated.js";

const text = readFileSync("test/golden/generate/alerts/everything/policy.yaml", "utf8");
const policy = policyOf([{ file: "policy.yaml", text }]);
const rules = alertRules(policy, { replicas: 3, namespace: "headgate" });

function exprOf(alert: string): string {
  return rules.find((rule) => rule.alert === alert)?.expr ?? "";
}

describe("alertRules()", () => {
  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    "asks for %s what Prometheus can read, and is tried with what it asks for",
    (_, { expr, trial }) => {
      const { isRight, selectors } = readQuery(expr);
      expect(isRight, expr).toBe(true);
      const asked = new Set(selectors.map(({ metric }) => metric));
      const quiet = trial.quiet.map(([series]) => series.split("{")[0] ?? "");
      for (const metric of quiet) expect(asked).toContain(metric);
    },
  );

  it("names in a summary only labels that the alert has", () => {
    for (const { alert, trial } of rules) {
      const { summary } = alertWords[alert];
      for (const [, label = ""] of summary.matchAll(/\$labels\.(\w+)/g)) {
        expect(Object.keys(trial.labels), alert).toContain(label);
      }
    }
  });

  it("knows clusters by the names that they have in each kind of Envoy", () => {
    const upstream = "upstream: {address: orders.shop.svc.cluster.local, port: 8080}";
    const bare = text.replace(
      / {2}services:[\s\S]*/,
      `  services: [{name: orders, ${upstream}}]\n`,
    );
    const [orders] = policyOf([{ file: "policy.yaml", text: bare }]).services;
    expect(orders && watchedClusters(orders, "headgate")).toEqual([
      "orders",
      "outbound|8080||orders.shop.svc.cluster.local",
      "httproute/headgate/orders/rule/0",
    ]);
  });

  it.each(translatedCases().map((given) => [given.name, given] as const))(
    "knows the clusters that Envoy Gateway makes of %s",
    (_, given) => {
      const { namespace } = caseOptions(given);
      const names = casePolicy(given).services.flatMap((service) => {
        return watchedClusters({ ...service, clusters: [] }, namespace);
      });
      const made = recordedTranslation(given).clusters.map((cluster) => String(cluster["name"]));
      const watched = names.filter((name) => name.startsWith("httproute/"));
      expect(watched.length).toBeGreaterThan(0);
      // Beside those of strangers.
      expect(made).toEqual(expect.arrayContaining(watched));
    },
  );

  it("names in the runbook only lines that the log has", () => {
    const folder = "src/app";
    const files = readdirSync(folder, { encoding: "utf8", recursive: true });
    const code = files
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join(folder, name), "utf8"));
    for (const [alert, { means, look, act }] of Object.entries(alertWords)) {
      for (const [, line = ""] of `${means} ${look} ${act}`.matchAll(/log lines? (\w+)/g)) {
        const isLogged = code.some((text) => text.includes(`"${line}"`));
        expect(isLogged, `${alert}: ${line}`).toBe(true);
      }
    }
    expect(alertWords.HeadgateStoreAway.look).toContain("circuitOpened");
  });

  it("keeps quiet what follows from another alert, and never the cause of it in turn", () => {
    const names = [...new Set(rules.map(({ alert }) => alert))];
    const inhibited = inhibitRules(names);
    const pairs = inhibited.map(({ source_matchers: [source], target_matchers: [target] }) => {
      const effects = /^alertname =~ "(.*)"$/.exec(target)?.[1]?.split("|") ?? [];
      return { cause: source.replace("alertname = ", ""), effects };
    });
    const effectsOf = new Map(pairs.map(({ cause, effects }) => [cause, effects]));
    expect(effectsOf.get("HeadgateStoreAway")).toContain("HeadgateFailClosed");
    for (const { cause, effects } of pairs) {
      expect(names).toContain(cause);
      for (const effect of effects) {
        expect(names).toContain(effect);
        expect(effectsOf.get(effect) ?? []).not.toContain(cause);
      }
    }
    // Without a store nothing is inhibited by its absence.
    expect(inhibitRules(["HeadgateStoreFailing"])).toEqual([]);
  });

  it("keeps a critical alert quiet that names another one as its cause", () => {
    const critical = Object.entries(alertWords).filter(([, one]) => one.severity === "critical");
    const names = critical.map(([name]) => name);
    const quiet = inhibitRules(Object.keys(alertWords) as AlertName[]).flatMap(
      ({ source_matchers: [source], target_matchers: [target] }) => {
        const effects = /"(.*)"/.exec(target)?.[1]?.split("|") ?? [];
        return effects.map((effect) => `${effect} by ${source.replace("alertname = ", "")}`);
      },
    );
    for (const [name, { means, look, act }] of critical) {
      const named = names.filter((other) => `${means} ${look} ${act}`.includes(other));
      for (const cause of named) expect(quiet).toContain(`${name} by ${cause}`);
    }
  });

  it("raises of one service no floor of its limit beside a signal past critical", () => {
    const servicesOf = (name: AlertName) =>
      rules.filter(({ alert }) => alert === name).map(({ labels }) => labels?.["service"]);
    const lagging = servicesOf("HeadgateLagCritical");
    expect(lagging.length).toBeGreaterThan(0);
    for (const service of servicesOf("HeadgateLimitAtFloor"))
      expect(lagging).not.toContain(service);
  });

  it("inhibits by labels that both alerts have", () => {
    const labelsOf = (name: string) =>
      rules.filter(({ alert }) => alert === name).map(({ trial }) => Object.keys(trial.labels));
    for (const {
      source_matchers: [source],
      target_matchers: [target],
      equal = [],
    } of inhibitRules(rules.map(({ alert }) => alert))) {
      const effects = /"(.*)"/.exec(target)?.[1]?.split("|") ?? [];
      for (const name of [source.replace("alertname = ", ""), ...effects]) {
        for (const labels of labelsOf(name)) {
          // A namespace is there where Prometheus has one; a trial has none.
          for (const label of equal.filter((one) => one !== "namespace")) {
            expect(labels, name).toContain(label);
          }
        }
      }
    }
  });

  it("takes thresholds from the policy", () => {
    expect(exprOf("HeadgateReplicasMissing")).toContain("< 3");
    expect(exprOf("HeadgateDecisionsSlow")).toContain("> 0.01");
    expect(exprOf("HeadgateLimitAtFloor")).toContain("<= 10");
    expect(exprOf("HeadgateLagCritical")).toContain('key!~"ledger"}) >= 100000');
    expect(exprOf("HeadgateLagCritical")).toContain('key="ledger"}) >= 20000');
  });

  it("raises nothing about what the policy does not have", () => {
    const bare = policyOf([{ file: "policy.yaml", text: "domain: shop\n" }]);
    const names = alertRules(bare, { replicas: 1, namespace: "headgate" }).map(
      ({ alert }) => alert,
    );
    expect(names.filter((name) => name.startsWith("Envoy"))).toEqual([]);
    expect(names).not.toContain("HeadgateNearLimit");
    expect(names).not.toContain("HeadgateReplicasMissing");
    expect(names).not.toContain("HeadgateFailOpen");
    expect(names).not.toContain("HeadgateNoLeader");
  });
});

describe("generateAlerts()", () => {
  it("leads from each alert to its section of the runbook", () => {
    const runbookUrl = "https://runbooks.example/headgate";
    const { documents } = generateAlerts(policy, { ...defaultGenerateOptions, runbookUrl });
    const rendered = JSON.stringify(documents[0]?.parts);
    const runbook = String(documents.find(({ path }) => path === "runbook.md")?.parts[0]);
    for (const { alert } of rules) {
      expect(rendered).toContain(`${runbookUrl}#${sectionOf(alert)}`);
      expect(runbook).toContain(`\n## ${alert}\n`);
    }
  });

  it("leads from each alert to its own page where the URL has a place for its name", () => {
    const runbookUrl = "https://docs.example/runbooks/*.md";
    const { documents } = generateAlerts(policy, { ...defaultGenerateOptions, runbookUrl });
    const rendered = JSON.stringify(documents[0]?.parts);
    for (const { alert } of rules) {
      expect(rendered).toContain(`"https://docs.example/runbooks/${alert}.md"`);
    }
  });
});

describe("--runbook-url", () => {
  const flags = {
    envoyVersion: "1.40",
    istioVersion: "1.30",
    gatewayVersion: "1.6",
    form: "bootstrap",
    role: "both",
    namespace: "headgate",
    replicas: "2",
    output: "text",
  } as const;

  it("is taken as it is, and refused where it is none or has a section already", () => {
    const read = (runbookUrl: string) =>
      readGenerateOptions("alerts", { ...flags, runbookUrl }, () => false);
    expect(read("https://runbooks.example/a?b=c")).toMatchObject({
      kind: "value",
      value: { options: { runbookUrl: "https://runbooks.example/a?b=c" } },
    });
    for (const wrong of ["", "runbook.md", "javascript:1", "https://a/#b", "https://a/{{x}}"]) {
      expect(read(wrong).kind, wrong).toBe("problem");
    }
  });
});
