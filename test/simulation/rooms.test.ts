import { describe, expect, it } from "vitest";
import { runSeeds, seedsFrom } from "../support/seeds.js";
import { RoomRun } from "./room-run.js";
import { foulRoom } from "./room-scenarios.js";

describe("a waiting room in foul weather", () => {
  it("keeps order, capacity and entrances, and lets everybody in", async () => {
    const met = { entered: 0, full: 0, failed: 0, lost: 0, leaders: 0, shuffles: 0, spares: 0 };
    await runSeeds(seedsFrom(1, 200), async (seed) => {
      const run = new RoomRun(foulRoom(seed), seed);
      await run.run(3_600);
      expect(run.violations).toEqual([]);
      for (const [name, count] of Object.entries(run.counts)) {
        met[name as keyof typeof met] += count;
      }
    });
    process.stdout.write(JSON.stringify(met));
    expect(met.leaders).toBeGreaterThan(0);
  });
});
