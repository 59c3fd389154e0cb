import { describe, expect, it } from "vitest";
import type { FailureMode, Role } from "../../../../src/core/limits/limit.js";
import { shedModeOf } from "../../../../src/decide/rate-limit/shedding.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

interface Row {
  readonly limits: readonly (readonly [FailureMode, Role])[];
  readonly expected: FailureMode;
}

const rows: readonly Row[] = [
  { limits: [], expected: "allow" },
  { limits: [["allow", "enforce"]], expected: "allow" },
  {
    limits: [
      ["allow", "enforce"],
      ["error", "enforce"],
    ],
    expected: "error",
  },
  {
    limits: [
      ["error", "enforce"],
      ["local", "enforce"],
    ],
    expected: "deny",
  },
  {
    limits: [
      ["deny", "quota"],
      ["error", "enforce"],
    ],
    expected: "deny",
  },
  {
    limits: [
      ["deny", "shadow"],
      ["local", "settle"],
    ],
    expected: "allow",
  },
];

describe("shedModeOf()", () => {
  it.each([
    ["local", "deny"],
    ["deny", "deny"],
    ["error", "error"],
    ["allow", "allow"],
  ] as const)("goes by limits that calls carry, too: %s is %s", (carried, expected) => {
    const allows = { path: ["k"], effect: [testLimit(3, { onStoreFailure: "allow" })] };
    expect(shedModeOf(testPolicy([allows]), carried)).toBe(expected);
  });

  it.each(rows)("is $expected of $limits", ({ limits, expected }) => {
    const effects = limits.map(([onStoreFailure, role], i) => ({
      path: [`k${i}`],
      effect: [testLimit(3, { onStoreFailure, role })],
    }));
    expect(shedModeOf(testPolicy(effects), undefined)).toBe(expected);
  });
});
