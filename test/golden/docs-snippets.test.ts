import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { optionNames, optionRow } from "../../src/app/options/options.js";
import { lawNames } from "../../src/core/concurrency/concurrency-laws.js";
import { doctorProblemRows } from "../../src/doctor/doctor-problems.js";
import { generateProblemRows } from "../../src/generate/base/generate-problems.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { problemRows } from "../../src/policy/problems/problem.js";
import { parseScenario } from "../../src/policy/scenario/parse-scenario.js";
import { envoyTool } from "../../src/programs/install.js";
import { type Block, blocksOf, markedBlocks, readPages, referencePage } from "../support/docs.js";
import { readQuery } from "../support/promql.js";
import { runPromtool } from "../support/promtool.js";
import { useStage } from "../support/stage.js";

/**
 * The test that runs a block, by the first word of its mark; each language that a reader copies has
 * one. `text` is what programs print, and diagrams.
 */
const languagesOfMarks: Readonly<Record<string, string>> = {
  // Here.
  policy: "yaml",
  services: "yaml",
  scenario: "yaml",
  promql: "promql",
  scrape: "yaml",
  // test/golden/runbooks.test.ts
  runbook: "promql",
  settings: "sh",
  scripts: "sh",
  "envoy-gateway": "yaml",
  // test/golden/reference.test.ts
  command: "sh",
  // test/e2e/docs.test.ts
  tour: "console",
  operate: "console",
  run: "console",
  cluster: "sh",
  file: "yaml",
  script: "awk",
  serve: "sh",
  diagnose: "sh",
  // test/e2e/limit-tutorial.test.ts
  "log-tour": "console",
  "log-tour-start": "sh",
  // test/e2e/first-hour.test.ts
  install: "sh",
  "first-hour": "console",
  "first-hour-start": "sh",
  "first-hour-edit": "yaml",
  workflow: "yaml",
  "pre-commit": "yaml",
  image: "sh",
  // test/e2e/docs-server.test.ts
  server: "js",
  // test/e2e/library.test.ts
  client: "ts",
  // test/contract/client/adapters-guide.test.ts
  "client-adapter": "ts",
  // test/e2e/sidecar.test.ts
  sidecar: "yaml",
  // test/e2e/doctor.test.ts
  doctor: "console",
  // test/contract/admin-docs.test.ts
  "admin-call": "sh",
  // test/unit/rpc/nodes/node-rules.test.ts
  "node-rules": "sh",
  // test/contract/redis-rights.test.ts, test/e2e/manifests-redis.test.ts
  acl: "text",
};

const blocks = readPages().flatMap(blocksOf);

/** Where a block is, as an editor finds it. */
const placeOf = ({ path, line }: Block): string => `${path}:${line}`;

const withMark = (mark: string): readonly Block[] =>
  blocks.filter((block) => block.mark?.split(" ")[0] === mark);

/** Source: gateway.envoyproxy.io/v1alpha1, EnvoyGateway and KubernetesDeploymentSpec. */
const envoyGatewayShape = z.strictObject({
  apiVersion: z.literal("gateway.envoyproxy.io/v1alpha1"),
  kind: z.literal("EnvoyGateway"),
  provider: z.strictObject({
    type: z.literal("Kubernetes"),
    kubernetes: z.strictObject({
      rateLimitDeployment: z.strictObject({
        container: z.strictObject({
          image: z.string(),
          env: z.array(z.strictObject({ name: z.string(), value: z.string() })),
        }),
      }),
    }),
  }),
});

/** A whole policy around a list of services; what they ask of `shop` is there. */
const withServices = (services: string): string => `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors: [{key: user, rate_limit: {unit: second, requests_per_unit: 20}}]
  services:
${services.replace(/^/gm, "    ")}
`;

const stage = useStage("file");

const knownSettings = new Set(optionNames.map((name) => optionRow(name).env));

/** Pages that are read by users: internals name what a reader of the source knows. */
const userPages = readPages().filter(({ path }) => !/^(ARCHITECTURE|docs\/internals)/.test(path));

/** Words of a kind on all pages for users, each with a page that has it. */
function wordsLike(pattern: RegExp): ReadonlyMap<string, string> {
  const found = userPages.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map(([word]) => [word, path] as const),
  );
  return new Map(found);
}

describe("names in the documentation", () => {
  it("are those of metrics that are there, whole or up to a *", () => {
    const pages = referencePage("metrics.md") + referencePage("library-metrics.md");
    const names = [...pages.matchAll(/`(headgate_\w+)`/g)];
    const known = names.map(([, name = ""]) => name);
    const wrong = [...wordsLike(/\bheadgate_[a-z0-9_]+/g)].filter(([word]) => {
      const name = word.replace(/_(bucket|sum|count)$/, "");
      const isPart = word.endsWith("_");
      return !known.some((one) => one === name || one === word || (isPart && one.startsWith(word)));
    });
    expect(wrong).toEqual([]);
  });

  it("are those of settings that are there", () => {
    const ofAdmin = ["ADMIN_URL", "ADMIN_TOKEN", "ADMIN_CA", "ADMIN_CERT", "ADMIN_KEY"];
    const ofClient = [...ofAdmin, "PROMETHEUS_TOKEN"];
    const known = new Set([...knownSettings, ...ofClient.map((name) => `HEADGATE_${name}`)]);
    const wrong = [...wordsLike(/\bHEADGATE_[A-Z_]+/g)].filter(
      ([word]) => !known.has(word.replace(/_FILE$/, "")) && !word.endsWith("_"),
    );
    expect(wrong).toEqual([]);
  });

  it("are those of problems that are there", () => {
    const known = { ...problemRows, ...generateProblemRows, ...doctorProblemRows };
    const wrong = [...wordsLike(/\bHG\d{3}\b/g)].filter(([id]) => !Object.hasOwn(known, id));
    expect(wrong).toEqual([]);
  });
});

