import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { grpcStatuses, othersGrpcStatuses } from "../../../../src/core/base/grpc-status.js";
import { encodeRetryStatus } from "../../../../src/core/base/rpc-status.js";
import type { AttemptOutcome } from "../../../../src/core/calls/attempt-outcome.js";
import {
  grpcOutcome,
  type HeaderLookup,
  httpOutcome,
} from "../../../../src/core/calls/call-outcome.js";
import { hintMsMax } from "../../../../src/core/calls/retry-hint.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns } from "../../../support/seeds.js";

type Headers = Readonly<Record<string, string>>;

const lookup =
  (headers: Headers): HeaderLookup =>
  (name) =>
    headers[name];

/** 2026-11-27 08:00:00 UTC. */
const nowMs = 1_795_766_400_000;

function http(status: number, headers: Headers = {}): AttemptOutcome {
  return httpOutcome({ status, header: lookup(headers) }, nowMs);
}

function grpc(code: number, headers: Headers = {}, statusDetails?: Uint8Array): AttemptOutcome {
  return grpcOutcome({ code, header: lookup(headers), statusDetails }, nowMs);
}

const overloaded = "x-envoy-overloaded";
const rateLimited = "x-envoy-ratelimited";

describe("httpOutcome()", () => {
  it.each([
    { status: 200, kind: "served", retriable: "never" },
    { status: 304, kind: "served", retriable: "never" },
    { status: 404, kind: "served", retriable: "never" },
    { status: 408, kind: "overloaded", retriable: "ifIdempotent" },
    { status: 429, kind: "overloaded", retriable: "always", waitLaw: "quota" },
    { status: 500, kind: "failed", retriable: "ifIdempotent" },
    { status: 501, kind: "failed", retriable: "never" },
    { status: 502, kind: "failed", retriable: "ifIdempotent" },
    { status: 503, kind: "overloaded", retriable: "ifIdempotent" },
    { status: 504, kind: "overloaded", retriable: "ifIdempotent" },
    { status: 599, kind: "failed", retriable: "ifIdempotent" },
    { status: Number.NaN, kind: "failed", retriable: "ifIdempotent" },
  ])("takes $status as $kind, to be retried $retriable", ({ status, ...outcome }) => {
    expect(http(status)).toEqual(outcome);
  });

  it("knows a 503 that was refused before the service began", () => {
    const refused = { kind: "overloaded", retriable: "always" };
    expect(http(503, { [overloaded]: "true" })).toEqual(refused);
    expect(http(503, { [rateLimited]: "true" })).toEqual(refused);
    expect(http(503, { "retry-after": "2" })).toEqual({ ...refused, retryAfterMs: 2_000 });
    expect(http(503, { "retry-after": "-2" }).retriable).toBe("ifIdempotent");
    expect(http(503, { [overloaded]: "false" }).retriable).toBe("ifIdempotent");
  });

  it("does not take what Envoy marks and passes on as a refusal", () => {
    expect(http(200, { [rateLimited]: "true" })).toEqual({ kind: "served", retriable: "never" });
    expect(http(404, { [rateLimited]: "true" })).toEqual({ kind: "served", retriable: "never" });
    expect(http(500, { [rateLimited]: "true", "retry-after": "1" })).toEqual({
      kind: "failed",
      retriable: "ifIdempotent",
      retryAfterMs: 1_000,
    });
  });

  it("states the wait that the service asks for, also by a date", () => {
    expect(http(429, { "retry-after": "7" }).retryAfterMs).toBe(7_000);
    const date = "Fri, 27 Nov 2026 08:00:10 GMT";
    expect(http(429, { "retry-after": date }).retryAfterMs).toBe(10_000);
    expect(http(429, { "retry-after": "-1" })).not.toHaveProperty("retryAfterMs");
    expect(http(200, { "retry-after": "7" })).not.toHaveProperty("retryAfterMs");
  });
});

