import { describe, expect, it } from "vitest";
import type { LimitKey } from "../../../../src/core/limits/limit.js";
import {
  ShadowInitialBuckets,
  shadowInitialBucketsMax,
} from "../../../../src/decide/shadow/shadow-initial-buckets.js";
import { testCharge } from "../../../support/charges.js";
import { testLimit } from "../../../support/policies.js";

const request = { isDenied: false, charges: [], results: [], nowUs: 0, isFromMemory: false };

function asksOf(count: number) {
  return Array.from({ length: count }, (_, i) => ({
    limit: testLimit(3),
    record: undefined,
    descriptorIndex: 0,
    charge: { ...testCharge({}), key: `user${i}` as LimitKey },
  }));
}

describe("ShadowBeginnings", () => {
  it("knows of no more buckets than its bound", () => {
    const beginnings = new ShadowInitialBuckets(0);
    const call = { liveName: (key: LimitKey) => key, request, epochUs: 0 };
    const begun = beginnings.of({ ...call, asks: asksOf(shadowInitialBucketsMax + 50) });
    expect(begun.length).toBeLessThanOrEqual(shadowInitialBucketsMax);
    // Some keys share a hash.
    expect(begun.length).toBeGreaterThan(shadowInitialBucketsMax - 50);
    expect(beginnings.of({ ...call, asks: asksOf(1) })).toEqual([]);
  });

  it("takes nothing of what failure modes answered", () => {
    const beginnings = new ShadowInitialBuckets(0);
    const call = { liveName: (key: LimitKey) => key, asks: asksOf(1), epochUs: 0 };
    expect(beginnings.of({ ...call, request: { ...request, isFallback: true } })).toEqual([]);
    expect(beginnings.of({ ...call, request })).toMatchObject([{ kind: "empty" }]);
  });
});
