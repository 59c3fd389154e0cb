import { systemClock } from "../../src/host/clock.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { decideMany } from "./calls.js";
import { createHandler, createPolicy } from "./in-process.js";

/** What a process holds while it decides, in megabytes of resident memory. */
export interface MemoryRow {
  readonly name: string;
  /** After each step, of equally many decisions. */
  readonly residentMegabytes: readonly number[];
  readonly decisionsPerStep: number;
}

/** Keys in use: as many as the rows of a decision's cost have. */
const keyCount = 20_000;

/** Whether memory stays where it is, over many decisions on the same keys. */
export async function measureMemory(
  stepCount: number,
  decisionsPerStep: number,
): Promise<MemoryRow> {
  const scenario = { name: "memory", keyCount };
  const store = new MemoryLimitStore({ clock: systemClock });
  const handle = createHandler(createPolicy(scenario), store);
  await decideMany(handle, scenario, decisionsPerStep);
  const residentMegabytes: number[] = [];
  for (let step = 0; step < stepCount; step += 1) {
    await decideMany(handle, scenario, decisionsPerStep);
    residentMegabytes.push(Math.round(process.memoryUsage.rss() / 1_048_576));
  }
  await store.close();
  return { name: "20,000 keys", residentMegabytes, decisionsPerStep };
}
