import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { defaultGenerateOptions } from "../../../../src/generate/base/generate-options.js";
import type { GeneratedPolicy } from "../../../../src/generate/base/generator.js";
import { plainTree } from "../../../../src/generate/base/plain-tree.js";
import { gridColumns } from "../../../../src/generate/observe/dashboard.js";
import { generateDashboards, uidCharsMax } from "../../../../src/generate/observe/dashboards.js";
import { rulePanelsMax } from "../../../../src/generate/observe/domain-dashboard.js";
import { keyPanelsMax } from "../../../../src/generate/observe/service-dashboard.js";
import { type DashboardText, dashboardShape, drawGrid } from "../../../support/dashboard-grid.js";
import { policyOf } from "../../../support/generated.js";
import { readQuery } from "../../../support/promql.js";

const everything = "test/golden/generate/dashboards/everything/policy.yaml";

function dashboardsOf(
  policy: GeneratedPolicy,
  runbookUrl?: string,
): ReadonlyMap<string, DashboardText> {
  const options = runbookUrl === undefined ? {} : { runbookUrl };
  const made = generateDashboards(policy, { ...defaultGenerateOptions, ...options });
  expect(made.problems).toEqual([]);
  return new Map(
    made.documents.map(({ path, parts: [part = ""] }) => {
      return [path, dashboardShape.parse(plainTree(part))];
    }),
  );
}

function policyText(spec: string): GeneratedPolicy {
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: test}\nspec:\n";
  return policyOf([{ file: "policy.yaml", text: `${head}${spec}` }]);
}

const whole = dashboardsOf(
  policyOf([{ file: "policy.yaml", text: readFileSync(everything, "utf8") }]),
);

describe("generateDashboards()", () => {
  it("draws one page for the fleet, each domain, service and room, and Envoys", () => {
    expect([...whole.keys()]).toEqual([
      "fleet.json",
      "domain-shop.json",
      "domain-idle.json",
      "service-orders.json",
      "service-linearizer.json",
      "service-search.json",
      "room-drop.json",
      "envoy.json",
    ]);
  });

  it.each([...whole])("places the panels of %s beside each other, within the grid", (_, page) => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of page.panels) {
      const { x, y, w, h } = gridPos;
      expect(x + w, title).toBeLessThanOrEqual(gridColumns);
      for (let column = x; column < x + w; column += 1) {
        for (let row = y; row < y + h; row += 1) {
          const cell = `${column} ${row}`;
          expect(taken.get(cell), `${title} lies on another panel`).toBeUndefined();
          taken.set(cell, title);
        }
      }
    }
    expect(drawGrid(page)).toContain(page.panels[0]?.title);
  });

  it.each([...whole])("asks nothing in %s that Prometheus cannot read", (_, page) => {
    const choices = page.templating.list.map(({ name }) => name);
    for (const { title, targets, datasource } of page.panels) {
      if (targets.length > 0) expect(datasource?.uid, title).toBe(`${"$"}{datasource}`);
      for (const { expr, legendFormat } of targets) {
        const { isRight, selectors, grouping } = readQuery(expr);
        expect(isRight, expr).toBe(true);
        expect(selectors.length, expr).toBeGreaterThan(0);
        // A legend names what the query keeps apart.
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
          expect(grouping, `${title}: ${legendFormat}`).toContain(label);
        }
        for (const [, name = ""] of expr.matchAll(/\$(?!__|\d)(\w+)/g)) {
          expect(choices, expr).toContain(name);
        }
      }
    }
  });

  it("gives panels ids that stay, and pages ids that Grafana takes", () => {
    const uids = [...whole.values()].map(({ uid }) => uid);
    expect(new Set(uids).size).toBe(uids.length);
    for (const { uid, panels } of whole.values()) {
      expect(uid).toMatch(/^[a-z0-9-]+$/);
      expect(uid.length).toBeLessThanOrEqual(uidCharsMax);
      expect(panels.map(({ id }) => id)).toEqual(panels.map((_, index) => index + 1));
    }
  });

  it("says which policy made a page, and where the runbook is", () => {
    const policy = policyText("  rateLimits: [{domain: shop}]\n");
    const [page] = dashboardsOf(policy, "https://runbooks.example/headgate").values();
    expect(page?.description).toContain(`from policy test, hash ${policy.hash}`);
    expect(page?.links).toContainEqual({
      title: "Runbook",
      url: "https://runbooks.example/headgate",
    });
    const [apart] = dashboardsOf(policy, "https://docs.example/runbooks/*.md").values();
    expect(apart?.links).toContainEqual({
      title: "Runbook",
      url: "https://docs.example/runbooks/",
    });
    const [without] = dashboardsOf(policy).values();
    expect(without?.links.map(({ title }) => title)).toEqual(["Headgate"]);
  });

  it("tells apart what looks the same in a path", () => {
    const names = ["a.b", "a_b", "A.B", "..", "ünder/way", "x".repeat(200), `${"x".repeat(199)}y`];
    const domains = names.map((name) => `    - {domain: ${JSON.stringify(name)}}`).join("\n");
    const pages = dashboardsOf(policyText(`  rateLimits:\n${domains}\n`));
    expect(pages.size).toBe(1 + names.length);
    expect(new Set([...pages.values()].map(({ uid }) => uid)).size).toBe(pages.size);
  });

  it(`gives ${rulePanelsMax} rules a panel, and leaves others to the top lists`, () => {
    const rules = Array.from({ length: rulePanelsMax + 1 }, (_, index) => {
      return `        - {key: k${index}, rate_limit: {unit: second, requests_per_unit: 1}}`;
    });
    const text = `  rateLimits:\n    - domain: shop\n      descriptors:\n${rules.join("\n")}\n`;
    const page = dashboardsOf(policyText(text)).get("domain-shop.json");
    const titles = page?.panels.map(({ title }) => title) ?? [];
    expect(titles).toContain(`k${rulePanelsMax - 1}`);
    expect(titles).not.toContain(`k${rulePanelsMax}`);
    expect(titles).toContain("The first 60 of 61 rules with limits");
  });

  it(`gives ${keyPanelsMax} keys of a signal a panel of their own`, () => {
    const names = Array.from({ length: keyPanelsMax + 1 }, (_, index) => `db${index}`);
    const rows = names.map((name) => `{name: ${name}, target: 1, critical: 2}`);
    const page = dashboardsOf(
      policyText(
        `  services:
    - name: linearizer
      concurrency:
        law: signal
        per: {header: x-database, names: [${names.join(", ")}]}
        signal: {fixed: 1, thresholds: [${rows.join(", ")}]}
`,
      ),
    ).get("service-linearizer.json");
    const titles = page?.panels.map(({ title }) => title) ?? [];
    expect(titles).toContain(`Reading of db${keyPanelsMax - 1}`);
    expect(titles).not.toContain(`Reading of db${keyPanelsMax}`);
  });
});
