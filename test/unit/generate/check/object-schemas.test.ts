import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { formatJsonPath } from "../../../../src/generate/base/check-problem.js";
import { defaultGenerateOptions } from "../../../../src/generate/base/generate-options.js";
import { type PlainValue, plainTree } from "../../../../src/generate/base/plain-tree.js";
import { generateCase, generatedCases } from "../../../support/generated.js";
import { readSchemas } from "../../../support/object-schemas.js";

const schemas = readSchemas();

/** One of each kind of object that is generated, from the golden cases; newest versions. */
const kinds = new Map<string, PlainValue>();
for (const given of generatedCases()) {
  for (const { kind, parts } of generateCase(given, { looks: [] }).documents) {
    if (kind.format !== "yaml" || kind.is !== "kubernetes") continue;
    for (const object of parts.map(plainTree)) kinds.set(String(Object(object)["kind"]), object);
  }
}

function problemsOf(object: unknown, versions = defaultGenerateOptions): readonly string[] {
  const plain: PlainValue = JSON.parse(JSON.stringify(object));
  return schemas.problems(plain, versions).map(({ id, path, message }) => {
    return `${id} ${formatJsonPath(path)}: ${message}`;
  });
}

/** Where most objects say what they are for. */
function bodyOf(object: PlainValue): string {
  return ["spec", "data", "metadata"].find((name) => Object.hasOwn(Object(object), name)) ?? "";
}

describe("the schemas that ship", () => {
  it.each([
    ["kubernetes.jsonl", "test/support/kubernetes-schemas.mjs"],
    ["custom-resources.jsonl", "test/support/custom-resource-schemas.mjs"],
  ])("%s is as %s writes it", (name, maker) => {
    const lines = readFileSync(`src/generate/check/schemas/${name}`, "utf8").split("\n");
    expect(lines.pop()).toBe("");
    expect(lines).toEqual(lines.toSorted());
    for (const line of lines) expect(JSON.stringify(JSON.parse(line))).toBe(line);
    expect(readFileSync(maker, "utf8")).toContain(`schemas/${name}`);
    // What only people read stays out.
    expect(lines.join("\n")).not.toContain('"description":"');
  });
});

describe("ObjectSchemas", () => {
  it("has golden objects of every kind that matters", () => {
    expect([...kinds.keys()].sort()).toEqual(
      expect.arrayContaining([
        ...["BackendTrafficPolicy", "ClientTrafficPolicy", "EnvoyExtensionPolicy"],
        ...["EnvoyPatchPolicy", "EnvoyProxy", "DestinationRule", "EnvoyFilter"],
        ...["VirtualService", "ConfigMap", "Deployment", "HorizontalPodAutoscaler"],
        ...["NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceMonitor"],
      ]),
    );
  });

  it.each([...kinds])("takes a %s, and finds one field of it that is wrong", (_, object) => {
    expect(problemsOf(object)).toEqual([]);
    const body = bodyOf(object);
    const wrong = { ...Object(object), [body]: "text" };
    expect(problemsOf(wrong)).toEqual([`HG456 ${body}: must be object`]);
    const unknown = { ...Object(object), speck: 1 };
    expect(problemsOf(unknown)).toEqual(['HG456 speck: "speck" is not a field of its API here']);
  });

  it("says what is missing, what is of another type, and what may be there", () => {
    const metadata = { name: "a", namespace: "b" };
    const rule = {
      apiVersion: "networking.istio.io/v1",
      kind: "DestinationRule",
      metadata,
      spec: { trafficPolicy: { loadBalancer: { simple: "SOMETIMES" } }, host: 1 },
    };
    expect(problemsOf(rule)).toEqual(
      expect.arrayContaining([
        "HG456 spec.host: must be string",
        "HG456 spec.trafficPolicy.loadBalancer.simple: the value is not one that its API allows",
      ]),
    );
    const service = { apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{}] } };
    expect(problemsOf(service)).toEqual(['HG456 spec.ports[0]: "port" is missing']);
  });

  it("holds names of objects against what a cluster takes", () => {
    const metadata = { name: "Not_This", namespace: "b" };
    const object = { apiVersion: "networking.istio.io/v1", kind: "Sidecar", metadata, spec: {} };
    expect(problemsOf(object)).toEqual([
      expect.stringMatching(/^HG456 metadata.name: must match pattern/),
    ]);
  });

  it("goes by the newest release that is no newer than what is generated for", () => {
    const object = {
      apiVersion: "networking.istio.io/v1",
      kind: "DestinationRule",
      metadata: { name: "a", namespace: "b" },
      spec: { host: "a", trafficPolicy: { retryBudget: { percent: 20 } } },
    };
    expect(problemsOf(object)).toEqual([]);
    const old = { ...defaultGenerateOptions, istioVersion: { major: 1, minor: 26 } };
    expect(problemsOf(object, old)).toEqual([
      'HG456 spec.trafficPolicy.retryBudget: "retryBudget" is not a field of its API here',
    ]);
  });

  it.each([
    ["v1", "Wrong"],
    ["v2", "Service"],
    ["networking.istio.io/v2", "Sidecar"],
    ["gateway.envoyproxy.io/v1alpha1", "Wrong"],
  ])("has no %s %s", (apiVersion, kind) => {
    expect(problemsOf({ apiVersion, kind })).toEqual([
      `HG456 kind: "${apiVersion}" has no kind "${kind}"`,
    ]);
    expect(problemsOf("text")).toHaveLength(1);
  });

  it("holds each object to all that its API says, whatever objects before it had", () => {
    // Of a schema only what an object has is compiled.
    const ruleOf = (spec: object) => ({
      apiVersion: "networking.istio.io/v1",
      kind: "DestinationRule",
      metadata: { name: "a", namespace: "b" },
      spec: { host: "a", ...spec },
    });
    expect(problemsOf(ruleOf({}))).toEqual([]);
    expect(problemsOf(ruleOf({ subsets: [{ name: "a" }, { labels: { a: 1 } }] }))).toEqual([
      'HG456 spec.subsets[1]: "name" is missing',
      "HG456 spec.subsets[1].labels.a: must be string",
    ]);
    const lb = { simple: "RANDOM", consistentHash: { useSourceIp: true } };
    expect(problemsOf(ruleOf({ trafficPolicy: { loadBalancer: lb } }))).not.toEqual([]);
    expect(problemsOf(ruleOf({ subsets: [] }))).toEqual([]);
    expect(problemsOf({ ...ruleOf({}), metadata: { namespace: "b" } })).toEqual([
      'HG456 metadata: "name" is missing',
    ]);
  });

  it("unescapes names of a path", () => {
    const metadata = { name: "a", namespace: "b", labels: { "a/b~c": 1 } };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata };
    expect(problemsOf(object)).toEqual(['HG456 metadata.labels["a/b~c"]: must be string']);
  });
});
