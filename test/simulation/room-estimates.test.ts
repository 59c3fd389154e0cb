import { describe, expect, it } from "vitest";
import type { EstimatedWaitSettings } from "../../src/core/admission/estimated-wait.js";
import type { RoomRules } from "../../src/core/waiting-room/room-rules.js";
import { seedsFrom } from "../support/seeds.js";
import { mean } from "../support/station.js";
import { meanWait } from "./erlang-c.js";
import { RoomQueueRun } from "./room-queue-run.js";
import { plainRules } from "./room-scenarios.js";

/**
 * The virtual-queue text's station, 10 servers with a mean service time of 1, and a minute for each
 * of its seconds: sessions are not as short as that.
 */
const unitSeconds = 60;

const hardCap: EstimatedWaitSettings = {
  max: { kind: "duration", ms: 30 * unitSeconds * 1_000 },
  sigmoid: undefined,
};

const sigmoid: EstimatedWaitSettings = {
  max: undefined,
  sigmoid: {
    midpoint: { kind: "duration", ms: 28 * unitSeconds * 1_000 },
    slopePerSecond: 0.23 / unitSeconds,
  },
};

function station(
  load: number,
  { seed, ...change }: { readonly seed: number } & Partial<RoomRules>,
): RoomQueueRun {
  const rules = { ...plainRules, sessionMs: 120_000, waitingMax: 1e5, ...change };
  const arrivalsPerSecond = (10 * load) / unitSeconds;
  const visitSeconds = (random: { next(): number }): number =>
    -unitSeconds * Math.log(1 - random.next());
  return new RoomQueueRun({ rules, arrivalsPerSecond, visitSeconds }, seed);
}

describe("ranges of waits", () => {
  const seeds = seedsFrom(1, 3);

  it("hold for 90 % at any load, within 3 %", async () => {
    let all = { heldCount: 0, count: 0 };
    for (const load of [0.95, 1, 1.2, 1.5, 2]) {
      let heldCount = 0;
      let count = 0;
      for (const seed of seeds) {
        const run = station(load, { seed, ...(load > 1 && { estimatedWait: sigmoid }) });
        await run.span(100 * unitSeconds);
        run.forget();
        await run.span(200 * unitSeconds);
        count += run.waits.length;
        heldCount += run.waits.filter(({ announced, trueSeconds }) => {
          return announced.lowSeconds <= trueSeconds && trueSeconds <= announced.highSeconds;
        }).length;
      }
      // One load alone: waits of one time share what is wrong with its estimate.
      expect(Math.abs(heldCount / count - 0.9)).toBeLessThan(0.06);
      all = { heldCount: all.heldCount + heldCount, count: all.count + count };
    }
    expect(Math.abs(all.heldCount / all.count - 0.9)).toBeLessThan(0.03);
  });
});

describe("a room that turns away by the estimated wait", () => {
  it("has a queue of about 300 with the hard cap of 30", async () => {
    const run = station(1.5, { seed: 5, estimatedWait: hardCap });
    await run.span(100 * unitSeconds);
    run.forget();
    await run.span(150 * unitSeconds);
    expect(mean(run.queueCounts)).toBeGreaterThan(260);
    expect(mean(run.queueCounts)).toBeLessThan(310);
  });

  it("has a queue of 230 to 270 with the sigmoid at 28", async () => {
    const run = station(1.5, { seed: 6, estimatedWait: sigmoid });
    await run.span(100 * unitSeconds);
    run.forget();
    await run.span(150 * unitSeconds);
    expect(mean(run.queueCounts)).toBeGreaterThan(230);
    expect(mean(run.queueCounts)).toBeLessThan(270);
  });
});

describe("a room as a queue", () => {
  // Who is called asks up to a second later, and the leader steps once a second: both make waits
  // a little longer, and sessions too.
  it("has the waits of Erlang's C where it is stable", async () => {
    const waits: number[] = [];
    for (const seed of seedsFrom(20, 2)) {
      const run = station(0.8, { seed, refreshMs: 1_000, missedRefreshesMax: 9 });
      await run.span(20 * unitSeconds);
      run.forget();
      await run.span(400 * unitSeconds);
      waits.push(...run.waitSeconds);
    }
    const expected = meanWait({ serverCount: 10, arrivalsPerSecond: 8, servedPerSecond: 1 });
    const ratio = mean(waits) / unitSeconds / expected;
    expect(ratio).toBeGreaterThan(0.9);
    expect(ratio).toBeLessThan(1.4);
  });
});
