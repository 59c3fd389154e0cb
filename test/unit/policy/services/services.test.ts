import { describe, expect, it } from "vitest";
import { conditionCharsMax } from "../../../../src/policy/cel/cel.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import type { Problem } from "../../../../src/policy/problems/problem.js";
import {
  queueSizeMax,
  retryAfterMinSecondsMax,
  slopePerSecondMax,
  waitMsMax,
} from "../../../../src/policy/services/admission-blocks.js";
import { permitKeysMax } from "../../../../src/policy/services/service-admission.js";
import {
  concurrencyKeysMax,
  concurrencyNamesMax,
} from "../../../../src/policy/services/service-concurrency.js";
import { hostsMax } from "../../../../src/policy/services/service-form.js";
import { servicesMax } from "../../../../src/policy/services/service-list.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import {
  priorityItemsMax,
  priorityRulesMax,
} from "../../../../src/policy/services/service-priority.js";
import {
  descriptorPartsMax,
  serviceDescriptorsMax,
} from "../../../../src/policy/services/service-rate-limit.js";
import { gainMax, signalThresholdsMax } from "../../../../src/policy/services/signal-settings.js";
import {
  everyMsMax,
  everyMsMin,
  readingMax,
  staleAfterMsMax,
} from "../../../../src/policy/services/signal-source.js";
import { multipleMax, permitBounds } from "../../../../src/policy/text/quantities.js";
import { policyOf } from "../../../support/service-texts.js";

function problemsOf(...services: readonly string[]): readonly Problem[] {
  const parsed = parsePolicy([{ file: "a.yaml", text: policyOf(...services) }]);
  return parsed.kind === "problems" ? parsed.problems : [];
}

function idsOf(...services: readonly string[]): readonly string[] {
  return problemsOf(...services).map(({ id }) => id);
}

function serviceOf(fields: string): ServicePolicy {
  const parsed = parsePolicy([{ file: "a.yaml", text: policyOf(`{name: a, ${fields}}`) }]);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const [service] = parsed.services;
  if (service === undefined) throw new Error("no service");
  return service;
}

function list(count: number, item: (i: number) => string): string {
  return `[${Array.from({ length: count }, (_, i) => item(i)).join(", ")}]`;
}

