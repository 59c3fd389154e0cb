import { describe, expect, it } from "vitest";
import { type ParsedPolicy, parsePolicy } from "../../../../src/policy/parse.js";
import { rateLimitTimeoutMsMax } from "../../../../src/policy/proxies/proxies.js";
import { memoryBytesMax, memoryBytesMin } from "../../../../src/policy/proxies/proxy-overload.js";
import { clustersMax, upgradesMax } from "../../../../src/policy/services/service-form.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { formatDuration } from "../../../../src/policy/text/duration.js";
import { formatBytes } from "../../../../src/policy/text/quantities.js";
import { podLabelsMax } from "../../../../src/policy/text/service-texts.js";
import { measureMsMax } from "../../../../src/policy/upstream/adaptive-concurrency.js";
import { samplingMsMax } from "../../../../src/policy/upstream/admission-control.js";
import { subjectAltNamesMax } from "../../../../src/policy/upstream/client-tls.js";
import { fillMsMax, fillMsMin } from "../../../../src/policy/upstream/local-rate-limit.js";
import { ejectionTimeMsMax } from "../../../../src/policy/upstream/outlier-detection.js";
import { connectMsMax, requestMsMax } from "../../../../src/policy/upstream/retries.js";

function parse(spec: string): ParsedPolicy {
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\n";
  return parsePolicy([{ file: "a.yaml", text: `${head}spec: ${spec}` }]);
}

function idsOf(spec: string): readonly string[] {
  const parsed = parse(spec);
  return parsed.kind === "problems" ? parsed.problems.map(({ id }) => id) : [];
}

function serviceOf(fields: string, proxies = "{}"): ServicePolicy {
  const parsed = parse(`{services: [{name: a, ${fields}}], proxies: ${proxies}}`);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const [service] = parsed.services;
  if (service === undefined) throw new Error("no service");
  return service;
}

const service = (fields: string) => `{services: [{name: a, ${fields}}]}`;

describe("parsePolicy(), of durations and bytes at their bounds", () => {
  it.each<readonly [string, number, number, (value: string) => string]>([
    [
      "local fill",
      fillMsMin,
      fillMsMax,
      (v) => service(`localRateLimit: {requests: 1, per: ${v}}`),
    ],
    ["ejection", 1, ejectionTimeMsMax, (v) => service(`outlierDetection: {interval: ${v}}`)],
    ["request", 0, requestMsMax, (v) => service(`timeouts: {request: ${v}}`)],
    [
      "try",
      1,
      requestMsMax,
      (v) => service(`timeouts: {request: 0s}, retries: {perTryTimeout: ${v}}`),
    ],
    ["connect", 1, connectMsMax, (v) => service(`timeouts: {connect: ${v}}`)],
    ["update", 1, measureMsMax, (v) => service(`adaptiveConcurrency: {updateInterval: ${v}}`)],
    ["window", 1_000, samplingMsMax, (v) => service(`admissionControl: {samplingWindow: ${v}}`)],
    ["answer", 1, rateLimitTimeoutMsMax, (v) => `{proxies: {headgate: {rateLimitTimeout: ${v}}}}`],
  ])("takes a %s from %d to %d ms", (_, min, max, spec) => {
    expect(idsOf(spec(formatDuration(min)))).toEqual([]);
    expect(idsOf(spec(formatDuration(max)))).toEqual([]);
    if (min > 0) expect(idsOf(spec(formatDuration(min - 1)))).toContain("HG141");
    expect(idsOf(spec(formatDuration(max + 1)))).toContain("HG141");
  });

  it("takes a heap from its least to its most", () => {
    const spec = (bytes: string) => `{proxies: {overload: {maxHeap: ${bytes}}}}`;
    expect(idsOf(spec(formatBytes(memoryBytesMin)))).toEqual([]);
    expect(idsOf(spec(formatBytes(memoryBytesMax)))).toEqual([]);
    expect(idsOf(spec(String(memoryBytesMin - 1)))).toEqual(["HG141"]);
    expect(idsOf(spec(String(memoryBytesMax + 1)))).toEqual(["HG141"]);
  });

  it.each<readonly [string, number, (count: number) => string]>([
    ["clusters", clustersMax, (n) => `clusters: [${names(n)}]`],
    ["upgrades", upgradesMax, (n) => `upgrades: [${names(n)}]`],
    [
      "names",
      subjectAltNamesMax,
      (n) => `upstream: {address: a, port: 1, tls: {subjectAltNames: [${names(n)}]}}`,
    ],
    ["labels", podLabelsMax, (n) => `workload: {labels: {${names(n, ": x")}}}`],
  ])("takes %s up to %d", (_, max, fields) => {
    expect(idsOf(service(fields(max)))).toEqual([]);
    expect(idsOf(service(fields(max + 1)))).toEqual(["HG160"]);
  });
});

