import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { targetNames } from "../../../../src/generate/targets.js";
import { captureCli } from "../../../support/cli.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-nonsense-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = "upstream: {address: orders.shop.svc.cluster.local, port: 8080}";
const driven = "concurrency: {law: gradient, limits: {max: 400}, feedback: [circuitBreakers]}";
const tls = "tls: {caFile: /ca, certFile: /crt, keyFile: /key}";

/** Lines of a policy's `spec`. */
const limits = "rateLimits: [{domain: shop}]";
const service = (more: string) => `services: [{name: orders, ${at}, ${more}}]`;
const proxies = (more: string) => `services: [{name: orders, ${at}}]\n  proxies: {${more}}`;
const listeners = (more: string) => proxies(`gateway: {listeners: [${more}]}`);

/** Nonsense in a policy, and what is said of it. */
const policies: readonly (readonly [target: string, spec: string, reported: string])[] = [
  ["envoy", "services: []", "HG304 the policy has no services"],
  ["envoy", "services: [{name: orders}]", "HG301 the service has no upstream"],
  [
    "envoy",
    "services: [{name: orders, upstream: {address: 10.0.0.300, port: 80}}]",
    'HG222 "10.0.0.300" is not a host',
  ],
  [
    "envoy",
    "services: [{name: orders, upstream: {address: orders, port: 70000}}]",
    'HG141 "70000" is out of range',
  ],
  ["envoy", service("timeouts: {request: -1s}"), 'HG201 "-1s" is not a duration'],
  ["envoy", proxies("listener: {address: localhost}"), "HG305 proxies do not resolve the address"],
  ["envoy", proxies("listener: {port: 9901}"), "HG240 adminPort and port are both 9901"],
  [
    "istio",
    "services: [{name: orders, upstream: {address: orders, port: 80}}]",
    "HG340 Istio identifies services by full host names",
  ],
  ["istio", service(driven), "HG345 Headgate cannot drive the breaker of the service's sidecar"],
  ["istio", service("workload: {labels: [app]}"), "HG124 this is a list"],
  [
    "istio",
    proxies("headgate: {address: 10.0.0.1}"),
    "HG342 Istio names clusters by full host names",
  ],
  ["istio", proxies("gateway: {labels: {}}"), 'HG160 "labels" of 0 labels'],
  [
    "istio",
    proxies("gateway: {labels: {app: an edge}}"),
    'HG246 "an edge" is not a label\'s value',
  ],
  [
    "gateway",
    service("localRateLimit: {requests: 5}"),
    "HG343 localRateLimit applies to the virtual hosts",
  ],
  [
    "gateway",
    service("hosts: [a.test], localRateLimit: {requests: 5}"),
    "HG367 the Gateway's listeners are not named",
  ],
  [
    "gateway",
    service("outlierDetection: {successRate: {}}"),
    "HG351 Envoy Gateway's passive health checks do not support successRate",
  ],
  ["gateway", service("upgrades: []"), "HG359 Envoy Gateway allows websocket"],
  ["gateway", listeners("{name: http}"), 'HG125 "port" is missing'],
  ["gateway", listeners("{name: http, port: 0}"), 'HG141 "0" is out of range'],
  ["gateway", proxies("gateway: {nmae: edge}"), "did you mean: name"],
  [
    "gateway",
    proxies("overload: {maxConnections: 5}"),
    "HG356 Envoy Gateway limits the connections",
  ],
  ["kubernetes", limits, "HG364 proxies present no certificate"],
  [
    "kubernetes",
    proxies(`headgate: {port: 8080, ${tls}}`),
    "HG361 port 8080 of the pods is already used",
  ],
  [
    "kubernetes",
    proxies(`headgate: {port: 7, controlPort: 7, ${tls}}`),
    "HG240 decisions and control cannot both use port 7",
  ],
  ["alerts", proxies("runbookUrl: wiki"), "HG227 this is not a URL"],
  ["alerts", proxies("runbookURL: wiki"), "did you mean: runbookUrl"],
  ["alerts", "alerts: all", 'HG120 "alerts" is unknown in spec'],
  ["dashboards", "services: {orders: {}}", "expected: a list of services"],
  ["dashboards", service("hosts: [a..b]"), '"a..b" is not a host'],
  ["dashboards", "services: [{name: -orders-}]", '"-orders-" is not a name'],
  ["dashboards", "&", "policy.yaml:5:"],
];

