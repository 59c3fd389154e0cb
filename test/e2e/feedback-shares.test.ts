import { describe, expect, it } from "vitest";
import {
  configuredMaxRequests,
  type FeedbackFleet,
  feedbackLoad,
  startFeedbackFleet,
} from "../support/feedback-run.js";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { sampleDuring } from "../support/sample-during.js";
import { useStage } from "../support/stage.js";
import { trueTimes } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const workerCount = 20;

/** How long Envoys keep what nobody renews, and a silent one its share, in milliseconds. */
const layerTtlMs = trueTimes ? 15_000 : 6_000;

/** For how long nobody may lead: two leases of three seconds. */
const leaderlessMsMax = 6_000;

/** The sum of what the Envoys let in. */
async function sumOfLimits({ envoys, maxRequestsOf }: FeedbackFleet): Promise<number> {
  const limits = await Promise.all(envoys.map(maxRequestsOf));
  return limits.reduce((one, other) => one + other, 0);
}

/** Places of the one that leads, and of one that does not. */
async function leaderOf(headgates: readonly HeadgateProcess[]): Promise<number> {
  return waitFor("one leads", async () => {
    const leading = await Promise.all(headgates.map((one) => one.metric("headgate_fleet_leading")));
    const place = leading.indexOf(1);
    return place < 0 ? undefined : place;
  });
}

describe("shares of a fleet whose breakers Headgate sets", () => {
  it("gives most to who has most traffic, and goes on when its leader dies, or all", async () => {
    const fleet = await startFeedbackFleet(stage, { envoyCount: 2, workerCount, layerTtlMs });
    const { headgates, envoys, maxRequestsOf } = fleet;
    const leading = await leaderOf(headgates);
    // Envoys are joined to Headgates in their order: the busy one to the one that goes on.
    const [busy, quiet] = leading === 0 ? [envoys[1], envoys[0]] : envoys;
    const [dying, other] = leading === 0 ? headgates : [headgates[1], headgates[0]];
    if (busy === undefined || quiet === undefined) throw new Error("there are two");
    if (dying === undefined || other === undefined) throw new Error("there are two");
    const nine = new Array(9).fill(busy);
    const load = feedbackLoad([...nine, quiet], {
      perSecond: 500,
      // Longer than all that follows: gauges of breakers change with requests only.
      durationMs: trueTimes ? 40_000 : 30_000,
    });
    await waitFor(
      "its share is several times the other's",
      async () => {
        const [most, least] = [await maxRequestsOf(busy), await maxRequestsOf(quiet)];
        // Two gauges of a busy Envoy add up to a few more or less than its limit.
        return most < configuredMaxRequests * 0.75 && most >= least * 3;
      },
      { withinMs: 22_000, everyMs: 100 },
    );
    const killedEpoch = await other.metric("headgate_fleet_term");
    dying.process.signal("SIGKILL");
    const killedMs = performance.now();
    const outlived = waitFor(
      "two leases are over",
      () => performance.now() - killedMs >= leaderlessMsMax,
      { withinMs: 2 * leaderlessMsMax },
    );
    const shares = sampleDuring(outlived, () => maxRequestsOf(busy));
    await waitFor(
      "the other one leads, by snapshots of its own",
      async () => {
        const isLeading = (await other.metric("headgate_fleet_leading")) === 1;
        // Its first snapshot is on its way to the store while it leads already.
        return isLeading && (await other.metric("headgate_fleet_term")) > killedEpoch;
      },
      { withinMs: leaderlessMsMax, everyMs: 50 },
    );
    process.stdout.write(`nobody led for ${Math.round(performance.now() - killedMs)} ms\n`);
    // What is set for who renews it never goes, whoever leads.
    const most = Math.max(...(await shares).map(([, share]) => share));
    expect(most).toBeLessThan(configuredMaxRequests);
    other.process.signal("SIGKILL");
    // What they have runs out: of the quiet one since the leader is gone.
    for (const envoy of [quiet, busy]) {
      await waitFor(
        "it is back at what it was configured with",
        async () => (await maxRequestsOf(envoy)) === configuredMaxRequests,
        { withinMs: layerTtlMs + 3_000, everyMs: 100 },
      );
    }
    await load;
  });

  it("gives a dying Envoy's share to the other one within its lease", async () => {
    const fleet = await startFeedbackFleet(stage, { envoyCount: 2, workerCount, layerTtlMs });
    const [stays, dies] = fleet.envoys;
    if (stays === undefined || dies === undefined) throw new Error("there are two");
    // Gauges of breakers change with requests only, so they go on until the limits are there.
    const load = feedbackLoad(fleet.envoys, { perSecond: 500, durationMs: 20_000 });
    await waitFor(
      "the fleet has less than one was configured with",
      async () => (await sumOfLimits(fleet)) < configuredMaxRequests,
      { withinMs: 18_000, everyMs: 100 },
    );
    // Of the fleet's limit as it is then: the law goes on looking for a better one.
    const partOfStaying = async (): Promise<number> => {
      const limit = await fleet.headgates[0]?.metric("headgate_fleet_limit", {
        service: "upstream",
      });
      return (await fleet.maxRequestsOf(stays)) / (limit ?? 0);
    };
    await waitFor("both have a part", async () => (await partOfStaying()) < 0.75);
    await load;
    // More comes than is served, and what Envoys refuse is counted here.
    const overflow = "headgate_control_overflow_requests_total";
    const refused = fleet.headgates.map((one) => one.metric(overflow, { service: "upstream" }));
    for (const count of await Promise.all(refused)) expect(count).toBeGreaterThan(0);
    await dies.kill();
    const durationMs = layerTtlMs + 5_000;
    const alone = feedbackLoad([stays], { perSecond: 500, durationMs });
    await waitFor(
      "it has what the other one had",
      async () => (await partOfStaying()) > 0.9,
      // Its lease is as long as its layer lives.
      { withinMs: durationMs, everyMs: 100 },
    );
    expect(await fleet.maxRequestsOf(stays)).toBeLessThan(configuredMaxRequests);
    await alone;
  });
});
