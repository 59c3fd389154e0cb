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

/** What a row measures: batches of requests of one charge each. */
export interface RedisScriptScenario {
  readonly name: string;
  readonly keyCount: number;
  readonly batchSize: number;
  readonly multiplicity: number;
}

const batchSizes = [1, 16, 32, 128];
const multiplicities = [16, 64, 200];

/** The rows of the bench, each measured on one Redis and in one run. */
export const redisScriptScenarios: readonly RedisScriptScenario[] = [
  ...batchSizes.map((batchSize) => ({
    name: `batches of ${batchSize}, 20,000 keys`,
    keyCount: 20_000,
    batchSize,
    multiplicity: 1,
  })),
  ...multiplicities.map((multiplicity) => ({
    name: `hot key, multiplicity ${multiplicity}`,
    keyCount: 1,
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
      const charges = createCharges(scenario);
      await takeFor({ store, charges, scenario }, measureMs / 4);
      const before = processCpuUs(server.pid);
      const batchCount = await takeFor({ store, charges, scenario }, measureMs);
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
function createCharges({ keyCount, multiplicity }: RedisScriptScenario): readonly Charge[] {
  const burst = multiplicity === 1 ? 1_000 : 4_294_967_295;
  const periodUs = multiplicity === 1 ? 3_600_000_000 : 1_000_000;
  return Array.from({ length: keyCount }, (_, i) => {
    const key = `2g5:bench4:user20:user-${String(i).padStart(15, "0")}n5:3600s`;
    return testCharge({ key, hits: burst, burst, periodUs });
  });
}

interface Taking {
  readonly store: RedisLimitStore;
  readonly charges: readonly Charge[];
  readonly scenario: RedisScriptScenario;
}

/** Sends batches for so long, and says how many. */
async function takeFor({ store, charges, scenario }: Taking, forMs: number): Promise<number> {
  const endMs = systemClock.monotonicMs() + forMs;
  let next = 0;
  let batchCount = 0;
  const createBatch = (): readonly StoreRequest[] =>
    Array.from({ length: scenario.batchSize }, () => {
      const charge = charges[(next * 7_919) % charges.length];
      next += 1;
      return { charges: charge === undefined ? [] : [charge], multiplicity: scenario.multiplicity };
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