function names(count: number, rest = ""): string {
  return Array.from({ length: count }, (_, i) => `c${i}${rest}`).join(", ");
}

describe("parsePolicy(), of what Envoy holds", () => {
  it.each([
    ["512Mi", 536_870_912],
    ["1Gi", 1_073_741_824],
    ["20M", 20_000_000],
    ["33554432", 33_554_432],
  ])("reads %s as %d bytes", (text, bytes) => {
    const parsed = parse(`{proxies: {overload: {maxHeap: ${text}}}}`);
    expect(parsed).toMatchObject({ proxies: { overload: { heap: { bytesMax: bytes } } } });
  });

  it.each([
    ["512MB", "512Mi"],
    ["1gib", "1Gi"],
    ["0.5Gi", undefined],
    ["-1", undefined],
  ])("says what %s was meant to be", (text, suggestion) => {
    const parsed = parse(`{proxies: {overload: {maxHeap: "${text}"}}}`);
    const [problem] = parsed.kind === "problems" ? parsed.problems : [];
    expect(problem).toMatchObject({ id: "HG241", ...(suggestion && { suggestion }) });
    expect(problem?.suggestion).toBe(suggestion);
  });

  it("takes no budget for retries where their number is given", () => {
    expect(serviceOf("circuitBreakers: {maxRetries: 7}").circuitBreakers).toMatchObject({
      retriesMax: 7,
      retryBudget: undefined,
    });
    expect(serviceOf("circuitBreakers: {}").circuitBreakers.retryBudget).toEqual({
      percent: 16.6,
      retriesMin: 3,
    });
  });

  it.each([
    [443, "", "orders.bank.example"],
    [443, ", tls: off", undefined],
    [8443, "", undefined],
    [8443, ", tls: {}", "orders.bank.example"],
    [8443, ", tls: {serverName: orders.internal}", "orders.internal"],
  ])("speaks TLS to port %d%s as %s", (port, tls, name) => {
    const { upstream } = serviceOf(`upstream: {address: orders.bank.example, port: ${port}${tls}}`);
    expect(upstream?.tls?.serverName).toBe(name);
    expect(upstream?.tls?.subjectAltNames).toEqual(name && [name]);
    const caFile = "/etc/ssl/certs/ca-certificates.crt";
    if (name !== undefined) expect(upstream?.tls).toMatchObject({ kind: "files", caFile });
  });

  it.each<readonly [string, readonly string[]]>([
    ["{secret: shop.tls, serverName: a}", []],
    ["{secret: shop, mutual: true}", []],
    ["{secret: shop, caFile: /a}", ["HG126"]],
    ["{secret: shop, certFile: /a, keyFile: /b}", ["HG126"]],
    ["{mutual: true}", ["HG207"]],
  ])("looks at TLS of %s", (tls, ids) => {
    expect(idsOf(service(`upstream: {address: a, port: 1, tls: ${tls}}`))).toEqual(ids);
  });

  it.each<readonly [string, readonly string[]]>([
    ["protocol: http2}, healthChecks: {grpc: {}}", []],
    ["protocol: http1}, healthChecks: {http: {path: /}}", []],
    ["protocol: http1}, healthChecks: {grpc: {}}", ["HG207"]],
    ["protocol: h2c}", ["HG133"]],
  ])("looks at an upstream of %s", (fields, ids) => {
    expect(idsOf(service(`upstream: {address: a, port: 1, ${fields}`))).toEqual(ids);
  });

  it("waits for refusals only where they are tried again", () => {
    expect(serviceOf("retries: {}").retries?.retryAfterMsMax).toBeUndefined();
    expect(serviceOf("retries: {retryOn: [rateLimited]}").retries?.retryAfterMsMax).toBe(1_000);
  });

  it("gives services what the proxies have, unless they say otherwise", () => {
    const proxies = "{adaptiveConcurrency: {maxLimit: 7, minRtt: {fixed: 20ms}}}";
    expect(serviceOf("hosts: []").adaptiveConcurrency).toBeUndefined();
    expect(serviceOf("hosts: []", proxies).adaptiveConcurrency?.limitMax).toBe(7);
    expect(serviceOf("adaptiveConcurrency: off", proxies).adaptiveConcurrency).toBeUndefined();
    expect(serviceOf("adaptiveConcurrency: {minLimit: 2}", proxies).adaptiveConcurrency).toEqual({
      limitMax: 7,
      limitMin: 2,
      percentile: 90,
      updateMs: 100,
      minRtt: { kind: "fixed", ms: 20, bufferPercent: 25 },
    });
    const sampled = serviceOf("adaptiveConcurrency: {minRtt: {interval: 5s}}", proxies);
    expect(sampled.adaptiveConcurrency?.minRtt).toMatchObject({ kind: "sampled", everyMs: 5_000 });
  });

  it("reads the proxies after the services too, and services without a name to their end", () => {
    const proxies = "proxies: {adaptiveConcurrency: {minRtt: {fixed: 5ms}}}";
    const driven = "{name: a, concurrency: {feedback: [adaptiveConcurrency]}}";
    expect(idsOf(`{services: [${driven}], ${proxies}}`)).toEqual([]);
    expect(idsOf("{services: [{adaptiveConcurrency: {maxLimit: 0}}]}")).toEqual(["HG125", "HG141"]);
  });

  it("needs a limit for what `auto` is a part of", () => {
    const auto = "circuitBreakers: {maxRequests: auto}";
    expect(idsOf(service(auto))).toEqual(["HG207"]);
    expect(idsOf(service(`${auto}, admission: {}`))).toEqual([]);
    expect(idsOf(service(`${auto}, concurrency: {}`))).toEqual([]);
    expect(idsOf(service("circuitBreakers: {}"))).toEqual([]);
  });

  it("refuses a cluster that another service has, by its list, its name or its upstream", () => {
    const both = (a: string, b: string) => idsOf(`{services: [{name: a, ${a}}, {name: b, ${b}}]}`);
    expect(both("clusters: [x, x]", "clusters: [y, a2]")).toEqual([]);
    expect(both("clusters: [x]", "clusters: [x]")).toEqual(["HG242"]);
    expect(both("hosts: []", "clusters: [a]")).toEqual(["HG242"]);
    const upstream = "upstream: {address: a.example, port: 80}";
    expect(both(upstream, 'clusters: ["outbound|80||a.example"]')).toEqual(["HG242"]);
  });

  it("refuses as a host or an address what ends in a number and is no IPv4 address", () => {
    const at = (address: string) => idsOf(service(`upstream: {address: "${address}", port: 80}`));
    for (const right of ["10.0.0.30", "a1.example", "::1"]) expect(at(right), right).toEqual([]);
    for (const wrong of ["10.0.0.300", "10.0.0", "example.1"]) {
      expect(at(wrong), wrong).toEqual(["HG222"]);
      expect(idsOf(service(`hosts: ["${wrong}"]`)), wrong).toEqual(["HG222"]);
    }
  });

  it("tells the name of the policy, and none of a ratelimit file", () => {
    expect(parse("{services: []}")).toMatchObject({ name: "a" });
    const ratelimit = parsePolicy([{ file: "a.yaml", text: "domain: a\n" }]);
    expect(ratelimit).toMatchObject({ kind: "policy", name: undefined });
  });
});
