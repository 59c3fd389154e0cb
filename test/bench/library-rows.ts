import { createAdmission } from "../../src/client/create-admission.js";
import { cpuUsPer } from "./in-process.js";
import type { ProofRow } from "./proof.js";
import { measure, type Scenario } from "./scenario.js";
import { startScript } from "./servers.js";

/** Rounds in which both services are measured in turn; the least CPU of each counts. */
const roundCount = 3;

/** Few enough that the law of the defaults refuses none of them. */
const connectionCount = 8;

/** What `headgate/server` adds to a request of a service, and `headgate/client` to a call. */
export async function libraryRows(measureMs: number): Promise<readonly ProofRow[]> {
  const [bare = 0, admitted = 0] = await measureServices(measureMs / 2);
  const ratio = admitted / bare;
  return [
    {
      group: "limits",
      name: "headgate/server, CPU of a request of node:http, of one without",
      value: ratio,
      unit: "x",
      ratio,
      note: `${admitted.toFixed(1)} and ${bare.toFixed(1)} us, all defaults`,
    },
    {
      group: "limits",
      name: "headgate/client, CPU added to a call",
      value: await measureClient(),
      unit: "us",
      note: "law, queue, throttle, breaker, retries and hedges, around work that does nothing",
    },
  ];
}

async function measureServices(measureMs: number): Promise<readonly number[]> {
  const sides = ["bare", "admitted"].map(
    (kind): Scenario => ({
      name: kind,
      calls: { kind: "http1", heads: ["host: bench"] },
      start: () => startScript("./admitted-server.ts", [], [kind]),
      load: { connectionCount, pace: { kind: "closed", inFlightPerConnection: 1 } },
    }),
  );
  const leastUs = sides.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < roundCount; round += 1) {
    for (const [i, side] of sides.entries()) {
      const { cpuUsPerCall, failedCount, deniedCount } = await measure(side, measureMs);
      if (failedCount + deniedCount > connectionCount) {
        throw new Error(`${side.name}: ${failedCount} failed, ${deniedCount} refused`);
      }
      leastUs[i] = Math.min(leastUs[i] ?? 0, cpuUsPerCall);
    }
  }
  return leastUs;
}

const callCount = 20_000;

async function measureClient(): Promise<number> {
  // As low as it may be, so that no probe of the law refuses calls here.
  const concurrency = { law: "gradient", initial: 200, min: 200 } as const;
  const parts = { concurrency, throttle: {}, breaker: {}, retry: {}, hedge: {}, queue: {} };
  const admission = createAdmission({ name: "bench", ...parts });
  const work = async (): Promise<number> => 1;
  const sides = [work, () => admission.run(work)];
  const leastUs = sides.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round <= roundCount; round += 1) {
    for (const [i, call] of sides.entries()) {
      const us = await cpuUsPer(callCount, async () => {
        for (let done = 0; done < callCount; done += 1) await call();
      });
      leastUs[i] = Math.min(leastUs[i] ?? 0, us);
    }
  }
  const [without = 0, within = 0] = leastUs;
  return within - without;
}
