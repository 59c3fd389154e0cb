import { describe, expect, it } from "vitest";
import { type Charge, costHitsMax } from "../../../src/core/limits/bucket.js";
import { multiplicityMax } from "../../../src/core/limits/gcra.js";
import { drainTimeUsMax, hitsMax } from "../../../src/core/limits/limit.js";
import { assertBatch } from "../../../src/store/batch.js";
import {
  batchChargesMax,
  requestChargesMax,
  type StoreRequest,
} from "../../../src/store/limit-store.js";
import { once, testCharge } from "../../support/charges.js";

describe("assertBatch()", () => {
  it.each([
    ["no requests", []],
    ["the largest numbers", asked({ hits: hitsMax, burst: hitsMax, cost: costHitsMax })],
    ["zeros", asked({ hits: 0, burst: 0, cost: 0 })],
    ["the longest period", asked({ periodUs: drainTimeUsMax })],
    ["the most of one request", repeated(multiplicityMax, testCharge(), testCharge({ key: "b" }))],
    ["several of a limit that blocks", repeated(2, testCharge({ hits: 0, burst: 0 }))],
    ["the most charges", fill(batchChargesMax / requestChargesMax, requestChargesMax)],
  ])("accepts %s", (_name, batch) => {
    expect(() => assertBatch(batch)).not.toThrow();
  });

  it.each([
    ["an empty request", [once()]],
    ["a fraction of a hit", asked({ cost: 0.5 })],
    ["a negative cost", asked({ cost: -1 })],
    ["a cost beyond the largest", asked({ cost: costHitsMax + 1 })],
    ["not a number", asked({ burst: Number.NaN })],
    ["an endless burst", asked({ burst: Number.POSITIVE_INFINITY })],
    ["too many hits", asked({ hits: hitsMax + 1 })],
    ["a period of nothing", asked({ periodUs: 0 })],
    ["a period beyond ten years", asked({ periodUs: drainTimeUsMax + 1 })],
    ["one charge too many in a request", fill(1, requestChargesMax + 1)],
    ["one charge too many in all", [...fill(2, requestChargesMax), once(testCharge())]],
    ["none of a request", repeated(0, testCharge())],
    ["a part of a request", repeated(1.5, testCharge())],
    ["too many of a request", repeated(multiplicityMax + 1, testCharge())],
    ["several peeks", repeated(2, testCharge({ cost: 0 }))],
    ["several refunds", repeated(2, testCharge({ isRefund: true }))],
    ["several settle charges", repeated(2, testCharge({ role: "settle" }))],
    ["several shadow charges", repeated(2, testCharge({ role: "shadow" }))],
    ["several quota charges", repeated(2, testCharge(), testCharge({ key: "b", role: "quota" }))],
    ["several of a key that is charged twice", repeated(2, testCharge(), testCharge())],
    ["several of what never drains", repeated(2, testCharge({ hits: 0 }))],
  ])("throws on %s", (_name, batch) => {
    expect(() => assertBatch(batch)).toThrow("assertion failed");
  });

  it("says that a batch is too large, and not only one of its requests", () => {
    const batch = [...fill(2, requestChargesMax), once(testCharge())];
    expect(() => assertBatch(batch)).toThrow("batch size in range");
  });
});

function asked(overrides: Parameters<typeof testCharge>[0]): StoreRequest[] {
  return [once(testCharge(overrides))];
}

function repeated(multiplicity: number, ...charges: readonly Charge[]): StoreRequest[] {
  return [{ charges, multiplicity }];
}

function fill(requestCount: number, chargeCount: number): StoreRequest[] {
  return Array.from({ length: requestCount }, () =>
    once(...Array.from({ length: chargeCount }, () => testCharge())),
  );
}
