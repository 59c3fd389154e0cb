import { describe, expect, it } from "vitest";
import { sectionRowsMax } from "../../../../src/cli/policy/policy-section.js";
import { renderServices, summarizeServices } from "../../../../src/cli/policy/service-report.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { policyOf } from "../../../support/service-texts.js";

function servicesOf(...services: readonly string[]): readonly ServicePolicy[] {
  const parsed = parsePolicy([{ file: "a.yaml", text: policyOf(...services) }]);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  return parsed.services;
}

const wait = "estimatedWait: {sigmoid: {midpoint: 1s, slope: 1}}";

describe("summarizeServices()", () => {
  it.each([
    ["concurrency: {}", { admission: "permits", limit: "knee 1 to 1000" }],
    ["admission: {shedAt: off, deadline: off}", { admission: "permits" }],
    [
      "admission: {dryRun: true, maxInFlight: 5}",
      { admission: "dry run: deadline shedAt", limit: "dry run: 5" },
    ],
    [
      "priority: {rules: [{when: 'true', is: low}]}, concurrency: {feedback: [circuitBreakers]}",
      { admission: "permits; breakers ignore classes" },
    ],
    ["admission: {maxInFlight: 5}, concurrency: {}", { limit: "knee 1 to 1000, at most 5" }],
    ["concurrency: {law: fixed, limits: {max: 7}}", { limit: "7" }],
    ["priority: {from: {trust: {anyone: true}}}", { classStatedBy: "anyone" }],
    [
      "priority: {from: {trust: {sources: [10.0.0.1, '::1'], principals: [a]}}}",
      { classStatedBy: "2 networks, 1 principal" },
    ],
    [
      `admission: {gate: {}, ${wait}, queue: {}, load: {}}`,
      { admission: "deadline gate estimatedWait shedAt load queue" },
    ],
    ["hosts: []", { atEnvoy: "default" }],
    [
      "direction: outbound, retries: {}, circuitBreakers: {maxRequests: 9}, admissionControl: {}",
      { atEnvoy: "outbound: maxRequests 9 retries admissionControl" },
    ],
    [
      "outlierDetection: off, localRateLimit: {requests: 1}, adaptiveConcurrency: {}",
      { atEnvoy: "localRateLimit adaptiveConcurrency no outlierDetection" },
    ],
  ])("says of %s: %j", (fields, summary) => {
    expect(summarizeServices(servicesOf(`{name: a, ${fields}}`))).toMatchObject([summary]);
  });
});

describe("renderServices()", () => {
  it("is empty where there is none", () => {
    expect(renderServices([])).toBe("");
  });

  it("says what Envoy holds only where that is not its default", () => {
    expect(renderServices(servicesOf("{name: a}"))).not.toContain("at Envoy");
    const lines = renderServices(servicesOf("{name: a}", "{name: b, retries: {}}")).split("\n");
    expect(lines[1]).toMatch(/at Envoy$/);
    expect(lines.map((line) => line.trim().split(/ {2,}/).at(-1)).slice(2)).toEqual([
      "default",
      "retries",
    ]);
  });

  it("shows so many, and how many more there are", () => {
    const many = Array.from({ length: sectionRowsMax + 2 }, (_, i) => `{name: s${i}}`);
    const lines = renderServices(servicesOf(...many)).split("\n");
    expect(lines).toHaveLength(sectionRowsMax + 3);
    expect(lines.at(-1)).toBe("  and 2 more");
  });
});
