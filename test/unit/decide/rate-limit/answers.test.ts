import { describe, expect, it } from "vitest";
import type { ChargeResult } from "../../../../src/core/limits/gcra.js";
import { descriptorOutcome, present } from "../../../../src/decide/rate-limit/answers.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { DecidedRequest } from "../../../../src/decide/rate-limit/decision-observer.js";
import type { PreparedQuery } from "../../../../src/decide/rate-limit/prepared-query.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(10)] },
  { path: ["group"], effect: [testLimit(10)] },
]);

function prepare(): PreparedQuery {
  const descriptors = ["user", "group"].map((key) => {
    return { entries: [{ key, value: "a" }], hits: 1, isRefund: false };
  });
  const decider = createTestDecider({
    policies: { current: () => policy },
    clock: new FakeClock(),
    counters: new DecisionCounters(),
  });
  return decider.prepare({ domain: "shop", descriptors }, false);
}

const held: ChargeResult = { isOver: false, bucket: { level: 0, tUs: 0 } };
const over: ChargeResult = { isOver: true, bucket: { level: 0, tUs: 0 } };

function decided(prepared: PreparedQuery, given: Partial<DecidedRequest>): DecidedRequest {
  return {
    isDenied: false,
    charges: prepared.charges,
    results: [held, held],
    nowUs: 0,
    isFromMemory: false,
    ...given,
  };
}

describe("present()", () => {
  it("fails by name where a limit has a result and was not asked", () => {
    const prepared = prepare();
    const whole = decided(prepared, {});
    expect(present(prepared, whole).statuses).toHaveLength(2);
    const [first] = whole.charges;
    const lacking = [
      { prepared, request: decided(prepared, { charges: first === undefined ? [] : [first] }) },
      { prepared: { ...prepared, asks: prepared.asks.slice(0, 1) }, request: whole },
      { prepared, request: decided(prepared, { results: [held] }) },
    ];
    for (const { prepared: query, request } of lacking) {
      expect(() => present(query, request)).toThrow(
        expect.objectContaining({ code: "STORE_PROTOCOL" }),
      );
    }
  });
});

describe("descriptorOutcome()", () => {
  it("goes by the descriptor's own limits, and not by the next one's", () => {
    const prepared = prepare();
    const request = decided(prepared, { results: [held, over] });
    const outcomes = prepared.descriptors.map((one) => descriptorOutcome(one, undefined, request));
    expect(outcomes).toEqual(["ok", "shadowOver"]);
  });
});
