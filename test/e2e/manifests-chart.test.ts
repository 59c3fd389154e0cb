import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import type { Tree } from "../../src/generate/base/document.js";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import type { GeneratedPolicy } from "../../src/generate/base/generator.js";
import { plainTree } from "../../src/generate/base/plain-tree.js";
import { renderDocument } from "../../src/generate/base/render.js";
import { chartDocuments } from "../../src/generate/kubernetes/chart.js";
import { valuesOf } from "../../src/generate/kubernetes/kubernetes.js";
import { objectFiles } from "../../src/generate/kubernetes/objects.js";
import { policyNeeds } from "../../src/generate/kubernetes/policy-needs.js";
import { type ValueName, valueNames, valueRow } from "../../src/generate/kubernetes/value-rows.js";
import {
  holds,
  type KubernetesValues,
  LiteralSource,
} from "../../src/generate/kubernetes/value-source.js";
import { valuesSchema } from "../../src/generate/kubernetes/values-schema.js";
import { caseOptions, casePolicy, generatedCases } from "../support/generated.js";
import { renderChart, runHelm } from "../support/helm.js";
import { objectProblems, readSchemas } from "../support/object-schemas.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");
const schemas = readSchemas();
let folderCount = 0;
const namespace = "traffic";

/** Golden cases of which something is made. */
const cases = generatedCases().filter(
  ({ target, name }) => target === "kubernetes" && name !== "kubernetes/ports-clash",
);
const [someCase = expect.fail("there is no case")] = cases;

async function writeChart(policy: GeneratedPolicy, values: KubernetesValues): Promise<string> {
  folderCount += 1;
  const folder = join(stage.folder, `generated-${folderCount}`);
  for (const document of chartDocuments(policy, values)) {
    const file = join(folder, document.path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, renderDocument(document, { target: "kubernetes", policy }));
  }
  return join(folder, "chart");
}

/** What the plain manifests would hold with these values. */
function plainObjects(values: KubernetesValues): readonly unknown[] {
  const source = new LiteralSource(namespace, values);
  return objectFiles
    .filter(({ condition }) => condition === undefined || holds(condition, values))
    .flatMap(({ build }) => build(source).map(plainTree));
}

function nested(given: Readonly<Partial<Record<ValueName, Tree>>>): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const [group = "", member] = name.split(".");
    if (member === undefined) values[group] = value;
    else values[group] = { ...Object(values[group]), [member]: value };
  }
  return values;
}

/** As Helm merges them: names of a map are added to the chart's own. */
function mergedValues(
  usual: KubernetesValues,
  given: Readonly<Partial<Record<ValueName, Tree>>>,
): KubernetesValues {
  const merged = [...usual].map(([name, before]): [ValueName, Tree] => {
    const value = given[name];
    if (value === undefined) return [name, before];
    const isMap = typeof value === "object" && !Array.isArray(value);
    return [name, isMap ? { ...Object(before), ...value } : value];
  });
  return new Map(merged);
}

