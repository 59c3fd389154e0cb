import { describe, expect, it } from "vitest";
import { renderPolicy } from "../../../../src/app/observability/debug-http.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

describe("renderPolicy()", () => {
  it("has a line for each limit, with what is not plain about it", () => {
    const policy = testPolicy([
      { path: ["a"], effect: { kind: "none" } },
      { path: ["a", "b"], effect: { kind: "unlimited" } },
      { path: ["c=1"], effect: [testLimit(5), testLimit(9, { name: "n", unit: "day" })] },
      { path: ["d"], effect: [testLimit(5, { role: "shadow", burst: 2, unitMultiplier: 10 })] },
      { path: ["e"], effect: [testLimit(5, { role: "quota", onStoreFailure: "deny" })] },
      { path: ["f"], effect: [testLimit(5, { role: "settle" })] },
      {
        path: ["g"],
        effect: [testLimit(5, { algorithm: { kind: "fixed_window", timeZone: "UTC" } })],
      },
    ]);
    const plain = "unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false";
    expect(renderPolicy(policy).trimEnd().split("\n")).toEqual([
      "shop.a.b: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
      `shop.c_1: ${plain}`,
      "shop.c_1: unit=DAY requests_per_unit=9, shadow_mode: false, quota_mode: false, name: n",
      "shop.d: unit=MINUTE requests_per_unit=5, shadow_mode: true, quota_mode: false, " +
        "unit_multiplier: 10, burst: 2",
      "shop.e: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: true, " +
        "on_store_failure: deny",
      `shop.f: ${plain}, charge: settle`,
      `shop.g: ${plain}, algorithm: fixed_window, time_zone: UTC`,
    ]);
  });

  it("has the lines of envoyproxy/ratelimit alone for rules of its files", () => {
    const limit = testLimit(5, { name: "n", onStoreFailure: "error" });
    const fields = { settlesOncePeeked: true } as const;
    expect(renderPolicy(testPolicy([{ path: ["a"], effect: [limit], fields }]))).toBe(
      "shop.a: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false\n",
    );
  });

  it("is empty where there is none, as there", () => {
    expect(renderPolicy(undefined)).toBe("");
    expect(renderPolicy(testPolicy([]))).toBe("");
  });
});
