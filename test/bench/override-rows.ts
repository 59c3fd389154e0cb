import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemClock } from "../../src/app/base/clock.js";
import { InProcessRecords } from "../../src/fleet/records/in-process-records.js";
import { overrideToJson } from "../../src/fleet/records/override-record.js";
import { OverrideRegistry } from "../../src/fleet/records/override-registry.js";
import { recordsMax } from "../../src/fleet/records/shared-records.js";

/** What as many overrides as there may be cost a replica. */
export interface OverrideRow {
  readonly count: number;
  /** Their records, and the table that decisions go by. */
  readonly megabytes: number;
  /** A change of one: until the table is made anew. */
  readonly changeMs: number;
}

const changeCount = 9;

/** Fills a replica with overrides of keys of their own, each with texts of its own. */
export async function measureOverrides(): Promise<OverrideRow> {
  const collect = exposeCollector();
  const beforeBytes = usedBytes(collect);
  const records = new InProcessRecords(systemClock);
  const count = recordsMax.override - changeCount;
  for (let i = 0; i < count; i += 1) await give(records, i);
  const registry = new OverrideRegistry({ records, clock: systemClock });
  const megabytes = (usedBytes(collect) - beforeBytes) / 1_000_000;
  const times: number[] = [];
  for (let i = 0; i < changeCount; i += 1) {
    const startMs = performance.now();
    await give(records, count + i);
    times.push(performance.now() - startMs);
  }
  if (registry.current().size !== recordsMax.override) throw new Error("an override is missing");
  registry.close();
  times.sort((one, other) => one - other);
  return { count: recordsMax.override, megabytes, changeMs: times[changeCount >> 1] ?? 0 };
}

async function give(records: InProcessRecords, i: number): Promise<void> {
  const number = String(i).padStart(7, "0");
  const value = overrideToJson({
    id: `override-${number}`,
    domain: "bench",
    entries: [{ key: "customer", value: `customer-${number}` }],
    isPrefix: false,
    effect: { kind: "multiplier", by: 2 },
    reason: `Ticket ${number}: twice as much until the launch is over`,
    author: "ann@example.com",
    createdEpochMs: 1_790_000_000_000 + i,
    expiresEpochMs: 4_000_000_000_000 + i,
  });
  const change = { kind: "override", id: `override-${number}`, value } as const;
  await records.change({ ...change, expectedVersion: 0, audit: undefined });
}

function exposeCollector(): () => void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect !== "function") throw new Error("this Node shows no collector");
  return () => collect();
}

function usedBytes(collect: () => void): number {
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
