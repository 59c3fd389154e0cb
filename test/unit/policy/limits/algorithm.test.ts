import { describe, expect, it } from "vitest";
import type { Limit, LimitDefaults } from "../../../../src/core/limits/limit.js";
import { parsePolicy } from "../../../../src/policy/parse.js";

describe("LimitDefaults", () => {
  const limitOf = (limit: string, defaults?: LimitDefaults): Limit | undefined => {
    const text = [
      "apiVersion: headgate.dev/v1alpha1",
      "kind: Policy",
      "metadata: {name: shop}",
      "spec:",
      `  rateLimits: [{domain: shop, descriptors: [{key: user, ${limit}}]}]`,
    ].join("\n");
    const parsed = parsePolicy([{ file: "a.yaml", text }], defaults && { defaults });
    if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
    const effect = parsed.rules[0]?.effect;
    return effect?.kind === "limited" ? effect.limits[0] : undefined;
  };
  const windowed: LimitDefaults = { algorithm: "fixed_window", onStoreFailure: "error" };
  const day = "unit: day, requests_per_unit: 5";

  it("hold for limits that say nothing themselves", () => {
    expect(limitOf(`rate_limit: {${day}}`)).toMatchObject({ onStoreFailure: "local" });
    expect(limitOf(`rate_limit: {${day}}`)?.algorithm).toBeUndefined();
    expect(limitOf(`rate_limit: {${day}}`, windowed)).toMatchObject({
      onStoreFailure: "error",
      algorithm: { kind: "fixed_window" },
    });
  });

  it("give way to what a limit says, and windows to a burst", () => {
    const smooth = limitOf(
      `rate_limit: {${day}, algorithm: gcra}, on_store_failure: deny`,
      windowed,
    );
    expect(smooth).toMatchObject({ onStoreFailure: "deny" });
    expect(smooth?.algorithm).toBeUndefined();
    expect(limitOf(`rate_limit: {${day}, burst: 2}`, windowed)?.algorithm).toBeUndefined();
  });
});
