import { describe, expect, it } from "vitest";
import { breakerKey, shedKey } from "../../../src/core/runtime-keys.js";

describe("breakerKey()", () => {
  it.each([
    ["orders", "default", "max_requests", "circuit_breakers.orders.default.max_requests"],
    [
      "outbound|80||orders.shop.svc.cluster.local",
      "high",
      "max_pending_requests",
      "circuit_breakers.outbound|80||orders.shop.svc.cluster.local.high.max_pending_requests",
    ],
  ] as const)("names %s at %s, %s", (cluster, priority, threshold, key) => {
    expect(breakerKey(cluster, priority, threshold)).toBe(key);
  });
});

describe("shedKey()", () => {
  it("names a service and a class", () => {
    expect(shedKey("orders", "low")).toBe("headgate.shed.orders.low");
  });
});
