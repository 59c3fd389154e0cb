import { describe, expect, it } from "vitest";
import { hasFeature, reportOld } from "../../../../../src/generate/envoy/base/envoy-features.js";
import { testContext } from "../../../../support/envoy-parts.js";

describe("hasFeature()", () => {
  it("is so from the first minor version on that surely has it", () => {
    const isThere = (minor: number): boolean =>
      hasFeature(testContext({ minor }).context, "refunds");
    expect([30, 37, 38, 40].map(isThere)).toEqual([false, false, true, true]);
  });
});

describe("reportOld()", () => {
  it("says what is missing, where, and from which version on it is there", () => {
    const { context, problems } = testContext({ minor: 34 });
    reportOld(context, {
      service: "orders",
      path: ["adaptiveConcurrency", "minRtt"],
      feature: "fixedMinRtt",
      what: "a fixed minRtt",
      instead: "use a sampled minRtt",
    });
    expect(problems).toEqual([
      {
        id: "HG321",
        spot: { service: "orders", path: ["adaptiveConcurrency", "minRtt"] },
        message: "Envoy 1.34 does not support a fixed minRtt, which needs 1.35 or later",
        hint: "--envoy-version 1.35, or use a sampled minRtt",
        severity: "error",
      },
    ]);
  });
});