function byKind(objects: readonly unknown[]): readonly unknown[] {
  const nameOf = (one: unknown) => {
    const { kind, metadata } = Object(one);
    return `${kind} ${Object(metadata).name}`;
  };
  return [...objects].sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

/** Everything that has a condition or a form of its own, on and off. */
const choices: Readonly<Record<string, Readonly<Partial<Record<ValueName, Tree>>>>> = {
  "what is usual": {},
  "another name, image and number of replicas": {
    name: "gate-7",
    "image.repository": "registry.example:5000/team/headgate",
    "image.tag": "1.2.3",
    "image.pullPolicy": "Always",
    "replicas.min": 3,
    "replicas.max": 30,
    "replicas.cpuPercent": 50,
    imagePullSecrets: [{ name: "registry" }, { name: "mirror" }],
  },
  "everything off": {
    "autoscaling.enabled": false,
    "redis.enabled": false,
    "controlPort.enabled": false,
    "tls.enabled": false,
    "networkPolicy.enabled": false,
    "serviceMonitor.enabled": false,
  },
  "everything on": {
    "autoscaling.enabled": true,
    "redis.enabled": true,
    "controlPort.enabled": true,
    "tls.enabled": true,
    "tls.clientCertificates": true,
    "certManager.enabled": true,
    "networkPolicy.enabled": true,
    "serviceMonitor.enabled": true,
    "serviceMonitor.labels": { release: "kube-prometheus" },
    prometheusUrl: "http://prometheus.monitoring.svc:9090",
  },
  "an image by its digest": { "image.digest": `sha256:${"0a".repeat(32)}` },
  "a certificate of cert-manager": {
    name: "gate-7",
    "certManager.enabled": true,
    "certManager.issuer": { name: "mesh", kind: "ClusterIssuer", group: "cert-manager.io" },
    "tls.serverName": "headgate.shop",
  },
  "odd numbers and times": {
    "drain.delayMs": 1,
    "drain.graceMs": 600_000,
    memoryMi: 65_535,
    requestBytesMax: 1_048_576,
    cpu: "1.5",
    connectionAge: "1h30m",
    "ports.grpc": 9_081,
    "ports.control": 9_018,
    "redis.port": 6_380,
  },
  "texts that look like something else": {
    name: "no",
    "image.tag": "1e3",
    "redis.podLabels": { app: "true", tier: "7" },
    podAnnotations: { note: "{{ not for Helm }} # and no comment: \"'" },
    policy: { "a.yaml": 'x: "{{ .Values }}"\n\n# end\n', "b.yml": "" },
  },
  "where pods are, and what they are told": {
    nodeSelector: { disk: "fast" },
    tolerations: [{ key: "dedicated", operator: "Exists", effect: "NoSchedule" }],
    affinity: { podAntiAffinity: {} },
    priorityClassName: "system-cluster-critical",
    extraEnv: [{ name: "NEAR_LIMIT_RATIO", value: "0.9" }],
    "networkPolicy.extraEgress": [{ to: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }],
    "networkPolicy.clientLabels": { team: "edge", stage: "live" },
  },
};

/** What would be YAML, or a template, where texts were put in as they are. */
const hostileTexts = [
  "x\n  hostNetwork: true",
  "x\r\n---\nkind: Secret",
  '"}}{{ fail "x" }}{{ "',
  '{{ .Files.Get "values.yaml" }}',
  "a: b # c",
  "'\"`\\",
  "*a",
  "!!binary x",
  "$HOME $(id)",
  "\u00a0é",
];

describe.concurrent("the chart", () => {
  it.each(cases.map((given) => [given.name, given] as const))(
    "installs for %s what the plain manifests do, and all of it is of the API",
    async (_name, given) => {
      const policy = casePolicy(given);
      const values = valuesOf(policy, caseOptions(given), policyNeeds(policy));
      const folder = await writeChart(policy, values);
      const { run, objects } = await renderChart(stage, { folder, namespace, values: {} });
      expect(run.isOk, run.output).toBe(true);
      expect(byKind(objects)).toEqual(byKind(plainObjects(values)));
      for (const object of objects) expect(objectProblems(schemas, object)).toEqual([]);
    },
  );

  it.each(Object.entries(choices))("and the manifests stay equal with %s", async (_, given) => {
    const policy = casePolicy(someCase);
    const usual = valuesOf(policy, defaultGenerateOptions, policyNeeds(policy));
    const folder = await writeChart(policy, usual);
    const merged = mergedValues(usual, given);
    const wanted = { folder, namespace, values: nested(given) };
    const { run, objects } = await renderChart(stage, wanted);
    expect(run.isOk, run.output).toBe(true);
    expect(byKind(objects)).toEqual(byKind(plainObjects(merged)));
    for (const object of objects) expect(objectProblems(schemas, object)).toEqual([]);
  });

  it("takes hostile values for what they are, in names and in texts, or refuses them", async () => {
    const policy = casePolicy(someCase);
    const usual = valuesOf(policy, defaultGenerateOptions, policyNeeds(policy));
    const folder = await writeChart(policy, usual);
    const validate = new Ajv({ strict: false }).compile(plainTree(valuesSchema()) as object);
    const named = Object.fromEntries(hostileTexts.map((text, index) => [`n${index}`, text]));
    const given: Partial<Record<ValueName, Tree>> = {};
    for (const name of valueNames) {
      const { kind } = valueRow(name);
      if (kind === "number" || kind === "switch") continue;
      if (kind === "texts") {
        for (const text of hostileTexts) {
          expect(validate(nested({ [name]: { [text]: "x" } })), `${name}: ${text}`).toBe(false);
        }
      }
      const values = kind === "text" ? hostileTexts : kind === "list" ? [[named]] : [named];
      for (const value of values) if (validate(nested({ [name]: value }))) given[name] = value;
    }
    // Every free text and map is among them.
    expect(Object.keys(given)).toEqual(
      expect.arrayContaining(["podAnnotations", "policy", "extraEnv", "affinity", "tolerations"]),
    );
    for (const switched of ["serviceMonitor.enabled", "networkPolicy.enabled"] as const) {
      given[switched] = true;
    }
    const { run, objects } = await renderChart(stage, { folder, namespace, values: nested(given) });
    expect(run.isOk, run.output).toBe(true);
    expect(byKind(objects)).toEqual(byKind(plainObjects(mergedValues(usual, given))));
  });

  it.each([
    ["says what Redis has to keep on a disk", { redis: { enabled: true } }, true],
    ["says nothing of a Redis that it has not", { redis: { enabled: false } }, false],
  ])("%s", async (_, values, isSaid) => {
    const policy = casePolicy(someCase);
    const usual = valuesOf(policy, defaultGenerateOptions, policyNeeds(policy));
    const folder = await writeChart(policy, usual);
    // Notes are shown by an installation alone, so an object that says the same stands for them.
    await copyFile(join(folder, "templates", "NOTES.txt"), join(folder, "notes.txt"));
    const shown = 'kind: Notes\ntext: {{ tpl (.Files.Get "notes.txt") . | quote }}\n';
    await writeFile(join(folder, "templates", "notes.yaml"), shown);
    const { run, objects } = await renderChart(stage, { folder, namespace, values });
    expect(run.isOk, run.output).toBe(true);
    const { text } = Object(objects.find((one) => Object(one).kind === "Notes"));
    const words =
      "(overrides, freezes, the policy with HEADGATE_POLICY_SOURCE=store, the audit log)";
    const persistence = `${words}. Run it with \`appendonly yes\` and a persistent volume.`;
    expect(String(text).replaceAll(/\s+/g, " ").includes(persistence)).toBe(isSaid);
  });

  it("has nothing that Helm's linter would change, but an icon", async () => {
    const { folder } = someCase;
    const { isOk, output } = await runHelm(stage, ["lint", join(folder, "expected", "chart")]);
    expect(isOk, output).toBe(true);
    expect(output).toContain("icon is recommended");
    expect(output).not.toMatch(/warning|error(?!.*failed)/i);
  });

  it.each([
    ["replicas", { replicas: { min: "three" } }],
    ["a name that no object may have", { name: "Head_Gate" }],
    ["a value that there is none of", { replcas: { min: 3 } }],
    ["another one, deeper", { drain: { delay: 3 } }],
    ["a port above the last one", { ports: { grpc: 65_536 } }],
    ["less memory than a process needs", { memoryMi: 128 }],
    ["a policy that is no map", { policy: "x" }],
    ["a digest that is none", { image: { digest: "sha256:0a" } }],
    ["a label that is no text", { redis: { podLabels: { app: 7 } } }],
  ] as const)("refuses %s", async (_, values) => {
    const chart = join(someCase.folder, "expected", "chart");
    const { run } = await renderChart(stage, { folder: chart, namespace, values });
    expect(run.isOk).toBe(false);
    expect(run.output).toMatch(/schema/);
  });
});
