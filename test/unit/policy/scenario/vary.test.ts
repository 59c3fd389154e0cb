import { describe, expect, it } from "vitest";
import { parseVariation, varyTexts } from "../../../../src/policy/scenario/vary.js";

describe("parseVariation()", () => {
  it.each([
    ["law=vegas,gradient", ["vegas", "gradient"]],
    ["max=10..50", ["10", "20", "30", "40", "50"]],
    ["max=10..1000", ["10", "32", "100", "316", "1000"]],
    ["deadline=100ms..300ms", ["100ms", "150ms", "200ms", "250ms", "300ms"]],
    ["ratio=0.1..0.5", ["0.1", "0.2", "0.3", "0.4", "0.5"]],
  ])("reads %s", (text, values) => {
    expect(parseVariation(text)).toHaveProperty("values", values);
  });

  it.each(["max", "=1", "max=", "max=1,,2"])("refuses %s", (text) => {
    expect(typeof parseVariation(text)).toBe("string");
  });
});

const texts = {
  scenario: { file: "s.yaml", text: "callers:\n  - {name: a, rate: 1}\n  - {name: b, rate: 2}\n" },
  policies: [
    { file: "p.yaml", text: "spec: {services: [{name: api, admission: {queue: {size: 5}}}]}\n" },
  ],
};

describe("varyTexts()", () => {
  it.each([
    ["a.rate", "7", "scenario", "rate: 7"],
    ["callers.b.rate", "{ramp: {from: 1, to: 2}}", "scenario", "ramp"],
    ["seed", "3", "scenario", "seed: 3"],
    ["size", "9", "policy", "size: 9"],
    ["admission.maxInFlight", "30", "policy", "maxInFlight: 30"],
  ] as const)("sets %s to %s in the %s", (path, value, where, found) => {
    const varied = varyTexts(texts, [{ path, value }]);
    if (typeof varied === "string") throw new Error(varied);
    const [scenario, policy] = [varied.scenario, ...varied.policies];
    const other = where === "policy" ? scenario : policy;
    expect((where === "policy" ? policy : scenario)?.text).toContain(found);
    expect([texts.scenario, ...texts.policies]).toContain(other);
  });

  it("suggests no place in a list", () => {
    const scenario = { file: "s.yaml", text: "objectives: [served >= 0]\n" };
    const varied = varyTexts({ scenario, policies: [] }, [{ path: "x", value: "1" }]);
    expect(varied).toContain('neither the scenario nor its policy has "x": write where');
  });

  it.each([
    ["rate", '"rate" is in 2 places: callers.a.rate or callers.b.rate'],
    ["sise", 'neither the scenario nor its policy has "sise"; did you mean "size"?'],
  ])("says why %s is not clear", (path, message) => {
    expect(varyTexts(texts, [{ path, value: "1" }])).toBe(message);
  });
});
