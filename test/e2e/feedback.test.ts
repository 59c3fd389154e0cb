import { mkdir, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import {
  configuredMaxRequests,
  drawFeedback,
  type FeedbackFleet,
  feedbackLoad,
  startFeedbackFleet,
} from "../support/feedback-run.js";
import { HttpClient } from "../support/http-client.js";
import { sampleDuring } from "../support/sample-during.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const workerCount = 20;
/** Of workers that take 50 ms. */
const perWorkerSecond = 20;

/** The sum of what the Envoys let in. */
async function sumOfLimits({ envoys, maxRequestsOf }: FeedbackFleet): Promise<number> {
  const limits = await Promise.all(envoys.map(maxRequestsOf));
  return limits.reduce((one, other) => one + other, 0);
}

describe("a fleet of Envoys whose breakers Headgate sets", { timeout: 120_000 }, () => {
  it("follows when the service loses half of its capacity", async () => {
    const fleet = await startFeedbackFleet(stage, { envoyCount: 2, workerCount });
    const capacity = workerCount * perWorkerSecond;
    const durationMs = 24_000;
    const halvedMs = 10_000;
    const startMs = performance.now();
    const load = feedbackLoad(fleet.envoys, { perSecond: capacity * 0.9, durationMs });
    const limits = sampleDuring(load, () => sumOfLimits(fleet));
    await waitFor("it is time", () => performance.now() - startMs >= halvedMs, {
      withinMs: 60_000,
    });
    await fleet.upstream.setWorkers(workerCount / 2);
    const answers = await load;
    const svg = drawFeedback("two Envoys, half of the capacity lost after 10 s", {
      answers,
      durationMs,
      capacities: [
        [0, capacity],
        [halvedMs / 1_000, capacity],
        [halvedMs / 1_000, capacity / 2],
        [durationMs / 1_000, capacity / 2],
      ],
      limits: await limits,
    });
    await mkdir("test-output", { recursive: true });
    await writeFile("test-output/feedback-half-capacity.svg", svg);
    const goodput = (fromMs: number, untilMs: number): number => {
      const served = answers.filter(
        ({ status, atMs }) => status === 200 && atMs >= fromMs && atMs < untilMs,
      );
      return served.length / ((untilMs - fromMs) / 1_000);
    };
    process.stdout.write(
      `goodput before ${Math.round(goodput(2_000, halvedMs))} of ${capacity}, ` +
        `after ${Math.round(goodput(halvedMs + 5_000, durationMs))} of ${capacity / 2} a second\n`,
    );
    // A queue of a hundred at ten workers would take half of the callers' patience.
    const settled = (await limits).filter(([seconds]) => seconds * 1_000 >= halvedMs + 8_000);
    expect(Math.max(...settled.map(([, sum]) => sum))).toBeLessThan(100);
    const unanswered = answers.filter(
      ({ status, atMs }) => status === 0 && atMs >= halvedMs + 5_000,
    );
    expect(unanswered.length).toBe(0);
    expect(goodput(halvedMs + 5_000, durationMs) / (capacity / 2)).toBeGreaterThan(0.5);
  });

  it("gives most to the Envoy that has most of the traffic", async () => {
    const fleet = await startFeedbackFleet(stage, { envoyCount: 2, workerCount });
    const [busy, quiet] = fleet.envoys;
    if (busy === undefined || quiet === undefined) throw new Error("there are two");
    const nine = new Array(9).fill(busy);
    const load = feedbackLoad([...nine, quiet], { perSecond: 600, durationMs: 14_000 });
    await waitFor(
      "its share is several times the other's",
      async () => {
        const [most, least] = [await fleet.maxRequestsOf(busy), await fleet.maxRequestsOf(quiet)];
        return most < configuredMaxRequests && most >= least * 3;
      },
      { withinMs: 13_000, everyMs: 100 },
    );
    await load;
  });

  it("leaves Envoys at their configured breakers when all Headgates die", async () => {
    const fleet = await startFeedbackFleet(stage, { envoyCount: 2, workerCount });
    const load = feedbackLoad(fleet.envoys, { perSecond: 500, durationMs: 8_000 });
    await waitFor("both have a share", async () => {
      const limits = await Promise.all(fleet.envoys.map(fleet.maxRequestsOf));
      return limits.every((limit) => limit > 0 && limit < configuredMaxRequests);
    });
    await load;
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    for (const { process: headgate } of fleet.headgates) headgate.signal("SIGKILL");
    await waitFor(
      "both are back at what they were configured with",
      async () => {
        // Envoy's statistics of a breaker move with its requests.
        for (const { port } of fleet.envoys) await http.send({ port });
        const limits = await Promise.all(fleet.envoys.map(fleet.maxRequestsOf));
        return limits.every((limit) => limit === configuredMaxRequests);
      },
      { withinMs: 30_000, everyMs: 200 },
    );
  });
});
