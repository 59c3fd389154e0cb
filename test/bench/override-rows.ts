import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { overrideToJson } from "../../src/fleet/records/override-record.js";
import { OverrideRegistry } from "../../src/fleet/records/override-registry.js";
import { ReplicatedRecords } from "../../src/fleet/records/replicated-records.js";
import { systemClock, systemRandom } from "../../src/host/clock.js";
import { MemoryRecords } from "../../src/store/coordination/memory-records.js";
import { type RecordChange, recordsMax } from "../../src/store/coordination/record-store.js";

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
  const store = new MemoryRecords(systemClock);
  const count = recordsMax.override - changeCount;
  const seen = { state: await store.state(), version: 0 };
  for (let i = 0; i < count; i += 1) {
    await store.change({ ...overrideChange(i), name: String(i), seen });
  }
  const records = new ReplicatedRecords({ store, clock: systemClock, random: systemRandom });
  await records.known();
  const registry = new OverrideRegistry({ records, clock: systemClock });
  const megabytes = (usedBytes(collect) - beforeBytes) / 1_000_000;
  const times: number[] = [];
  for (let i = 0; i < changeCount; i += 1) {
    const startMs = performance.now();
    await records.change(overrideChange(count + i));
    times.push(performance.now() - startMs);
  }
  if (registry.current().size !== recordsMax.override) throw new Error("an override is missing");
  registry.close();
  records.close();
  times.sort((one, other) => one - other);
  return { count: recordsMax.override, megabytes, changeMs: times[changeCount >> 1] ?? 0 };
}

function overrideChange(i: number): RecordChange {
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
  return { ...change, expectedVersion: 0, audit: undefined };
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
