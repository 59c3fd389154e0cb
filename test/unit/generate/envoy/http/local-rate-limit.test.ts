import { describe, expect, it } from "vitest";
import { localRateLimitKey } from "../../../../../src/core/feedback/runtime-keys.js";
import {
  localRateLimitFilter,
  localRateLimitPerRoute,
} from "../../../../../src/generate/envoy/http/local-rate-limit.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import { askedOnce } from "../../../../../src/policy/services/service-rate-limit.js";
import type { LocalRateLimitPolicy } from "../../../../../src/policy/upstream/local-rate-limit.js";
import { testService } from "../../../../support/admission.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";

const backstop: LocalRateLimitPolicy = {
  requests: 100,
  perMs: 2_500,
  burst: 150,
  when: "withoutHeadgate",
};

const asked: Pick<ServicePolicy, "rateLimit"> = {
  rateLimit: {
    domain: "edge",
    descriptors: [askedOnce([{ kind: "remoteAddress", key: "remote_address" }])],
    inExtProc: false,
  },
};

function fieldsOf(fields: Partial<ServicePolicy>, minor = 40) {
  const { context } = testContext({ minor });
  const config = localRateLimitPerRoute(testService(undefined, fields), context);
  expect(apiProblems("google.protobuf.Any", config)).toEqual([]);
  return plain(config) as Readonly<Record<string, unknown>>;
}

describe("localRateLimitPerRoute()", () => {
  it("is a bucket that one key switches off, and that answers when to come back", () => {
    const share = {
      default_value: { numerator: 100, denominator: "HUNDRED" },
      runtime_key: localRateLimitKey("orders"),
    };
    expect(fieldsOf({ localRateLimit: backstop })).toMatchObject({
      stat_prefix: "orders",
      token_bucket: { max_tokens: 150, tokens_per_fill: 100, fill_interval: "2.5s" },
      filter_enabled: share,
      filter_enforced: share,
      enable_x_ratelimit_headers: "DRAFT_VERSION_03",
      enable_retry_after_header: true,
    });
  });

  it("says nothing of limits beside what Headgate says of its own", () => {
    const always: LocalRateLimitPolicy = { ...backstop, when: "always" };
    expect(fieldsOf({ localRateLimit: always })).toHaveProperty("enable_x_ratelimit_headers");
    expect(fieldsOf({ localRateLimit: backstop, ...asked })).toHaveProperty(
      "enable_x_ratelimit_headers",
    );
    expect(fieldsOf({ localRateLimit: always, ...asked })).not.toHaveProperty(
      "enable_x_ratelimit_headers",
    );
  });

  it("says a whole interval where Envoy cannot say when", () => {
    const fields = fieldsOf({ localRateLimit: backstop }, 39);
    expect(fields).not.toHaveProperty("enable_retry_after_header");
    expect(fields["response_headers_to_add"]).toMatchObject([
      { header: { key: "retry-after", value: "3" } },
    ]);
    const quick = fieldsOf({ localRateLimit: { ...backstop, perMs: 50 } }, 39);
    expect(quick["response_headers_to_add"]).toMatchObject([{ header: { value: "1" } }]);
  });

  it("is not there for services without", () => {
    const { context } = testContext();
    expect(localRateLimitPerRoute(testService(undefined), context)).toBeUndefined();
  });
});

describe("localRateLimitFilter()", () => {
  it("limits nothing by itself, and is there where a service has a bucket", () => {
    const { context } = testContext();
    expect(localRateLimitFilter([testService(undefined)], context)).toBeUndefined();
    const one = testService(undefined, { localRateLimit: backstop });
    const filter = localRateLimitFilter([testService(undefined), one], context);
    expect(plain(filter)).toMatchObject({ typed_config: { stat_prefix: "headgate" } });
    expect(JSON.stringify(plain(filter))).not.toContain("token_bucket");
    expect(apiProblems("envoy.config.core.v3.TypedExtensionConfig", filter)).toEqual([]);
  });
});
