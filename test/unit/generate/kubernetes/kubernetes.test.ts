import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  defaultGenerateOptions,
  parseImageName,
} from "../../../../src/generate/base/generate-options.js";
import { generateProblemRows } from "../../../../src/generate/base/generate-problems.js";
import type { GeneratedPolicy } from "../../../../src/generate/base/generator.js";
import { chartVersion } from "../../../../src/generate/kubernetes/chart.js";
import { generateKubernetes, valuesOf } from "../../../../src/generate/kubernetes/kubernetes.js";
import { configMapBytesMax } from "../../../../src/generate/kubernetes/policy-files.js";
import { policyNeeds } from "../../../../src/generate/kubernetes/policy-needs.js";
import { policyOf } from "../../../support/generated.js";

const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n";
const limits = `  rateLimits:
    - {domain: d, descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]}
`;

const digest = `sha256:${"0a".repeat(32)}`;

const options = { ...defaultGenerateOptions, withoutClientCertificates: true };

function policy(spec: string): GeneratedPolicy {
  return policyOf([{ file: "policy.yaml", text: `${head}${spec}` }]);
}

/** A policy whose ConfigMap holds so many bytes. */
function policyOfBytes(bytes: number): GeneratedPolicy {
  const text = `${head}${limits}`;
  const comment = `# ${"x".repeat(bytes - text.length - "policy.yaml".length - 3)}\n`;
  return policyOf([{ file: "policy.yaml", text: `${text}${comment}` }]);
}