/** Nonsense on the command line. */
const flags: readonly (readonly [target: string, flags: readonly string[], reported: string])[] = [
  ["envoy", ["--envoy-version", "2.0"], "--envoy-version must be a version from 1.30 to 1.40"],
  ["envoy", ["--role", "gateway"], "Allowed choices are sidecar, edge, both"],
  ["envoy", ["--form", "whole"], "Allowed choices are bootstrap, fragments"],
  ["istio", ["--istio-version", "1.7"], "--istio-version must be a version from 1.22 to 1.31"],
  ["istio", ["--namespace", "Shop"], "--namespace must be a valid Kubernetes name"],
  ["istio", ["--image", "headgate:1"], "istio ignores it"],
  ["istio", ["--form", "fragments"], "istio ignores it"],
  ["istio", ["--with"], "option '--with <FILE>' argument missing"],
  ["envoy", ["--with", "vs.yaml"], "--with applies to istio, gateway; envoy ignores it"],
  ["gateway", ["--gateway-version", "v0.9"], "--gateway-version must be a version from 1.2 to 1.9"],
  ["gateway", ["--image", "Head gate:1"], "--image must be a name with a tag, or with a digest"],
  ["kubernetes", ["--replicas", "0"], "--replicas must be from 1 to 1000"],
  ["kubernetes", ["--replicas", "2.5"], "--replicas must be from 1 to 1000"],
  ["kubernetes", ["--replicas", "9999999999"], "--replicas must be from 1 to 1000"],
  ["kubernetes", ["--namespace", "kube_system"], "--namespace must be a valid Kubernetes name"],
  ["kubernetes", ["--image", "headgate"], "--image must be a name with a tag, or with a digest"],
  ["kubernetes", ["--form", "fragments"], "kubernetes ignores it"],
  ["kubernetes", ["--helm"], "unknown option '--helm'"],
  ["alerts", ["--runbook-url", "ftp://wiki.test"], "--runbook-url must be an http or https URL"],
  ["alerts", ["--runbook-url", "https://wiki.test/#a"], "URL without a fragment"],
  ["alerts", ["--replicas", "-1"], "--replicas must be from 1 to 1000"],
  ["alerts", ["--namespace", ""], "--namespace must be a valid Kubernetes name"],
  ["alerts", ["--image", "headgate:1"], "alerts ignores it"],
  ["alerts", ["--istio-version", "1.30"], "alerts ignores it"],
  ["alerts", ["--check"], "set --out"],
  ["dashboards", ["--namespace", "shop"], "dashboards ignores it"],
  ["dashboards", ["--replicas", "3"], "dashboards ignores it"],
  ["dashboards", ["--runbook-url", "wiki"], "--runbook-url must be an http or https URL"],
  ["dashboards", ["-o", "yaml"], "Allowed choices are text, json"],
  ["dashboards", ["--check"], "set --out"],
  ["dashboards", ["--verfy"], "(Did you mean --verify?)"],
];

/** Nonsense in a file of objects that `--with` names. */
const objects: readonly (readonly [what: string, text: string, reported: string])[] = [
  ["no YAML", "a: [", "HG101 a list in brackets is not closed"],
  ["a text", "hello", "with.yaml:1:1: error HG370 this is not a Kubernetes object"],
  ["1 MiB and more", `#${"x".repeat(1_048_576)}`, "HG370 the file is too large"],
  [
    "a policy",
    "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nspec: {}",
    "HG370 this is not a Kubernetes object",
  ],
  ["nesting", "[".repeat(10_000), "HG108 nested too deeply"],
  ["a bomb", bomb(), "HG113 the file's aliases expand to too much"],
  [
    "no namespace",
    "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}",
    'HG370 VirtualService "a" has no metadata.namespace',
  ],
  ["two for one host", `${ruleOf("a")}---\n${ruleOf("b")}`, "HG369 DestinationRule shop/a"],
  ["an object that is wrong", ruleOf("a", "subsets: 5"), "spec.subsets: "],
  ["characters that act", "a: \u001b[31m", "HG102 the character U+001B is not allowed"],
];

function ruleOf(name: string, more = "subsets: []"): string {
  const head = "apiVersion: networking.istio.io/v1\nkind: DestinationRule";
  return `${head}\nmetadata: {name: ${name}, namespace: shop}\nspec: {host: orders, ${more}}\n`;
}

/** Ten of each before, twenty times over. */
function bomb(): string {
  const rows = Array.from({ length: 20 }, (_, at) => {
    const parts =
      at === 0
        ? "x"
        : Array(10)
            .fill(`*a${at - 1}`)
            .join(", ");
    return `a${at}: &a${at} [${parts}]`;
  });
  return rows.join("\n");
}

describe("headgate generate", () => {
  const generate = async (target: string, spec: string, words: readonly string[] = []) => {
    const policy = join(folder, "policy.yaml");
    const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}";
    writeFileSync(policy, `${head}\nspec:\n  ${spec}\n`);
    return captureCli(["generate", target, policy, ...words]);
  };

  it.each(policies)("%s of %s says what is wrong", async (target, spec, reported) => {
    const { code, out, err } = await generate(target, spec);
    expect({ code, out, err }).toEqual({
      code: 3,
      out: "",
      err: expect.stringContaining(reported),
    });
    // Where it stands, and that nothing came of it.
    expect(err).toMatch(/policy\.yaml:\d+:\d+: /);
    expect(err).toMatch(/nothing was written\.\n?$/i);
  });

  it.each(flags)("%s %j says what is wrong", async (target, words, reported) => {
    const { code, out, err } = await generate(target, limits, words);
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: expect.stringContaining(reported),
    });
  });

  it.each(objects)("--with %s says what is wrong", async (_, text, reported) => {
    const file = join(folder, "with.yaml");
    writeFileSync(file, text);
    const spec = service("timeouts: {request: 1s}");
    const { code, out, err } = await generate("istio", spec, ["--with", file]);
    expect({ code, out, err }).toEqual({
      code: 3,
      out: "",
      err: expect.stringContaining(reported),
    });
    expect(err).toMatch(/nothing was written\.\n?$/i);
    expect(err.length).toBeLessThan(2_000);
  });

  it("--with a file that is not there says so", async () => {
    const file = join(folder, "none.yaml");
    const { code, out, err } = await generate("gateway", limits, ["--with", file]);
    expect({ code, out, err }).toEqual({
      code: 1,
      out: "",
      err: expect.stringContaining("none.yaml cannot be read: no such file"),
    });
  });

  it("is asked ten pieces of nonsense or more for each target", () => {
    const asked = [...policies, ...flags].map(([target]) => target);
    for (const target of targetNames) {
      expect(asked.filter((one) => one === target).length, target).toBeGreaterThanOrEqual(10);
    }
  });
});