describe("snippets of the documentation", () => {
  it("have a language", () => {
    expect(blocks.filter(({ language }) => language === "").map(placeOf)).toEqual([]);
  });

  it("name the test that runs them", () => {
    const copied = blocks.filter(({ language }) => language !== "text");
    expect(copied.filter(({ mark }) => mark === undefined).map(placeOf)).toEqual([]);
    const wrong = blocks.filter(
      ({ mark, language }) =>
        mark !== undefined && languagesOfMarks[mark.split(" ")[0] ?? ""] !== language,
    );
    expect(wrong.map(placeOf)).toEqual([]);
  });

  it("show policies that are right", () => {
    const policies = withMark("policy");
    expect(policies.length).toBeGreaterThanOrEqual(6);
    for (const block of policies) {
      const parsed = parsePolicy([{ file: placeOf(block), text: block.text }]);
      expect(parsed, placeOf(block)).toMatchObject({ kind: "policy" });
    }
  });

  it("show scenarios that are right", () => {
    const scenarios = withMark("scenario");
    expect(scenarios.length).toBeGreaterThanOrEqual(1);
    for (const block of scenarios) {
      const parsed = parseScenario({ file: placeOf(block), text: block.text });
      expect(parsed, placeOf(block)).toMatchObject({ kind: "scenario" });
    }
  });

  it("show services that a policy takes", () => {
    for (const block of withMark("services")) {
      const parsed = parsePolicy([{ file: placeOf(block), text: withServices(block.text) }]);
      expect(parsed, placeOf(block)).toMatchObject({ kind: "policy" });
    }
  });

  it("show queries that Prometheus reads, of metrics that are there", () => {
    const rows = referencePage("metrics.md").matchAll(/<\/a>`(\w+)` \| \w+ \| ([^|]*) \|/g);
    const labelsOf = new Map(
      [...rows].map(([, name = "", labels = ""]) => [name, labels.match(/\w+/g) ?? []]),
    );
    for (const block of withMark("promql")) {
      for (const line of block.text.split("\n").filter((text) => !/^(#|$)/.test(text))) {
        const { isRight, selectors, grouping } = readQuery(line);
        expect(isRight, `${placeOf(block)} ${line}`).toBe(true);
        expect(selectors.length, line).toBeGreaterThan(0);
        const own = selectors.filter(({ metric }) => metric.startsWith("headgate_"));
        const names = own.map(({ metric }) => metric.replace(/_(bucket|sum|count)$/, ""));
        for (const name of names) expect([...labelsOf.keys()], line).toContain(name);
        if (own.length < selectors.length) continue;
        // Those of the scrape, and of a histogram.
        const common = ["namespace", "job", "instance", "le"];
        const labels = [...common, ...names.flatMap((name) => labelsOf.get(name) ?? [])];
        const wanted = [...grouping, ...own.flatMap((one) => one.labels)];
        expect(labels, `${placeOf(block)} ${line}`).toEqual(expect.arrayContaining(wanted));
      }
    }
  });

  it("show scrapes that Prometheus takes", async () => {
    for (const [i, block] of withMark("scrape").entries()) {
      const path = join(stage.folder, `scrape-${i}.yaml`);
      writeFileSync(path, block.text);
      const { isOk, output } = await runPromtool(stage, ["check", "config", path]);
      expect(isOk, `${placeOf(block)} ${output}`).toBe(true);
    }
  });

  it("say where the demo leaves its Envoy", () => {
    const place = `~/.cache/headgate/${envoyTool.installs[0]?.folder}/bin/envoy`;
    expect(readFileSync("docs/guides/install.md", "utf8")).toContain(`\`${place}\``);
  });

  it("show settings that the process knows", () => {
    for (const block of withMark("settings")) {
      const names = [...block.text.matchAll(/^([A-Z]\w+)=/gm)].map(([, name = ""]) => name);
      expect(names.length, placeOf(block)).toBeGreaterThan(0);
      for (const name of names) {
        expect(knownSettings, placeOf(block)).toContain(name.replace(/_FILE$/, ""));
      }
    }
  });

  it("show scripts that package.json has", () => {
    const { scripts } = z
      .object({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync("package.json", "utf8")));
    for (const block of withMark("scripts")) {
      for (const line of block.text.split("\n").filter((text) => !/^(#|$)/.test(text))) {
        const [, name = ""] = /^npm (?:run )?([\w-]+)(?: |$)/.exec(line) ?? [];
        const own = ["ci", "install"].includes(name);
        expect(own || name in scripts, `${placeOf(block)} ${line}`).toBe(true);
      }
    }
  });

  it("stand beside a list of every concurrency law", () => {
    const page = readFileSync("docs/concepts/admission.md", "utf8");
    for (const name of lawNames) expect(page).toMatch(new RegExp(`^\\| .*\`${name}\`.* \\|`, "m"));
  });

  it("show a setting of Envoy Gateway where it reads it, with names that we read", () => {
    const [block] = markedBlocks("envoy-gateway");
    const { container } = envoyGatewayShape.parse(parse(block?.text ?? "")).provider.kubernetes
      .rateLimitDeployment;
    for (const { name } of container.env) expect(knownSettings).toContain(name);
  });
});
