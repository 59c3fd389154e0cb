import { systemClock } from "../../src/host/clock.js";
import type { RedisServer } from "../support/redis-server.js";
import { processCpuUs } from "./process-cpu.js";

/** CPU of one of so many things, in microseconds. */
export interface Cost {
  readonly redisUs: number;
  readonly ownUs: number;
}

/** Where costs are measured, and for how long each. */
export interface CostWorld {
  readonly server: RedisServer;
  readonly measureMs: number;
}

/** Calls that are sent before the first of them is answered, as a busy replica has it. */
const callsInFlight = 4;

/** What each of `size` things costs that one call does. */
export async function measure(
  { server, measureMs }: CostWorld,
  size: number,
  call: () => Promise<void>,
): Promise<Cost> {
  await callFor(measureMs / 4, call);
  const [redisBeforeUs, before] = [processCpuUs(server.pid), process.cpuUsage()];
  const count = size * (await callFor(measureMs, call));
  const { user, system } = process.cpuUsage(before);
  return {
    redisUs: (processCpuUs(server.pid) - redisBeforeUs) / count,
    ownUs: (user + system) / count,
  };
}

/** Makes calls for so long, and says how many. */
async function callFor(forMs: number, call: () => Promise<void>): Promise<number> {
  const endMs = systemClock.monotonicMs() + forMs;
  let count = 0;
  const worker = async (): Promise<void> => {
    while (systemClock.monotonicMs() < endMs) {
      await call();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: callsInFlight }, worker));
  return count;
}