describe("generateKubernetes()", () => {
  it("takes a policy as large as a ConfigMap may be, and no larger one", () => {
    const largest = generateKubernetes(policyOfBytes(configMapBytesMax), options);
    expect(largest.problems).toEqual([]);
    expect(largest.documents).not.toEqual([]);
    const larger = generateKubernetes(policyOfBytes(configMapBytesMax + 1), options);
    expect(larger.documents).toEqual([]);
    expect(larger.problems).toMatchObject([{ id: "HG360", severity: "error" }]);
  });

  it.each([
    ["  proxies: {headgate: {port: 8080}}\n", ["headgate", "port"]],
    ["  proxies: {headgate: {controlPort: 8080}}\n", ["headgate", "controlPort"]],
    ["  proxies: {headgate: {port: 8083}}\n", ["headgate", "port"]],
  ])("refuses what pods have for HTTP in %j", (spec, path) => {
    const { problems } = generateKubernetes(policy(`${limits}${spec}`), options);
    expect(problems).toMatchObject([{ id: "HG361", spot: { path } }]);
  });

  it.each([
    ["headgate.headgate.svc.cluster.local", "headgate", []],
    ["headgate-pods.headgate.svc", "headgate", []],
    ["headgate.headgate.svc.cluster.local", "traffic", ["HG362"]],
    ["gate.headgate.svc.cluster.local", "headgate", ["HG362"]],
    // A name of another kind may lead here.
    ["gate.example.com", "headgate", []],
  ])("says of proxies that ask %s, in %s: %j", (address, namespace, ids) => {
    const spec = `${limits}  proxies: {headgate: {address: ${address}}}\n`;
    const { problems } = generateKubernetes(policy(spec), { ...options, namespace });
    expect(problems.map(({ id }) => id)).toEqual(ids);
  });

  it.each([
    ["nothing", "", ["HG364"]],
    ["the server's authority alone", "{caFile: /ca}", ["HG364"]],
    ["a certificate of theirs", "{caFile: /ca, certFile: /crt, keyFile: /key}", []],
  ])("wants it said that proxies show no certificate: %s", (_, tls, ids) => {
    const spec = `${limits}  proxies: {headgate: {${tls && `tls: ${tls}`}}}\n`;
    const { documents, problems } = generateKubernetes(policy(spec), defaultGenerateOptions);
    expect(problems.map(({ id, severity }) => `${severity} ${id}`)).toEqual(
      ids.map((id) => `error ${id}`),
    );
    expect(documents.length === 0).toBe(ids.length > 0);
    expect(generateKubernetes(policy(spec), options).problems).toEqual([]);
  });

  it("asks clients for certificates where proxies have them, and says so to Headgate", () => {
    const tls = "tls: {caFile: /ca, certFile: /crt, keyFile: /key}";
    const made = (spec: string) =>
      JSON.stringify(
        generateKubernetes(policy(`${limits}${spec}`), options).documents.filter(
          ({ path }) => path === "plain/deployment.yaml",
        ),
      );
    const required = "HEADGATE_REQUIRE_CLIENT_CERTIFICATES";
    expect(made(`  proxies: {headgate: {${tls}}}\n`)).toContain(required);
    expect(made("  proxies: {headgate: {tls: {caFile: /ca}}}\n")).not.toContain(required);
  });

  it.each([
    ["registry.example:5000/a/headgate:1.2.3", "registry.example:5000/a/headgate", "1.2.3", ""],
    [`headgate@${digest}`, "headgate", "0.1.0", digest],
    [`headgate:1@${digest}`, "headgate", "1", digest],
  ])("takes the image %s", (text, repository, tag, wanted) => {
    const image = parseImageName(text);
    if (image === undefined) throw new Error("no image");
    const given = policy(limits);
    const values = valuesOf(given, { ...options, image }, policyNeeds(given));
    expect(values.get("image.repository")).toBe(repository);
    expect(values.get("image.tag")).toBe(tag);
    expect(values.get("image.digest")).toBe(wanted);
    const { documents } = generateKubernetes(given, { ...options, image });
    const [kustomization] = documents.filter(({ path }) => path === "plain/kustomization.yaml");
    const name = wanted === "" ? `"newTag":"${tag}"` : `"digest":"${digest}"`;
    expect(JSON.stringify(kustomization?.parts)).toContain(name);
  });

  it.each([
    ["{}", "262144"],
    ["{maxRequestHeadersKb: 8}", "262144"],
    ["{maxRequestHeadersKb: 96}", "393216"],
    // More no message may have.
    ["{maxRequestHeadersKb: 8192}", "1048576"],
  ])("reads messages of whatever headers a listener %s lets in", (listener, bytesMax) => {
    const given = policy(`${limits}  proxies: {listener: ${listener}}\n`);
    const { documents } = generateKubernetes(given, options);
    const [deployment] = documents.filter(({ path }) => path === "plain/deployment.yaml");
    expect(JSON.stringify(deployment?.parts)).toContain(
      `{"name":"HEADGATE_REQUEST_BYTES_MAX","value":"${bytesMax}"}`,
    );
  });

  it.each([
    ["", "no name"],
    ["headgate", "neither tag nor digest"],
    ["headgate@sha256:0a", "a digest that is too short"],
    ["registry.example:5000/headgate", "a port, and no tag"],
    ["Head gate:1", "what no registry takes"],
    ["headgate:1\n", "a line's end"],
  ])("takes no image by %j: %s", (text) => {
    expect(parseImageName(text)).toBeUndefined();
  });

  it("has a row for each problem", () => {
    for (const id of ["HG360", "HG361", "HG362", "HG363", "HG364"]) {
      expect(Object.keys(generateProblemRows)).toContain(id);
    }
  });

  it("makes no path twice, and none that leaves its folder", () => {
    const { documents } = generateKubernetes(policy(limits), options);
    const paths = documents.map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    for (const path of paths) expect(path).toMatch(/^[\w-][\w./-]*$/);
  });
});

describe("policyNeeds()", () => {
  it.each([
    ["limits", limits, { hasSharedState: true, hasControlPort: false }],
    ["none", "  rateLimits: []\n", { hasSharedState: false, hasControlPort: false }],
    [
      "quotas",
      "  rateLimits: [{domain: shop}]\n" +
        "  quotas: [{name: q, domain: shop, bucket: [remote_address], " +
        "rate: {hits: 1, period: 1s}}]\n",
      { hasSharedState: true, hasControlPort: true },
    ],
    [
      "permits",
      "  services: [{name: a, admission: {maxInFlight: 5}}]\n",
      { hasSharedState: true, hasControlPort: false },
    ],
    [
      "statistics",
      "  services: [{name: a, concurrency: {law: gradient, sources: [envoyMetrics]}}]\n",
      { hasSharedState: true, hasControlPort: true },
    ],
    [
      "a backstop that Headgate keeps off",
      "  services: [{name: a, localRateLimit: {requests: 5, when: withoutHeadgate}}]\n",
      { hasSharedState: false, hasControlPort: true },
    ],
  ])("finds of %s what it takes", (_, spec, needs) => {
    expect(policyNeeds(policy(spec))).toMatchObject(needs);
  });
});

describe("chartVersion", () => {
  it("is the package's", () => {
    expect(JSON.parse(readFileSync("package.json", "utf8")).version).toBe(chartVersion);
  });
});
