import { describe, expect, it } from "vitest";
import { lintPolicy } from "../../../src/generate/lint-policy.js";
import { policyOf } from "../../support/generated.js";

function idsOf(services: string, more = ""): readonly string[] {
  const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors: [{key: remote_address, rate_limit: {unit: hour, requests_per_unit: 5}}]
  services:
${services}
${more}`;
  return lintPolicy(policyOf([{ file: "policy.yaml", text }])).map(({ id, spot, severity }) => {
    expect(severity).toBe("warning");
    return `${id} ${[spot.service ?? "spec", ...spot.path].join(".")}`;
  });
}

const limited = "rateLimit: {domain: shop, descriptors: [[remote_address]]}";
const byHeader =
  'priority: {rules: [{when: \'request.headers["x-request-priority"] == "low"\', is: low}]}';
const trusted = "from: {trust: {sources: [10.0.0.0/8]}}";
const headerPart = "{header: x-request-priority, as: remote_address}";
const fixed = "{minRtt: {fixed: 20ms}}";

function curve(midpoint: string, slope: number): string {
  const sigmoid = `{midpoint: ${midpoint}, slope: ${slope}}`;
  return `    - {name: a, admission: {estimatedWait: {sigmoid: ${sigmoid}}}}`;
}

const room = "waitingRooms: [{name: r, service: a, capacity: {activeUsers: 5}, onStoreFailure: ";

describe("lintPolicy()", () => {
  it.each([
    [`  ${room}keep}]`, ["HG445 spec.waitingRooms.r.onStoreFailure"]],
    [`  ${room}close}]`, ["HG445 spec.waitingRooms.r.onStoreFailure"]],
    [`  ${room}open}]`, []],
    [`  ${room}close}]\n  proxies: {headgate: {failureModeDeny: true}}`, []],
  ])("finds ways past a room: %s", (more, ids) => {
    expect(idsOf("    - {name: a}", more)).toEqual(ids);
  });

  it.each([
    [`    - {name: a, ${limited}}`, ["HG422 a.rateLimit"]],
    [`    - {name: a, ${limited}, admission: {maxInFlight: 5}}`, []],
    [`    - {name: a, ${limited}, circuitBreakers: {maxRequests: 5}}`, []],
    [`    - {name: a, ${limited}, adaptiveConcurrency: {}}`, []],
    ["    - {name: a, outlierDetection: off}", ["HG423 a.outlierDetection"]],
    [
      "    - {name: a, outlierDetection: {maxEjectionPercent: 100}}",
      ["HG421 a.outlierDetection.maxEjectionPercent"],
    ],
    [
      "    - {name: a, retries: {retryOn: [5xx]}, circuitBreakers: {retryBudget: off}}",
      ["HG424 a.retries.retryOn"],
    ],
    ["    - {name: a, retries: {retryOn: [5xx]}}", []],
    ["    - {name: a, retries: {retryOn: [reset]}, circuitBreakers: {retryBudget: off}}", []],
    ["    - {name: a}", []],
    // As e to the power of 2 has it, 12 of 100 without anybody in the queue.
    [curve("1s", 2), ["HG443 a.admission.estimatedWait.sigmoid"]],
    [curve("1s", 4.6), []],
    [curve("28s", 0.23), []],
    [curve("2x", 0.1), []],
    [`    - {name: a, ${byHeader}, admission: {}}`, ["HG442 a.priority.rules"]],
    [`    - {name: a, ${byHeader}}`, []],
    [`    - {name: a, ${byHeader.replace("rules", `${trusted}, rules`)}, admission: {}}`, []],
    [
      `    - {name: a, ${limited.replace("remote_address", headerPart)}, admission: {}}`,
      ["HG442 a.rateLimit.descriptors"],
    ],
  ])("says of %s: %o", (service, ids) => {
    expect(idsOf(service)).toEqual(ids);
  });

  it.each([
    ["bucket: [remote_address]", ["HG439 a.rateLimit.descriptors"]],
    ["services: [a, b], bucket: [remote_address]", ["HG439 a.rateLimit.descriptors"]],
    ["bucket: [{header: x, as: remote_address}]", []],
    ["services: [b], bucket: [remote_address]", []],
    [
      "bucket: [remote_address], match: [{name: x-hot, present: true}]",
      ["HG439 a.rateLimit.descriptors"],
    ],
    ["bucket: [{header: x, as: other}], rate: {hits: 1, period: 1s}", []],
  ])("says of a quota by %s beside a call: %o", (quota, ids) => {
    const services = `    - {name: a, ${limited}, admission: {}}\n    - {name: b}`;
    const more = `  quotas: [{name: q, domain: shop, ${quota}}]`;
    expect(idsOf(services, more)).toEqual(ids);
  });

  it("finds one stated latency of services that are not one", () => {
    const proxies = `  proxies: {adaptiveConcurrency: ${fixed}}`;
    expect(idsOf("    - {name: a}\n    - {name: b}", proxies)).toEqual([
      "HG425 spec.proxies.adaptiveConcurrency.minRtt",
    ]);
    expect(idsOf("    - {name: a}", proxies)).toEqual([]);
    const own = ["a", "b"].map((name) => `    - {name: ${name}, adaptiveConcurrency: ${fixed}}`);
    expect(idsOf(own.join("\n"))).toEqual([]);
  });

  // An Envoy that lets in more than is read had such requests refused, or unlimited.
  it.each([
    ["60", []],
    ["64", []],
    ["65", ["HG444 spec.proxies.listener.maxRequestHeadersKb"]],
    ["8192", ["HG444 spec.proxies.listener.maxRequestHeadersKb"]],
  ])("warns of headers of %s KiB that Headgate may not read: %j", (headersKib, ids) => {
    const proxies = `  proxies: {listener: {maxRequestHeadersKb: ${headersKib}}}`;
    expect(idsOf("    - {name: a}", proxies)).toEqual(ids);
  });
});
