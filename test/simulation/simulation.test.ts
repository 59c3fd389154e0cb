import { describe, expect, it } from "vitest";
import { oneSeedEnv, seedsFrom } from "../support/seeds.js";
import type { Incident } from "../support/simulated-link.js";
import type { AnswerSource } from "./ask.js";
import { faultKinds } from "./faults.js";
import { type RunReport, runSeed } from "./run.js";
import { shapes } from "./stores.js";

const seeds = seedsFrom(1, 120);

/** The longest that one seed may take on a busy machine, in milliseconds. */
const seedMsMax = 10_000;

/** What requests over several parts, and calls to a cluster, must have met. */
const incidents: readonly Incident[] = [
  "peek lost",
  "charge lost",
  "giveBack lost",
  "peek refused",
  "charge refused",
  "given back",
  "moved",
  "ask",
  "tryAgain",
];

/** Violations shown of a seed that fails; the first one matters most. */
const shownMax = 5;

function failureText({ seed, shape, faults, violations }: RunReport): string {
  const how = `${oneSeedEnv(seed)} npx vitest run --project simulation`;
  const shown = violations.slice(0, shownMax);
  return [how, `${shape}; faults: ${faults.join(", ")}`, ...shown].join("\n  ");
}

describe("a fleet on its stores", () => {
  const reports: RunReport[] = [];

  it("keeps the promise, seed by seed", {
    timeout: 10_000 + seeds.length * seedMsMax,
  }, async () => {
    for (const seed of seeds) reports.push(await runSeed(seed));
    const failed = reports.filter(({ violations }) => violations.length > 0);
    expect(failed.slice(0, 3).map(failureText).join("\n")).toBe("");
  });

  it("is met by every fault, and answered by everybody who answers", () => {
    // A few seeds meet what they meet.
    if (seeds.length < 120) return;
    const met = new Set(reports.flatMap(({ faults }) => faults));
    expect(faultKinds.filter((kind) => !met.has(kind))).toEqual([]);
    expect(reports.some(({ faults }) => faults.length === 0)).toBe(true);
    expect(shapes.filter((shape) => reports.every((report) => report.shape !== shape))).toEqual([]);
    const isMet = (incident: Incident): boolean =>
      reports.some((report) => report.incidents.has(incident));
    expect(incidents.filter((incident) => !isMet(incident))).toEqual([]);
    for (const source of ["store", "memory", "fallback"] satisfies AnswerSource[]) {
      const count = reports.reduce((sum, report) => sum + report.answersBySource[source], 0);
      expect({ source, isCommon: count > 10 * reports.length }).toEqual({ source, isCommon: true });
    }
    expect(reports.reduce((sum, report) => sum + report.togetherCount, 0)).toBeGreaterThan(1_000);
  });
});
