import { describe, expect, it } from "vitest";
import { admissionControlKey } from "../../../../../src/core/feedback/runtime-keys.js";
import {
  admissionControlFilter,
  admissionControlPerRoute,
} from "../../../../../src/generate/envoy/http/admission-control.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import type { AdmissionControlPolicy } from "../../../../../src/policy/upstream/admission-control.js";
import { testService } from "../../../../support/admission.js";
import { apiProblems, filterFields, testContext } from "../../../../support/envoy-parts.js";

const usual: AdmissionControlPolicy = {
  aggression: 1.5,
  successRateThresholdPercent: 95,
  samplingWindowMs: 30_000,
  requestsPerSecondMin: 5,
  rejectPercentMax: 80,
  when: "always",
};

function service(name: string, admissionControl?: AdmissionControlPolicy): ServicePolicy {
  return testService(undefined, { name, admissionControl });
}

interface Criteria {
  readonly http_criteria: {
    readonly http_success_status: readonly { readonly start: number; readonly end: number }[];
  };
  readonly grpc_criteria: { readonly grpc_success_status: readonly number[] };
}

describe("admissionControlFilter()", () => {
  it("names each knob's runtime key after the service", () => {
    const { context, problems } = testContext();
    const filter = admissionControlFilter([service("plain"), service("orders", usual)], context);
    const key = admissionControlKey("orders");
    expect(filterFields(filter)).toMatchObject({
      enabled: { default_value: true, runtime_key: key },
      sampling_window: "30s",
      sr_threshold: { default_value: { value: 95 }, runtime_key: `${key}.sr_threshold` },
      aggression: { default_value: 1.5, runtime_key: `${key}.aggression` },
      rps_threshold: { default_value: 5, runtime_key: `${key}.rps_threshold` },
      max_rejection_probability: { default_value: { value: 80 } },
    });
    expect(problems).toEqual([]);
    expect(apiProblems("envoy.config.core.v3.TypedExtensionConfig", filter)).toEqual([]);
  });

  it("takes for a failure what failed, and not what was refused on purpose", () => {
    const { context } = testContext();
    const filter = admissionControlFilter([service("orders", usual)], context);
    const criteria = filterFields(filter)["success_criteria"] as Criteria;
    const isSuccess = (status: number): boolean =>
      criteria.http_criteria.http_success_status.some(
        ({ start, end }) => status >= start && status < end,
      );
    expect([200, 404, 429, 503].map(isSuccess)).toEqual([true, true, true, true]);
    expect([500, 502, 504].map(isSuccess)).toEqual([false, false, false]);
    const failed = Array.from({ length: 17 }, (_, status) => status).filter(
      (status) => !criteria.grpc_criteria.grpc_success_status.includes(status),
    );
    expect(failed).toEqual([4, 10, 13, 15]);
  });

  it("is a problem of each service that differs", () => {
    const { context, problems } = testContext();
    const other = { ...usual, aggression: 2 };
    admissionControlFilter([service("a", usual), service("b", other), service("c")], context);
    expect(problems.map(({ id, spot }) => [id, spot.service])).toEqual([["HG323", "b"]]);
    expect(problems[0]?.hint).toContain("proxies.admissionControl");
  });

  it("is not there where nobody has it", () => {
    expect(admissionControlFilter([service("a")], testContext().context)).toBeUndefined();
  });
});

describe("admissionControlPerRoute()", () => {
  it("takes the filter out of the way of services that have none", () => {
    expect(admissionControlPerRoute(service("a"))).toMatchObject({ disabled: true });
    expect(admissionControlPerRoute(service("a", usual))).toBeUndefined();
  });
});
