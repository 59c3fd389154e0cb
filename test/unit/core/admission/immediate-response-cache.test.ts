import { describe, expect, it } from "vitest";
import {
  ImmediateResponseCache,
  keptRefusalsMax,
} from "../../../../src/core/admission/immediate-response-cache.js";

const settings = { retryAfterSecondsMin: 1, retryAfterJitterRatio: 0, statusByCause: {} };

function requestOf(fields: Readonly<Record<string, string>>) {
  const headers = new Map(Object.entries(fields));
  return {
    serviceName: "orders",
    peer: "envoy",
    headers,
    attributes: new Map(),
    isObserved: false,
  };
}

describe("ImmediateResponseCache", () => {
  it("makes each refusal once for each kind of request", () => {
    const cache = new ImmediateResponseCache({ service: "orders", settings, draw: () => 0 });
    const unknown = { wait: { kind: "unknown" } } as const;
    const get = cache.refusal("gate", requestOf({ ":method": "GET" }), unknown);
    expect(cache.refusal("gate", requestOf({ ":method": "POST" }), unknown)).toBe(get);
    const head = cache.refusal("gate", requestOf({ ":method": "HEAD" }), unknown);
    const grpc = cache.refusal(
      "gate",
      requestOf({ ":method": "POST", "content-type": "application/grpc+proto" }),
      unknown,
    );
    expect([get.body === "", head.body === "", grpc.grpcStatus]).toEqual([false, true, 14]);
    expect(cache.size).toBe(3);
  });

  it("keeps no more than its bound", () => {
    const cache = new ImmediateResponseCache({ service: "orders", settings, draw: () => 0 });
    for (let i = 1; i <= 3 * keptRefusalsMax; i += 1) {
      cache.refusal("rateLimit", requestOf({}), { wait: { kind: "known", ms: i * 1_000 } });
      expect(cache.size).toBeLessThanOrEqual(keptRefusalsMax);
    }
  });
});
