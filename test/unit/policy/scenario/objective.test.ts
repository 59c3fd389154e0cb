import { describe, expect, it } from "vitest";
import { meetsObjective, parseObjective } from "../../../../src/policy/scenario/objective.js";

const names = { callers: ["web.eu"], services: ["api"] };

describe("parseObjective()", () => {
  it.each([
    ["goodput >= 0.95", undefined, "goodput", 0.95],
    ["api.goodput >= 95%", { kind: "service", name: "api" }, "goodput", 0.95],
    ["critical.served > 99.9 %", { kind: "class", name: "critical" }, "served", 0.999],
    ["web.eu.p99 <= 1s500ms", { kind: "caller", name: "web.eu" }, "p99", 1_500],
    ["attempts<1.5", undefined, "attempts", 1.5],
  ])("reads %s", (text, of, metric, bound) => {
    const read = parseObjective(text, names);
    expect(read).toMatchObject({ of, metric });
    expect(read).toHaveProperty("bound", expect.closeTo(bound, 9));
  });

  it.each([
    ["goodput", "HG124"],
    ["goodput >= 1.5", "HG124"],
    ["p99 <= 300", "HG124"],
    ["p99 = 300ms", "HG124"],
    ["latency <= 300ms", "HG133"],
    ["tenant.served >= 0.9", "HG133"],
    ["critical.goodput >= 0.9", "HG133"],
  ])("refuses %s", (text, id) => {
    expect(parseObjective(text, names)).toMatchObject({ id });
  });
});

describe("meetsObjective()", () => {
  it.each([
    [">=", 0.5, true],
    [">", 0.5, false],
    ["<=", 0.5, true],
    ["<", 0.5, false],
    [">=", undefined, false],
    ["<=", Number.NaN, false],
  ] as const)("holds 0.5 %s %s: %s", (operator, actual, isMet) => {
    expect(meetsObjective({ operator, bound: 0.5 }, actual)).toBe(isMet);
  });
});
