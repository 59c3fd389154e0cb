import { describe, expect, it } from "vitest";
import { metCount, oneSeedEnv, seedsFrom } from "../support/seeds.js";
import { type RegionReport, runRegions } from "./region-run.js";
import { faultKinds } from "./region-scenarios.js";

const seeds = seedsFrom(1, 200);

/** The longest that one seed may take on a busy machine, in milliseconds. */
const seedMsMax = 10_000;

/** The least part of what the rate allows that lending makes use of. */
const leastUse = 0.95;

function shortfalls({ phases }: RegionReport): readonly string[] {
  return phases
    .filter(({ isPromised, admittedHits, restoredHits, dueHits }) => {
      return isPromised && admittedHits + Math.max(0, restoredHits) < leastUse * dueHits - 5;
    })
    .map(({ admittedHits, dueHits }) => `admitted ${admittedHits} of ${Math.round(dueHits)}`);
}

function failureText(report: RegionReport): string {
  const { seed, scenario, violations } = report;
  const how = `${oneSeedEnv(seed)} npx vitest run --project simulation regions`;
  const { limit, faults } = scenario;
  const what = `${limit.hits}/${limit.periodUs / 1_000_000} s, burst ${limit.burst}`;
  const struck = faults.map(({ kind }) => kind).join(", ");
  return [how, `${what}; ${struck}`, ...violations, ...shortfalls(report)].join("\n  ");
}

describe("global limits of five regions", () => {
  const reports: RegionReport[] = [];

  it("stay within their bound, keep each region's share, and are used (seed by seed)", {
    timeout: 10_000 + seeds.length * seedMsMax,
  }, async () => {
    for (const seed of seeds) reports.push(await runRegions(seed));
    const failed = reports.filter((report) => {
      return report.violations.length > 0 || shortfalls(report).length > 0;
    });
    expect(failed.slice(0, 5).map(failureText).join("\n")).toBe("");
    expect(failed.length).toBe(0);
  });

  it("met every fault, lent in windows too, and were used in full", () => {
    if (seeds.length < 200) return;
    const met = new Set(reports.flatMap(({ scenario }) => scenario.faults.map(({ kind }) => kind)));
    expect(faultKinds.filter((kind) => !met.has(kind))).toEqual([]);
    const promised = reports.flatMap(({ phases }) => phases.filter((one) => one.isPromised));
    const usedUp = promised.filter(({ askedHits, dueHits }) => askedHits > dueHits);
    expect(usedUp.length).toBeGreaterThan(metCount(40));
    const windowed = reports.filter(({ scenario }) => scenario.limit.algorithm !== undefined);
    const lent = windowed.filter(({ borrowedHits }) => borrowedHits > 0);
    expect(lent.length).toBeGreaterThan(metCount(10));
    const cutOffCount = reports.reduce((sum, report) => sum + report.cutOffCount, 0);
    expect(cutOffCount).toBeGreaterThan(metCount(3));
    expect(reports.filter(({ lostHits }) => lostHits > 0).length).toBeGreaterThan(metCount(20));
  });
});
