import { describe, expect, it } from "vitest";
import { createStyle, isColorWanted } from "../../../src/app/base/style.js";
import { createDemoLogger } from "../../../src/demo/demo-play.js";
import { describeLimit, TrafficReport } from "../../../src/demo/demo-report.js";
import type { Answer, Caller } from "../../../src/demo/demo-traffic.js";

const alice: Caller = { name: "alice", plan: "free", everyMs: 500 };
const acme: Caller = { name: "acme", plan: "partner", everyMs: 200 };
const allowed: Answer = { kind: "allowed", isDecided: true };
const refused: Answer = {
  kind: "refused",
  limit: { name: "pace", hits: 5, periodSeconds: 10 },
  waitSeconds: 2,
};
const plain = createStyle(false);

function createReport(): { report: TrafficReport; lines: string[] } {
  const lines: string[] = [];
  const print = (text: string): void => void lines.push(text);
  const callers = [alice, acme];
  const report = new TrafficReport({ callers, style: plain, print, policyPath: "policy.yaml" });
  return { report, lines };
}

describe("TrafficReport", () => {
  it("counts each caller's answers below its name", () => {
    const { report, lines } = createReport();
    report.printHead();
    report.note(alice, allowed);
    report.note(alice, allowed);
    report.note(acme, { kind: "failed", words: "status 503" });
    report.tick();
    const [head = "", line = ""] = lines;
    expect(line).toMatch(/^ +1 s {2}2 ok +1 failed \(status 503\)$/);
    expect(head.indexOf("alice (free)")).toBe(line.indexOf("2 ok"));
    expect(head.indexOf("acme (partner)")).toBe(line.indexOf("1 failed"));
  });

  it("begins every line at nothing", () => {
    const { report, lines } = createReport();
    report.note(acme, allowed);
    report.tick();
    report.note(acme, allowed);
    report.tick();
    expect(lines.map((line) => line.trim())).toEqual([
      expect.stringMatching(/^1 s +1 ok$/),
      expect.stringMatching(/^2 s +1 ok$/),
    ]);
  });

  it("prints ten lines, then one in ten seconds with all that came since", () => {
    const { report, lines } = createReport();
    for (let second = 1; second <= 30; second += 1) {
      report.note(alice, allowed);
      report.tick();
    }
    expect(lines).toHaveLength(12);
    expect(lines.slice(-2)).toEqual(["   20 s  10 ok", "   30 s  10 ok"]);
  });

  it("explains the first refusal, and only that one", () => {
    const { report, lines } = createReport();
    expect(report.note(alice, refused)).toBe(true);
    expect(report.note(acme, refused)).toBe(false);
    const text = lines.join("\n");
    expect(text).toContain(
      'The first 429: alice has used up "pace", 5 requests in 10 s. The next ' +
        "request fits in 2 s.",
    );
    expect(text).toContain("policy.yaml");
    expect(text).not.toContain("acme");
  });

  it("explains a refusal of which nothing is known", () => {
    const { report, lines } = createReport();
    report.note(alice, { kind: "refused" });
    expect(lines.join("\n")).toContain("alice has used up the limit.");
  });
});

describe("describeLimit()", () => {
  it("tells a limit without a name by its numbers", () => {
    expect(describeLimit({ hits: 5, periodSeconds: 60 })).toBe("a limit of 5 requests in 60 s");
  });
});

describe("isColorWanted()", () => {
  const cases: readonly [env: Record<string, string>, isTerminal: boolean, wanted: boolean][] = [
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: "1" }, true, false],
    [{ NO_COLOR: "" }, true, true],
    [{ TERM: "dumb" }, true, false],
    [{ FORCE_COLOR: "1" }, false, true],
    [{ FORCE_COLOR: "0" }, true, false],
    [{ FORCE_COLOR: "1", NO_COLOR: "1" }, true, false],
  ];
  it.each(cases)("%o, terminal %s: %s", (env, isTerminal, wanted) => {
    expect(isColorWanted(env, isTerminal)).toBe(wanted);
  });
});

describe("createStyle()", () => {
  it("paints, or leaves the text alone", () => {
    expect(createStyle(true).bad("x")).toBe("\u001b[31mx\u001b[0m");
    expect(plain.bad("x")).toBe("x");
  });
});

describe("createDemoLogger()", () => {
  it("tells of edits, warnings and errors, and of nothing else", () => {
    const lines: string[] = [];
    const logger = createDemoLogger({ print: (text) => void lines.push(text), style: plain });
    logger.debug({ event: "x" }, "debug");
    logger.info({ event: "serving" }, "serving");
    logger.info({ event: "policyLoaded", ruleCount: 3 }, "first");
    expect(lines).toEqual([]);
    logger.info({ event: "policyLoaded", ruleCount: 4 }, "second");
    logger.warn({ event: "x" }, "A warning.");
    logger.error({ event: "policyRefused" }, "Refused:\np.yaml:1:1");
    expect(lines.map((line) => line.trim())).toEqual([
      "The edited policy is active: 4 rules.",
      "A warning.",
      "Refused:\n  p.yaml:1:1",
    ]);
  });
});