describe("parsePolicy(), of services", () => {
  it("gives services that another thread receives as they are", () => {
    const service = serviceOf("admission: {dryRun: [gate]}, concurrency: {}");
    expect(service.admission?.dryRun).toEqual(new Set(["gate"]));
    expect(structuredClone(service)).toEqual(service);
  });

  it("takes services without limits, and a policy needs one of the two", () => {
    const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\n";
    const parse = (spec: string) => parsePolicy([{ file: "a.yaml", text: `${head}spec: ${spec}` }]);
    expect(parse("{services: [{name: a}]}")).toMatchObject({
      services: [{ name: "a" }],
      rules: [],
    });
    expect(parse("{}")).toMatchObject({ problems: [{ id: "HG125" }] });
    expect(parse("{servces: []}")).toMatchObject({ problems: [{ id: "HG120" }] });
  });

  it("takes aliases and merged maps for services and parts of them", () => {
    const parsed = parsePolicy([
      {
        file: "a.yaml",
        text: policyOf(
          "&a {name: a, admission: &on {maxInFlight: 5}, upstream: {address: a, port: &port 80}}",
          "{name: b, admission: *on, upstream: {address: b, port: *port}}",
          "{<<: *a, name: c}",
        ),
      },
    ]);
    if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
    expect(parsed.services.map(({ admission }) => admission?.maxInFlight)).toEqual([5, 5, 5]);
    expect(parsed.services.map(({ upstream }) => upstream?.address)).toEqual(["a", "b", "a"]);
  });

  it("gives a law to a service that is protected and names no limit, and to no other", () => {
    expect(serviceOf("admission: {}").concurrency?.settings.law).toBe("knee");
    const lawOf = (concurrency: string): string | undefined =>
      serviceOf(`admission: {}, concurrency: ${concurrency}`).concurrency?.settings.law;
    expect(lawOf("{limits: {max: 50}}")).toBe("knee");
    // What Envoys tell are means, which have no levels.
    expect(lawOf("{sources: [envoyMetrics]}")).toBe("gradient");
    expect(lawOf("{feedback: [circuitBreakers]}")).toBe("gradient");
    expect(lawOf("{gradient: {rttTolerance: 2}}")).toBe("gradient");
    const reported = "{name: a, concurrency: {law: knee, sources: [envoyMetrics]}}";
    expect(idsOf(reported)).toEqual(["HG126"]);
    expect(serviceOf("admission: {maxInFlight: 5}").concurrency).toBeUndefined();
    expect(serviceOf("hosts: []").concurrency).toBeUndefined();
    const off = "concurrency: {law: signal, signal: {preset: off}}";
    expect(serviceOf(`admission: {}, ${off}`).concurrency).toBeUndefined();
  });

  it("counts in flight by model only where something finds a call's model", () => {
    const perModel = "admission: {maxInFlight: 9, maxInFlightPer: {per: model, max: 3}}";
    const { maxInFlightPer } = serviceOf(`${perModel}, usage: {}`).admission ?? {};
    expect(maxInFlightPer).toMatchObject({ per: { kind: "model" }, max: 3 });
    const [problem] = problemsOf(`{name: a, ${perModel}}`);
    expect(problem).toMatchObject({ id: "HG207", expected: "usage: {}" });
  });

  it("tells one mistake once, and nothing that only follows from it", () => {
    expect(idsOf("{name: a, admission: {queue: {}}, concurrency: []}")).toEqual(["HG124"]);
    expect(idsOf("{name: a, admision: {}, rateLimit: *x}")).toEqual(["HG120", "HG112"]);
    expect(idsOf("{name: a, admission: {gate: {}, estimateWait: {}}}")).toEqual(["HG120"]);
    expect(idsOf("{name: a, admission: {gate: {}, estimatedWait: 5}}")).toEqual(["HG124"]);
    const sigmoid = "estimatedWait: {sigmoid: {midpoint: 1, slope: 1}}";
    expect(idsOf(`{name: a, admission: {gate: {}, ${sigmoid}}}`)).toEqual(["HG201"]);
    const wrongLaw = "concurrency: {law: signal}, admission: {queue: {}}";
    expect(idsOf(`{name: a, ${wrongLaw}}`)).toEqual(["HG125"]);
  });

  it("says nothing of a URL's secrets", () => {
    const from = "http://user:secret@example";
    const problems = problemsOf(`{name: a, concurrency: {law: signal, signal: {http: "${from}"}}}`);
    expect(problems.map(({ message }) => message).join()).not.toContain("secret");
  });
});

