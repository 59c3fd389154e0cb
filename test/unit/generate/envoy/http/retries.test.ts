import { describe, expect, it } from "vitest";
import { retryPolicy } from "../../../../../src/generate/envoy/http/retries.js";
import { defaultRetries } from "../../../../../src/policy/upstream/default-upstream.js";
import { apiProblems, plain } from "../../../../support/envoy-parts.js";

const newest = { major: 1, minor: 40 };

describe("retryPolicy()", () => {
  it("tries again what was surely not begun", () => {
    const policy = retryPolicy(defaultRetries, newest);
    expect(policy).toMatchObject({
      retry_on: "connect-failure,refused-stream,reset-before-request",
      num_retries: 2,
      retry_back_off: { base_interval: "0.025s", max_interval: "0.25s" },
    });
    expect(plain(policy)).not.toHaveProperty("rate_limited_retry_back_off");
    expect(plain(policy)).not.toHaveProperty("per_try_timeout");
    expect(apiProblems("envoy.config.route.v3.RetryPolicy", policy)).toEqual([]);
  });

  it("waits as long as an answer says, where answers are tried again", () => {
    const answers = { ...defaultRetries, on: ["gatewayError", "5xx", "retriableStatus"] as const };
    expect(plain(retryPolicy(answers, newest))).toMatchObject({
      retry_on: "gateway-error,5xx,retriable-status-codes",
      rate_limited_retry_back_off: {
        reset_headers: [{ name: "retry-after", format: "SECONDS" }],
        max_interval: "1s",
      },
    });
    const refusals = { ...defaultRetries, on: ["rateLimited"] as const, retryAfterMsMax: 5_000 };
    expect(plain(retryPolicy({ ...refusals, perTryMs: 500 }, newest))).toMatchObject({
      retry_on: "envoy-ratelimited",
      per_try_timeout: "0.5s",
      rate_limited_retry_back_off: { max_interval: "5s" },
    });
  });

  it("says it in the words of an Envoy that has no others", () => {
    const older = retryPolicy({ ...defaultRetries, on: ["reset"] }, { major: 1, minor: 32 });
    expect(older["retry_on"]).toBe("reset");
  });
});
