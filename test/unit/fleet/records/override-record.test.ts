import { describe, expect, it } from "vitest";
import type { Override, OverrideEffect } from "../../../../src/core/limits/override.js";
import { overrideFromJson, overrideToJson } from "../../../../src/fleet/records/override-record.js";

const plain: Override = {
  id: "one",
  domain: "shop",
  entries: [{ key: "user", value: "ann" }],
  isPrefix: true,
  effect: { kind: "frozen" },
  reason: "until Friday",
  author: "op",
  createdEpochMs: 1_700_000_000_000,
};

describe("overrideFromJson()", () => {
  it.each<OverrideEffect>([
    { kind: "frozen" },
    { kind: "amount", hits: 0, burst: 4_294_967_295 },
    { kind: "multiplier", by: 0.5 },
  ])("reads what overrideToJson() has written: %j", (effect) => {
    for (const more of [{}, { limitName: "daily", expiresEpochMs: 1_800_000_000_000 }]) {
      const override = { ...plain, effect, ...more };
      expect(overrideFromJson(overrideToJson(override))).toEqual(override);
    }
  });

  it.each([
    { id: 1 },
    { domain: 1 },
    { entries: [["user", 1]] },
    { entries: "user" },
    { isPrefix: "yes" },
    { effect: [] },
    { effect: { kind: "melted" } },
    { effect: { kind: "amount", hits: 1.5, burst: 1 } },
    { effect: { kind: "amount", hits: 1 } },
    { effect: { kind: "multiplier", by: 0 } },
    { effect: { kind: "multiplier", by: 1e9 } },
    { limitName: 1 },
    { expiresEpochMs: "soon" },
    { reason: 1 },
    { createdEpochMs: "then" },
  ])("does not read %j", (wrong) => {
    expect(overrideFromJson({ ...overrideToJson(plain), ...wrong })).toBeUndefined();
  });
});
