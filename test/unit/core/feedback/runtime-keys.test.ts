import { describe, expect, it } from "vitest";
import {
  admissionControlKey,
  breakerKey,
  localRateLimitKey,
  retryBudgetKey,
  roomRejectKey,
  shedKey,
} from "../../../../src/core/feedback/runtime-keys.js";

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

describe("retryBudgetKey()", () => {
  it("names a part of a budget", () => {
    expect(retryBudgetKey("orders", "high", "budget_percent")).toBe(
      "circuit_breakers.orders.high.retry_budget.budget_percent",
    );
  });
});

describe("shedKey()", () => {
  it("names a service and a class", () => {
    expect(shedKey("orders", "low")).toBe("headgate.shed.orders.low");
  });
});

describe("roomRejectKey()", () => {
  it("names a waiting room", () => {
    expect(roomRejectKey("shop")).toBe("headgate.waiting_room.shop.reject");
  });
});

describe("localRateLimitKey()", () => {
  it("names a service", () => {
    expect(localRateLimitKey("orders")).toBe("headgate.local_rate_limit.orders");
  });
});

describe("admissionControlKey()", () => {
  it("names a service", () => {
    expect(admissionControlKey("orders")).toBe("headgate.admission_control.orders");
  });
});