describe("grpcOutcome()", () => {
  const { resourceExhausted, unavailable } = grpcStatuses;

  it.each([
    { code: grpcStatuses.ok, kind: "served", retriable: "never" },
    { code: othersGrpcStatuses.cancelled, kind: "cancelled", retriable: "never" },
    { code: othersGrpcStatuses.unknown, kind: "failed", retriable: "ifIdempotent" },
    { code: grpcStatuses.invalidArgument, kind: "served", retriable: "never" },
    { code: grpcStatuses.deadlineExceeded, kind: "overloaded", retriable: "ifIdempotent" },
    { code: grpcStatuses.notFound, kind: "served", retriable: "never" },
    { code: othersGrpcStatuses.aborted, kind: "served", retriable: "ifIdempotent" },
    { code: grpcStatuses.internal, kind: "failed", retriable: "ifIdempotent" },
    { code: unavailable, kind: "overloaded", retriable: "ifIdempotent" },
    { code: othersGrpcStatuses.dataLoss, kind: "failed", retriable: "never" },
    { code: othersGrpcStatuses.unauthenticated, kind: "served", retriable: "never" },
    { code: 99, kind: "served", retriable: "never" },
  ])("takes $code as $kind, to be retried $retriable", ({ code, ...outcome }) => {
    expect(grpc(code)).toEqual(outcome);
  });

  it("follows the law of quotas after RESOURCE_EXHAUSTED", () => {
    const outcome = { kind: "overloaded", retriable: "ifIdempotent", waitLaw: "quota" };
    expect(grpc(resourceExhausted)).toEqual(outcome);
  });

  const retryStatus = encodeRetryStatus({ code: 8, message: "", retrySeconds: 3 });

  it.each([
    { title: "a pushback", headers: { "grpc-retry-pushback-ms": "250" }, retryAfterMs: 250 },
    { title: "retry-after", headers: { "retry-after": "2" }, retryAfterMs: 2_000 },
    { title: "a RetryInfo", headers: {}, details: retryStatus, retryAfterMs: 3_000 },
    {
      title: "the longer of two",
      headers: { "retry-after": "2" },
      details: retryStatus,
      retryAfterMs: 3_000,
    },
    {
      title: "the longer of two",
      headers: { "retry-after": "4" },
      details: retryStatus,
      retryAfterMs: 4_000,
    },
    {
      title: "a pushback before all others",
      headers: { "grpc-retry-pushback-ms": "0", "retry-after": "4" },
      details: retryStatus,
      retryAfterMs: 0,
    },
    { title: "Envoy's mark", headers: { [overloaded]: "true" }, retryAfterMs: undefined },
    { title: "Envoy's mark", headers: { [rateLimited]: "true" }, retryAfterMs: undefined },
  ])("knows a refusal by $title", ({ headers, details, retryAfterMs }) => {
    for (const code of [resourceExhausted, unavailable]) {
      const outcome = grpc(code, { ...headers }, details);
      expect([outcome.retriable, outcome.retryAfterMs]).toEqual(["always", retryAfterMs]);
    }
    const internal = grpc(grpcStatuses.internal, { ...headers }, details);
    expect([internal.retriable, internal.retryAfterMs]).toEqual(["ifIdempotent", retryAfterMs]);
  });

  it.each(["-1", "", "soon", "1, 2"])("never retries after a pushback of %j", (text) => {
    const outcome = grpc(unavailable, { "grpc-retry-pushback-ms": text, "retry-after": "1" });
    expect(outcome).toEqual({ kind: "overloaded", retriable: "never" });
    expect(grpc(grpcStatuses.internal, { "grpc-retry-pushback-ms": text }).retriable).toBe("never");
  });

  it("bounds a RetryInfo of thousands of years", () => {
    const long = encodeRetryStatus({ code: 8, message: "", retrySeconds: 300_000_000_000 });
    expect(grpc(resourceExhausted, {}, long).retryAfterMs).toBe(hintMsMax);
  });

  it("states no impossible outcome, whatever comes back", () => {
    const text = fc.oneof(
      fc.string({ unit: anyCodePoint, maxLength: 40 }),
      fc.integer().map(String),
    );
    const names = fc.constantFrom("retry-after", "grpc-retry-pushback-ms", overloaded, rateLimited);
    const headers = fc.dictionary(names, text);
    const numbers = fc.oneof(fc.integer(), fc.integer({ min: 0, max: 600 }), fc.double());
    fc.assert(
      fc.property(numbers, headers, fc.uint8Array(), (number, some, details) => {
        for (const outcome of [http(number, some), grpc(number, some, details)]) {
          const { kind, retriable, retryAfterMs = 0 } = outcome;
          expect(retryAfterMs >= 0 && retryAfterMs <= hintMsMax).toBe(true);
          if (kind === "cancelled") expect(retriable).toBe("never");
          if (retriable === "always") expect(kind).toBe("overloaded");
        }
      }),
      propertyRuns(500),
    );
  });
});
