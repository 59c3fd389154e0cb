import { describe, expect, it } from "vitest";
import {
  rateLimitFilter,
  rateLimitPerRoute,
  virtualHostRateLimits,
} from "../../../../../src/generate/envoy/http/rate-limit.js";
import { defaultProxies } from "../../../../../src/policy/proxies/default-proxies.js";
import { askedOnce } from "../../../../../src/policy/services/service-rate-limit.js";
import { testService } from "../../../../support/admission.js";
import { apiProblems, filterFields, plain, testContext } from "../../../../support/envoy-parts.js";

const descriptors = [askedOnce([{ kind: "remoteAddress", key: "remote_address" }])];
const shop = testService(undefined, {
  name: "shop",
  rateLimit: { domain: "shop", descriptors, inExtProc: false },
});
const plainService = testService(undefined, { name: "plain" });
const inExtProc = testService({}, { rateLimit: { domain: "shop", descriptors, inExtProc: true } });

describe("rateLimitFilter()", () => {
  it("asks Headgate in its time, lets pass without an answer, and says when to come back", () => {
    const { context } = testContext();
    const filter = rateLimitFilter([plainService, shop], context);
    expect(filterFields(filter)).toMatchObject({
      domain: "shop",
      timeout: "0.02s",
      failure_mode_deny: false,
      filter_enabled: { runtime_key: "ratelimit.http_filter_enabled" },
      filter_enforced: { runtime_key: "ratelimit.http_filter_enforcing" },
      enable_x_ratelimit_headers: "DRAFT_VERSION_03",
      enable_retry_after_header: true,
      rate_limited_as_resource_exhausted: true,
      rate_limit_service: { grpc_service: { envoy_grpc: { cluster_name: "headgate" } } },
    });
    expect(filterFields(filter)).not.toHaveProperty("status_on_error");
    expect(apiProblems("envoy.config.core.v3.TypedExtensionConfig", filter)).toEqual([]);
  });

  it("refuses without an answer where the policy says so", () => {
    const headgate = { ...defaultProxies.headgate, deniesWithoutAnswer: true };
    const { context } = testContext({ proxies: { headgate } });
    expect(filterFields(rateLimitFilter([shop], context))).toMatchObject({
      failure_mode_deny: true,
      status_on_error: { code: "ServiceUnavailable" },
    });
  });

  it("is not there for services that ask nothing, or ask in ext_proc", () => {
    const { context } = testContext();
    expect(rateLimitFilter([plainService, inExtProc], context)).toBeUndefined();
    expect(rateLimitPerRoute(plainService, context)).toBeUndefined();
    expect(rateLimitPerRoute(inExtProc, context)).toBeUndefined();
  });

  it("has no fields that an older Envoy does not know", () => {
    const { context } = testContext({ minor: 30 });
    const fields = filterFields(rateLimitFilter([shop], context));
    expect(fields).not.toHaveProperty("filter_enabled");
    expect(fields).not.toHaveProperty("filter_enforced");
    expect(fields).not.toHaveProperty("enable_retry_after_header");
  });
});

describe("rateLimitPerRoute()", () => {
  it("names the service's own domain, and what is asked", () => {
    const { context } = testContext();
    const config = rateLimitPerRoute(shop, context);
    expect(plain(config)).toEqual({
      "@type": "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute",
      domain: "shop",
      rate_limits: [{ actions: [{ remote_address: {} }] }],
    });
    expect(apiProblems("google.protobuf.Any", config)).toEqual([]);
  });

  it("leaves what is asked to the virtual host before Envoy 1.33, and only then", () => {
    const { context } = testContext({ minor: 32 });
    expect(plain(rateLimitPerRoute(shop, context))).not.toHaveProperty("rate_limits");
    expect(virtualHostRateLimits(shop, context)?.map(plain)).toEqual([
      { actions: [{ remote_address: {} }] },
    ]);
    expect(virtualHostRateLimits(plainService, context)).toBeUndefined();
    expect(virtualHostRateLimits(shop, testContext({ minor: 33 }).context)).toBeUndefined();
  });
});
