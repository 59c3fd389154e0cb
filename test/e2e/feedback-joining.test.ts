import { describe, expect, it } from "vitest";
import {
  configuredMaxRequests,
  type FeedbackFleet,
  feedbackLoad,
  startFeedbackFleet,
} from "../support/feedback-run.js";
import { type LoadAnswer, unstalled } from "../support/open-loop-load.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** Of 50 ms: 800 requests a second, of which the loads here are a quarter. */
const workerCount = 40;

/** Far above what is in work, so that nothing has to be refused to learn the latency. */
const initialLimit = 100;

/** How long Envoys keep what nobody renews, in milliseconds. */
const layerTtlMs = 3_000;

/** Requests that an Envoy or the upstream refused; prints of how many, and what was left out. */
function refusedOf(answers: readonly LoadAnswer[]): number {
  // After a stall of the machine more come at once than a share holds.
  const counted = unstalled(answers);
  const refusedCount = counted.filter(({ status }) => status !== 0 && status !== 200).length;
  const leftOut = `${answers.length - counted.length} of ${answers.length} left out as stalls`;
  process.stdout.write(`${refusedCount} of ${counted.length} refused, ${leftOut}\n`);
  expect(counted.length).toBeGreaterThan(answers.length / 2);
  return refusedCount;
}

/** All Envoys have shares, or all go by what they are configured with. */
async function untilShared(fleet: FeedbackFleet, isShared: boolean): Promise<void> {
  await waitFor(
    isShared ? "all have shares" : "all go by their defaults",
    async () => {
      const limits = await Promise.all(fleet.envoys.map(fleet.maxRequestsOf));
      return limits.every((limit) => limit < configuredMaxRequests * 0.75 === isShared);
    },
    { withinMs: 12_000, everyMs: 50 },
  );
}

/** Story: who came had one permit for three seconds, and refused a third of what it was asked. */
describe("a fleet before a service that has room", () => {
  it("refuses nothing when an Envoy comes", async () => {
    const fleet = await startFeedbackFleet(stage, { envoyCount: 2, workerCount, initialLimit });
    const before = feedbackLoad(fleet.envoys, { perSecond: 120, durationMs: 4_000 });
    await untilShared(fleet, true);
    const newcomer = await fleet.addEnvoy();
    const after = feedbackLoad([newcomer], { perSecond: 60, durationMs: 5_000 });
    await untilShared(fleet, true);
    const maxRequests = await fleet.maxRequestsOf(newcomer);
    const answers = [...(await before), ...(await after)];
    process.stdout.write(`the newcomer may have ${maxRequests} at once\n`);
    expect(refusedOf(answers)).toBe(0);
  });

  /** Story: all had one permit, and then `limits.min` for all of them: nearly half was refused. */
  it.each([
    {
      title: "Redis has been away for longer than a snapshot holds, and comes back empty",
      lose: ({ redis }: FeedbackFleet) => redis.kill(),
      restore: ({ redis }: FeedbackFleet) => redis.restart(),
    },
    {
      title: "all Headgates have been away for as long",
      lose: async ({ headgates }: FeedbackFleet) => {
        for (const headgate of headgates) headgate.process.signal("SIGKILL");
      },
      restore: async ({ headgates }: FeedbackFleet) => {
        await Promise.all(headgates.map((headgate) => headgate.restart()));
      },
    },
  ])("refuses nothing when $title", async ({ lose, restore }) => {
    const order = { envoyCount: 2, workerCount, initialLimit, layerTtlMs };
    const fleet = await startFeedbackFleet(stage, order);
    const load = feedbackLoad(fleet.envoys, { perSecond: 150, durationMs: 15_000 });
    await untilShared(fleet, true);
    await lose(fleet);
    await untilShared(fleet, false);
    await restore(fleet);
    await untilShared(fleet, true);
    const answers = await load;
    expect(refusedOf(answers)).toBe(0);
  });
});