describe("parsePolicy(), of services at their bounds", () => {
  const rule = "{when: 'true', is: low}";
  it.each<readonly [string, number, (count: number) => string]>([
    ["hosts", hostsMax, (n) => `hosts: ${list(n, (i) => `h${i}`)}`],
    ["rules", priorityRulesMax, (n) => `priority: {rules: ${list(n, () => rule)}}`],
    ["paths", priorityItemsMax, (n) => `priority: {bypassPaths: ${list(n, (i) => `/${i}`)}}`],
    [
      "networks",
      priorityItemsMax,
      (n) => `priority: {from: {trust: {sources: ${list(n, (i) => `10.0.0.${i}`)}}}}`,
    ],
    [
      "principals",
      priorityItemsMax,
      (n) => `priority: {from: {trust: {principals: ${list(n, (i) => `a:${i}`)}}}}`,
    ],
    [
      "descriptors",
      serviceDescriptorsMax,
      (n) => `rateLimit: {domain: shop, descriptors: ${list(n, () => "[{header: x, as: user}]")}}`,
    ],
    [
      "names of keys",
      concurrencyNamesMax,
      (n) => `concurrency: {per: {header: x, names: ${list(n, (i) => `k${i}`)}}}`,
    ],
  ])("takes so many %s, and no more", (_, max, text) => {
    expect(idsOf(`{name: a, ${text(max)}}`)).toEqual([]);
    expect(idsOf(`{name: a, ${text(max + 1)}}`)).toEqual(["HG160"]);
  });

  it("takes so many parts of a descriptor, and no more", () => {
    const descriptor = (count: number): string =>
      `rateLimit: {domain: shop, descriptors: [${list(count, () => "{header: x, as: user}")}]}`;
    // No limit of the policy has a path that long.
    expect(idsOf(`{name: a, ${descriptor(descriptorPartsMax)}}`)).toEqual(["HG231"]);
    expect(idsOf(`{name: a, ${descriptor(descriptorPartsMax + 1)}}`)).toEqual(["HG160"]);
  });

  it("takes so many services, and no more", () => {
    const services = (count: number) => Array.from({ length: count }, (_, i) => `{name: s${i}}`);
    expect(idsOf(...services(servicesMax))).toEqual([]);
    expect(idsOf(...services(servicesMax + 1))).toEqual(["HG160"]);
  });

  it("takes a condition of so many characters, and says where a longer one is", () => {
    const rules = (length: number): string =>
      `{name: a, priority: {rules: [{when: "${"true".padEnd(length)}", is: low}]}}`;
    expect(idsOf(rules(conditionCharsMax))).toEqual([]);
    expect(idsOf(rules(conditionCharsMax + 1))).toEqual(["HG213"]);
    expect(idsOf(rules(100 * conditionCharsMax))).toEqual(["HG131"]);
  });

  const admission = (text: string): string => `admission: {${text}}`;
  const signal = (text: string): string => `concurrency: {law: signal, signal: {${text}}}`;
  it.each<readonly [string, number, (value: number) => string]>([
    ["maxInFlight", permitBounds.max, (n) => admission(`maxInFlight: ${n}`)],
    ["maxInFlightPer.max", permitBounds.max, (n) => admission(`maxInFlightPer: {max: ${n}}`)],
    ["keysMax", permitKeysMax, (n) => admission(`maxInFlightPer: {max: 1, keysMax: ${n}}`)],
    ["queue.size", queueSizeMax, (n) => admission(`queue: {size: ${n}}`)],
    ["queue.maxWait", waitMsMax, (n) => admission(`queue: {maxWait: ${n}ms}`)],
    ["estimatedWait.max", multipleMax, (n) => admission(`estimatedWait: {max: ${n}x}`)],
    [
      "slope",
      slopePerSecondMax,
      (n) => admission(`estimatedWait: {sigmoid: {midpoint: 1s, slope: ${n}}}`),
    ],
    [
      "retryAfter.min",
      retryAfterMinSecondsMax,
      (n) => admission(`reject: {retryAfter: {min: ${n}s}}`),
    ],
    ["limits.max", permitBounds.max, (n) => `concurrency: {limits: {max: ${n}}}`],
    ["per.keysMax", concurrencyKeysMax, (n) => `concurrency: {per: {header: x, keysMax: ${n}}}`],
    ["signal.critical", readingMax, (n) => signal(`redis: a, critical: ${n}`)],
    ["signal.pid", gainMax, (n) => signal(`redis: a, pid: {ki: ${n}}`)],
    ["signal.every", everyMsMax, (n) => signal(`redis: a, every: ${n}ms, staleAfter: 2h`)],
    ["signal.timeout", 5_000, (n) => signal(`redis: a, timeout: ${n}ms`)],
    ["signal.staleAfter", staleAfterMsMax, (n) => signal(`redis: a, staleAfter: ${n}ms`)],
  ])("takes %s up to its bound", (_, max, text) => {
    expect(idsOf(`{name: a, ${text(max)}}`)).toEqual([]);
    expect(idsOf(`{name: a, ${text(max + 1)}}`)).toHaveLength(1);
  });

  it("takes thresholds of as many keys as may be named", () => {
    const names = (count: number): string => list(count, (i) => `k${i}`);
    const thresholds = (count: number): string =>
      list(count, (i) => `{name: k${i % signalThresholdsMax}, target: 1, critical: 2}`);
    const text = (count: number): string =>
      `concurrency: {law: signal, per: {header: x, names: ${names(signalThresholdsMax)}}, ` +
      `signal: {redis: a, thresholds: ${thresholds(count)}}}`;
    expect(idsOf(`{name: a, ${text(signalThresholdsMax)}}`)).toEqual([]);
    expect(idsOf(`{name: a, ${text(signalThresholdsMax + 1)}}`)).toEqual(["HG160"]);
  });

  it("asks a source no oftener than it may, and gives it less time then", () => {
    expect(serviceOf(signal(`redis: a, every: ${everyMsMin}ms`)).concurrency?.signal).toMatchObject(
      {
        everyMs: everyMsMin,
        timeoutMs: everyMsMin,
        staleAfterMs: 6 * everyMsMin,
      },
    );
    expect(idsOf(`{name: a, ${signal(`redis: a, every: ${everyMsMin - 1}ms`)}}`)).toEqual([
      "HG141",
    ]);
  });
});
