import { describe, expect, it } from "vitest";
import {
  adaptiveConcurrencyFilter,
  adaptiveConcurrencyPerRoute,
  reportSharedPins,
} from "../../../../../src/generate/envoy/http/adaptive-concurrency.js";
import type { ServiceConcurrency } from "../../../../../src/policy/services/service-concurrency.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import type { AdaptiveConcurrencyPolicy } from "../../../../../src/policy/upstream/adaptive-concurrency.js";
import { testService } from "../../../../support/admission.js";
import {
  apiProblems,
  filterFields,
  type TestProxy,
  testContext,
} from "../../../../support/envoy-parts.js";

const sampled: AdaptiveConcurrencyPolicy = {
  limitMax: 1_000,
  limitMin: 3,
  percentile: 90,
  updateMs: 100,
  minRtt: {
    kind: "sampled",
    everyMs: 60_000,
    requestCount: 50,
    jitterPercent: 15,
    bufferPercent: 25,
  },
};
const fixed: AdaptiveConcurrencyPolicy = {
  ...sampled,
  minRtt: { kind: "fixed", ms: 20, bufferPercent: 10 },
};
const pinning: ServiceConcurrency = {
  settings: { law: "fixed", limits: { initial: 50, min: 1, max: 1_000 } },
  per: undefined,
  signal: undefined,
  sources: ["envoyMetrics"],
  feedback: ["adaptiveConcurrency"],
};

function service(name: string, fields: Partial<ServicePolicy>): ServicePolicy {
  return testService(undefined, { name, ...fields });
}

function made(services: readonly ServicePolicy[], proxy: TestProxy = {}) {
  const { context, problems } = testContext(proxy);
  const filter = adaptiveConcurrencyFilter(services, context);
  const found = problems.map(({ id, spot }) => `${id} ${spot.service}`);
  return { filter, fields: filterFields(filter), found };
}

const apiMessage = "envoy.config.core.v3.TypedExtensionConfig";

describe("adaptiveConcurrencyFilter()", () => {
  it("samples by default, with an off switch", () => {
    const { filter, fields, found } = made([service("a", { adaptiveConcurrency: sampled })]);
    expect(fields).toEqual({
      enabled: { default_value: true, runtime_key: "adaptive_concurrency.enabled" },
      gradient_controller_config: {
        sample_aggregate_percentile: { value: 90 },
        concurrency_limit_params: {
          max_concurrency_limit: 1_000,
          min_concurrency_limit: 3,
          concurrency_update_interval: "0.1s",
        },
        min_rtt_calc_params: {
          interval: "60s",
          request_count: 50,
          jitter: { value: 15 },
          min_concurrency: 3,
          buffer: { value: 25 },
        },
      },
    });
    expect(found).toEqual([]);
    expect(apiProblems(apiMessage, filter)).toEqual([]);
  });

  it("has no interval beside a fixed minRtt, so that pins are safe", () => {
    const { filter, fields, found } = made([
      service("a", { adaptiveConcurrency: fixed, concurrency: pinning }),
    ]);
    expect(fields).toMatchObject({
      gradient_controller_config: {
        min_rtt_calc_params: { fixed_value: "0.02s", buffer: { value: 10 } },
      },
    });
    expect(JSON.stringify(fields)).not.toContain('"interval"');
    expect(found).toEqual([]);
    expect(apiProblems(apiMessage, filter)).toEqual([]);
  });

  it("is one for services that agree, and a problem of each that does not", () => {
    const a = service("a", { adaptiveConcurrency: sampled });
    const b = service("b", { adaptiveConcurrency: { ...sampled } });
    expect(made([a, b]).found).toEqual([]);
    const other = service("c", { adaptiveConcurrency: { ...sampled, limitMax: 7 } });
    expect(made([a, other, service("d", {})]).found).toEqual(["HG322 c"]);
  });

  it("leaves out services that are protected on the other side", () => {
    const outbound = service("a", { adaptiveConcurrency: sampled, direction: "outbound" });
    expect(made([outbound], { role: "sidecar", side: "inbound" }).filter).toBeUndefined();
    expect(made([outbound], { role: "sidecar", side: "outbound" }).filter).toBeDefined();
    expect(made([service("a", {})]).filter).toBeUndefined();
  });

  it("reports a fixed minRtt before Envoy 1.35, and leaves out a floor before 1.40", () => {
    const one = service("a", { adaptiveConcurrency: fixed });
    expect(made([one], { minor: 34 }).found).toEqual(["HG321 a"]);
    const { fields, found } = made([one], { minor: 39 });
    expect(found).toEqual([]);
    expect(JSON.stringify(fields)).not.toContain("min_concurrency_limit");
  });
});

describe("reportSharedPins()", () => {
  it("reports all services that pin the limit of a proxy, where several do", () => {
    const pinned = (name: string) =>
      service(name, { adaptiveConcurrency: fixed, concurrency: pinning });
    const reported = (services: readonly ServicePolicy[]) => {
      const { context, problems } = testContext({ role: "sidecar", side: "inbound" });
      reportSharedPins(services, context);
      return problems.map(({ id, spot }) => `${id} ${spot.service}`);
    };
    expect(reported([pinned("a"), pinned("b")])).toEqual(["HG324 a", "HG324 b"]);
    expect(reported([pinned("a"), service("b", {})])).toEqual([]);
    expect(reported([pinned("a"), { ...pinned("b"), direction: "outbound" }])).toEqual([]);
  });
});

describe("adaptiveConcurrencyPerRoute()", () => {
  it("takes the filter out of the way of services that have none", () => {
    expect(adaptiveConcurrencyPerRoute(service("a", {}))).toMatchObject({ disabled: true });
    const one = service("a", { adaptiveConcurrency: sampled });
    expect(adaptiveConcurrencyPerRoute(one)).toBeUndefined();
  });
});
