import { describe, expect, it } from "vitest";
import { costHitsMax } from "../../../src/core/gcra.js";
import { drainTimeUsMax, hitsMax } from "../../../src/core/limit.js";
import { assertBatch } from "../../../src/store/batch.js";
import { batchChargesMax, requestChargesMax } from "../../../src/store/limit-store.js";
import { testCharge } from "../../support/charges.js";

describe("assertBatch()", () => {
  it.each([
    ["no requests", []],
    ["the largest numbers", [[testCharge({ hits: hitsMax, burst: hitsMax, cost: costHitsMax })]]],
    ["zeros", [[testCharge({ hits: 0, burst: 0, cost: 0 })]]],
    ["the longest period", [[testCharge({ periodUs: drainTimeUsMax })]]],
    ["the most charges", fill(batchChargesMax / requestChargesMax, requestChargesMax)],
  ])("accepts %s", (_name, batch) => {
    expect(() => assertBatch(batch)).not.toThrow();
  });

  it.each([
    ["an empty request", [[]]],
    ["a fraction of a hit", [[testCharge({ cost: 0.5 })]]],
    ["a negative cost", [[testCharge({ cost: -1 })]]],
    ["a cost beyond the largest", [[testCharge({ cost: costHitsMax + 1 })]]],
    ["not a number", [[testCharge({ burst: Number.NaN })]]],
    ["an endless burst", [[testCharge({ burst: Number.POSITIVE_INFINITY })]]],
    ["too many hits", [[testCharge({ hits: hitsMax + 1 })]]],
    ["a period of nothing", [[testCharge({ periodUs: 0 })]]],
    ["a period beyond ten years", [[testCharge({ periodUs: drainTimeUsMax + 1 })]]],
    ["one charge too many in a request", fill(1, requestChargesMax + 1)],
    ["one charge too many in all", [...fill(2, requestChargesMax), [testCharge()]]],
  ])("throws on %s", (_name, batch) => {
    expect(() => assertBatch(batch)).toThrow("assertion failed");
  });
});

function fill(requestCount: number, chargeCount: number): ReturnType<typeof testCharge>[][] {
  return Array.from({ length: requestCount }, () =>
    Array.from({ length: chargeCount }, () => testCharge()),
  );
}
