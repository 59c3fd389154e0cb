import { describe, expect, it } from "vitest";
import { metCount, runSeeds, seedsFrom } from "../support/seeds.js";
import { jainIndex } from "./quota-report.js";
import { RoomRun } from "./room-run.js";
import { fairRoom, foulRoom, plainRules, simulatedEpochMs } from "./room-scenarios.js";

/** What some runs have met together. */
function sumOf(counts: readonly RoomRun["counts"][]): RoomRun["counts"] {
  const sum = { entered: 0, full: 0, failed: 0, lost: 0, leaders: 0, shuffles: 0, spares: 0 };
  for (const count of counts) {
    for (const [name, value] of Object.entries(count)) sum[name as keyof typeof sum] += value;
  }
  return sum;
}

describe("a waiting room in foul weather", () => {
  it("keeps order, capacity and entrances, and lets everybody in", async () => {
    const counts: RoomRun["counts"][] = [];
    await runSeeds(seedsFrom(1, 40), async (seed) => {
      const run = new RoomRun(foulRoom(seed), seed);
      await run.run(3_600);
      expect(run.violations).toEqual([]);
      counts.push(run.counts);
    });
    // Else nothing was tried.
    const met = sumOf(counts);
    expect(met.entered).toBeGreaterThanOrEqual(Math.floor(metCount(1_600)));
    expect(met.full).toBeGreaterThanOrEqual(Math.floor(metCount(300)));
    expect(met.failed).toBeGreaterThanOrEqual(Math.floor(metCount(600)));
    expect(met.lost).toBeGreaterThanOrEqual(Math.floor(metCount(25)));
    expect(met.leaders).toBeGreaterThanOrEqual(Math.floor(metCount(160)));
    expect(met.shuffles).toBeGreaterThanOrEqual(Math.floor(metCount(4)));
    expect(met.spares).toBeGreaterThanOrEqual(Math.floor(metCount(60)));
  });
});

describe("a waiting room in fair weather", () => {
  it("lets visitors in within a refresh of their call, in their order", async () => {
    await runSeeds(seedsFrom(1, 5), async (seed) => {
      const run = new RoomRun(fairRoom, seed);
      await run.run(1_000);
      expect(run.violations).toEqual([]);
      expect(run.counts).toMatchObject({ full: 0, failed: 0, lost: 0 });
      expect(Math.max(...run.comingSeconds)).toBeLessThan(plainRules.refreshMs / 1_000 + 0.1);
      const numbers = run.called.map(({ number }) => number);
      expect(numbers).toEqual(Array.from(numbers, (_, i) => i));
    });
  });

  it("goes on within the lease of a leader that has died", async () => {
    await runSeeds(seedsFrom(50, 6), async (seed) => {
      const busy = { arrivalsPerSecond: 6, visitSeconds: 3, stormSeconds: 60 };
      const run = new RoomRun({ ...fairRoom, ...busy }, seed);
      await run.time.runUntil(40_000 + (seed % 100) * 137);
      run.killLeader();
      const killedSecond = run.time.nowMs / 1_000;
      await run.run(1_000);
      expect(run.violations).toEqual([]);
      // The lease of 3 s, the beat after it, and a second and a half until a session ends.
      const next = run.called.find(({ second }) => second > killedSecond + 0.1);
      expect((next?.second ?? 0) - killedSecond).toBeLessThan(3 + 1 + 1.5);
    });
  });

  it("is fair to all who came before an event: Jain's index is 1", async () => {
    const startsAtMs = simulatedEpochMs + 30_000;
    const none = { activeUsersMax: undefined, entriesPerMinuteMax: undefined };
    const times = { startsAtMs, endsAtMs: startsAtMs + 1e6, preQueueMs: 30_000 };
    const events = [{ name: "opening", ...times, shuffles: true, ...none }];
    /** Sums of ranks, between 0 and 1, of those who came in each fifth of the time before. */
    const ranks = Array.from({ length: 5 }, () => ({ sum: 0, count: 0 }));
    await runSeeds(seedsFrom(100, 100), async (seed) => {
      const rules = { ...plainRules, events };
      const run = new RoomRun({ ...fairRoom, rules, stormSeconds: 32, visitSeconds: 4 }, seed);
      await run.run(1_000);
      expect(run.violations).toEqual([]);
      expect(run.shuffles).toMatchObject([{ from: 0 }]);
      const count = run.shuffles[0]?.count ?? 0;
      for (const [rank, { number }] of run.called.slice(0, count).entries()) {
        const fifth = ranks[Math.floor((5 * number) / count)];
        if (fifth === undefined) continue;
        fifth.sum += rank / count;
        fifth.count += 1;
      }
    });
    const means = ranks.map(({ sum, count }) => sum / count);
    expect(jainIndex(means)).toBeGreaterThan(0.998);
  });
});
