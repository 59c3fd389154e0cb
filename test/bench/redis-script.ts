import { systemClock } from "../../src/app/base/clock.js";
import type { Charge } from "../../src/core/limits/bucket.js";
import type { StoreRequest } from "../../src/store/limit-store.js";
import type { RedisLimitStore } from "../../src/store/redis/redis-limit-store.js";
import { testCharge } from "../support/charges.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore } from "../support/redis-store.js";
import { processCpuUs } from "./process-cpu.js";

/** One row: what the take script costs the Redis process. */
export interface RedisScriptRow {
  readonly name: string;
  readonly redisCpuUsPerDecision: number;
  readonly redisCpuUsPerRun: number;
}

/** What a row measures: batches of requests. */
export interface RedisScriptScenario {
  readonly name: string;
  /** The number of keys of each limit: a request has one key of each. */
  readonly keyCounts: readonly number[];
  readonly batchSize: number;
  readonly multiplicity: number;
}

const batchSizes = [1, 16, 32, 128];
const multiplicities = [16, 64, 200];

/** Names of rows that are compared. */
export const limitRows = {
  one: "batches of 16, 20,000 keys",
  two: "two limits, batches of 16",
  four: "four limits, batches of 16",
} as const;

/** The rows of the bench, each measured on one Redis and in one run. */
export const redisScriptScenarios: readonly RedisScriptScenario[] = [
  ...batchSizes.map((batchSize) => ({
    name: `batches of ${batchSize}, 20,000 keys`,
    keyCounts: [20_000],
    batchSize,
    multiplicity: 1,
  })),
  // Most requests meet a limit of their own, and others that many callers share: plan, path.
  { name: limitRows.two, keyCounts: [20_000, 3], batchSize: 16, multiplicity: 1 },
  {
    name: "two limits of one caller, batches of 16",
    keyCounts: [20_000, 20_000],
    batchSize: 16,
    multiplicity: 1,
  },
  {
    name: limitRows.four,
    keyCounts: [20_000, 3, 20, 1],
    batchSize: 16,
    multiplicity: 1,
  },
  ...multiplicities.map((multiplicity) => ({
    name: `hot key, multiplicity ${multiplicity}`,
    keyCounts: [1],
    batchSize: 1,
    multiplicity,
  })),
];

/** Batches sent before the first of them is answered, as a busy replica has it. */
const batchesInFlight = 4;

/** Measures each scenario over the store's own connection, so Redis reads and writes as it does. */
export async function measureRedisScript(
  scenarios: readonly RedisScriptScenario[],
  measureMs: number,
): Promise<readonly RedisScriptRow[]> {
  if (scenarios.length === 0) return [];
  const server = await RedisServer.start({ engine: "redis" });
  try {
    const { store } = await openTestStore(server);
    const rows: RedisScriptRow[] = [];
    for (const scenario of scenarios) {
      const limits = createLimits(scenario);
      await takeFor({ store, limits, scenario }, measureMs / 4);
      const before = processCpuUs(server.pid);
      const batchCount = await takeFor({ store, limits, scenario }, measureMs);
      const redisCpuUsPerRun = (processCpuUs(server.pid) - before) / batchCount;
      const decisionsPerRun = scenario.batchSize * scenario.multiplicity;
      const redisCpuUsPerDecision = redisCpuUsPerRun / decisionsPerRun;
      rows.push({ name: scenario.name, redisCpuUsPerDecision, redisCpuUsPerRun });
    }
    await store.close();
    return rows;
  } finally {
    await server.stop();
  }
}

/** Keys as long as real ones are, of a limit whose buckets outlast the time between two visits. */
function createLimits(scenario: RedisScriptScenario): readonly (readonly Charge[])[] {
  const isOnce = scenario.multiplicity === 1;
  const periodUs = isOnce ? 3_600_000_000 : 1_000_000;
  return scenario.keyCounts.map((keyCount, limit) => {
    // A limit that others share is as much larger, so that it admits as many requests.
    const burst = isOnce ? Math.round(20_000_000 / keyCount) : 4_294_967_295;
    return Array.from({ length: keyCount }, (_, i) => {
      const key = `2g5:bench4:${limit}ser20:user-${String(i).padStart(15, "0")}n5:3600s`;
      return testCharge({ key, hits: burst, burst, periodUs });
    });
  });
}

interface Taking {
  readonly store: RedisLimitStore;
  /** The charges of each limit, by key. */
  readonly limits: readonly (readonly Charge[])[];
  readonly scenario: RedisScriptScenario;
}

/** Sends batches for so long, and says how many. */
async function takeFor({ store, limits, scenario }: Taking, forMs: number): Promise<number> {
  const endMs = systemClock.monotonicMs() + forMs;
  let next = 0;
  let batchCount = 0;
  const createBatch = (): readonly StoreRequest[] =>
    Array.from({ length: scenario.batchSize }, () => {
      const charges = limits.flatMap((keys) => keys[(next * 7_919) % keys.length] ?? []);
      next += 1;
      return { charges, multiplicity: scenario.multiplicity };
    });
  const worker = async (): Promise<void> => {
    while (systemClock.monotonicMs() < endMs) {
      await store.take(createBatch(), systemClock.monotonicMs() + 20_000);
      batchCount += 1;
    }
  };
  await Promise.all(Array.from({ length: batchesInFlight }, worker));
  return batchCount;
}
