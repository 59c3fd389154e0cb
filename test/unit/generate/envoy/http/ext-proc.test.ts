import { describe, expect, it } from "vitest";
import { waitTimeoutMarginMs } from "../../../../../src/decide/admission/admission-call.js";
import {
  announcedWaitMarginMs,
  extProcFilter,
  extProcOff,
  extProcPerRoute,
  usesExtProc,
} from "../../../../../src/generate/envoy/http/ext-proc.js";
import { defaultProxies } from "../../../../../src/policy/proxies/default-proxies.js";
import { permitsAlone } from "../../../../../src/policy/services/service-admission.js";
import type { ServiceConcurrency } from "../../../../../src/policy/services/service-concurrency.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import { askedOnce } from "../../../../../src/policy/services/service-rate-limit.js";
import { AdmissionRig, testService } from "../../../../support/admission.js";
import { apiProblems, filterFields, plain, testContext } from "../../../../support/envoy-parts.js";

const law: ServiceConcurrency = {
  settings: { law: "fixed", limits: { initial: 50, min: 1, max: 1_000 } },
  per: undefined,
  signal: undefined,
  sources: ["envoyMetrics"],
  feedback: ["circuitBreakers"],
};

/** A service that looks at all that one can look at. */
const curious = testService(
  {
    maxInFlightPer: { per: { kind: "route" }, max: 3, keysMax: 10, scope: "replica" },
    deadline: { minRemainingMs: 5, marginMs: 10, header: "x-deadline-ms" },
    queue: { sizeMax: 10, waitMsMax: 2_000, order: "fifo", codel: undefined },
    caller: { kind: "remoteAddress" },
    sampleRatio: 0.1,
  },
  {
    concurrency: { ...law, per: { header: "x-database", names: [], keysMax: 10 } },
    rateLimit: {
      domain: "shop",
      descriptors: [askedOnce([{ kind: "header", header: "x-user", key: "user" }])],
      inExtProc: true,
    },
    priority: {
      header: "x-class",
      default: "normal",
      rules: [{ when: 'request.headers["x-vip"] == "yes"', is: "high" }],
      bypassPaths: [],
      authPaths: [],
      trust: { anyone: false, sources: [], principals: ["spiffe://shop/*"] },
    },
  },
);

function fieldsOf(services: readonly ServicePolicy[], minor = 40) {
  const { context } = testContext({ minor });
  const filter = extProcFilter(services, context);
  expect(apiProblems("envoy.config.core.v3.TypedExtensionConfig", filter)).toEqual([]);
  return filterFields(filter) as {
    readonly forward_rules: {
      readonly allowed_headers: { readonly patterns: readonly { readonly exact: string }[] };
    };
    readonly request_attributes?: readonly string[];
    readonly [name: string]: unknown;
  };
}

describe("extProcFilter()", () => {
  it.each([
    ["one that looks at little", [testService({})]],
    ["one that looks at all", [curious]],
    ["both", [curious, testService({}, { name: "other", hosts: [] })]],
  ])("sends what admission looks at and nothing else: %s", (_, services) => {
    const { admission } = new AdmissionRig(services);
    const { forward_rules: rules, request_attributes: attributes = [] } = fieldsOf(services);
    const sent = rules.allowed_headers.patterns.map(({ exact }) => exact);
    const read = [...admission.requestHeaderNames, ...admission.responseHeaderNames];
    expect(new Set(sent)).toEqual(new Set(read));
    expect(sent).toHaveLength(new Set(read).size);
    expect(new Set(attributes)).toEqual(admission.attributeNames);
    expect(attributes).not.toContain("xds.node");
  });

  it("lets Headgate announce the longest wait of any queue, and the margin that it adds", () => {
    expect(announcedWaitMarginMs).toBe(waitTimeoutMarginMs);
    const shorter = testService({
      queue: { sizeMax: 1, waitMsMax: 100, order: "fifo", codel: undefined },
    });
    expect(fieldsOf([curious, shorter])["max_message_timeout"]).toBe("2.2s");
    expect(fieldsOf([testService({})])).not.toHaveProperty("max_message_timeout");
  });

  it("lets modes change only where some responses are sampled", () => {
    expect(fieldsOf([curious])["allow_mode_override"]).toBe(true);
    expect(fieldsOf([testService({})])).not.toHaveProperty("allow_mode_override");
  });

  it("holds a stream open until the response is complete, and never asks for bodies", () => {
    expect(fieldsOf([curious])["processing_mode"]).toEqual({
      request_header_mode: "SEND",
      response_header_mode: "SEND",
      request_body_mode: "NONE",
      response_body_mode: "NONE",
      request_trailer_mode: "SKIP",
      response_trailer_mode: "SEND",
    });
  });

  it("lets Headgate set the headers of its policy, and no others", () => {
    expect(fieldsOf([testService({})])["mutation_rules"]).toEqual({
      disallow_all: true,
      allow_expression: { regex: expect.stringContaining("request-priority") },
    });
    const long = testService({}, { priority: { ...curious.priority, header: "x".repeat(60) } });
    expect(fieldsOf([long])["mutation_rules"]).toEqual({ disallow_system: true });
  });

  it("passes or refuses without an answer, as the policy says", () => {
    expect(fieldsOf([curious])["failure_mode_allow"]).toBe(true);
    const headgate = { ...defaultProxies.headgate, deniesWithoutAnswer: true };
    const { context } = testContext({ proxies: { headgate } });
    expect(filterFields(extProcFilter([curious], context))["failure_mode_allow"]).toBe(false);
  });

  it("has no status of its own where Envoy does not know it", () => {
    expect(fieldsOf([curious], 35)).not.toHaveProperty("status_on_error");
    expect(fieldsOf([curious], 36)["status_on_error"]).toEqual({ code: "ServiceUnavailable" });
  });

  it("is not there where no service asks", () => {
    expect(extProcFilter([testService(undefined)], testContext().context)).toBeUndefined();
  });
});

describe("extProcPerRoute()", () => {
  it("says whose route it is, and switches those off that do not ask", () => {
    const { context } = testContext();
    const config = extProcPerRoute(curious, context);
    expect(plain(config)).toMatchObject({
      overrides: { grpc_initial_metadata: [{ key: "x-headgate-service", value: "orders" }] },
    });
    expect(apiProblems("google.protobuf.Any", config)).toEqual([]);
    expect(extProcPerRoute(testService(undefined), context)).toEqual(extProcOff());
    expect(plain(extProcOff())).toMatchObject({ disabled: true });
  });
});

describe("usesExtProc()", () => {
  it.each([
    ["nothing", testService(undefined), false],
    ["admission", testService({}), true],
    ["permits alone", testService({ ...permitsAlone }), true],
    ["a law that Envoys hold to", testService({ ...permitsAlone }, { concurrency: law }), false],
    [
      "a law that listens to ext_proc",
      testService({ ...permitsAlone }, { concurrency: { ...law, sources: ["extProc"] } }),
      true,
    ],
    [
      "a law that nobody else holds to",
      testService({ ...permitsAlone }, { concurrency: { ...law, feedback: [] } }),
      true,
    ],
    [
      "a law that Envoys hold to, and a bound",
      testService({ ...permitsAlone, maxInFlight: 10 }, { concurrency: law }),
      true,
    ],
    ["a rate limit in ext_proc", curious, true],
  ])("knows who asks: %s", (_, service, isAsked) => {
    expect(usesExtProc(service, { waitingRooms: [] })).toBe(isAsked);
  });
});
