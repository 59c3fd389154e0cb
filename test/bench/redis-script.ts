import type { Charge } from "../../src/core/limits/bucket.js";
import { systemClock } from "../../src/host/clock.js";
import type { StoreRequest } from "../../src/store/limit-store.js";
import type { StoreScript } from "../../src/store/redis/scripts/connection.js";
import { encodeBatch } from "../../src/store/redis/scripts/pack.js";
import { testCharge } from "../support/charges.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore, type TestRedisStore } from "../support/redis-store.js";
import { mainThreadCpuUs } from "./process-cpu.js";

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
  /** What charges are, where they are not of one hit of a limit that drains. */
  readonly charge?: Partial<Omit<Charge, "key">>;
  /** Whether the script does nothing, and all that counts is what Redis does for any. */
  readonly isEmpty?: boolean;
}

const batchSizes = [1, 16, 32, 128];
const multiplicities = [16, 64, 200];

/** Names of rows that are compared. */
export const limitRows = {
  one: "batches of 16, 20,000 keys",
  two: "two limits, batches of 16",
  four: "four limits, batches of 16",
  empty: "an empty script, batches of 16",
  hot: "hot key, multiplicity 64",
} as const;

const hourUs = 3_600_000_000;
const hourStartUs = Math.floor(systemClock.epochUs() / hourUs) * hourUs;

/** Charges that are no hit of a limit that drains, and how each is packed. */
export const chargeKinds: Readonly<Record<string, Partial<Omit<Charge, "key">>>> = {
  "fixed windows": {
    windows: {
      startUs: hourStartUs,
      endUs: hourStartUs + hourUs,
      nextEndUs: hourStartUs + 2 * hourUs,
    },
  },
  peeks: { cost: 0, peekExhausted: true },
  "settled charges": { role: "settle" },
  "shadow limits": { role: "shadow" },
  refunds: { isRefund: true },
};

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
  { name: limitRows.empty, keyCounts: [20_000], batchSize: 16, multiplicity: 1, isEmpty: true },
  ...Object.entries(chargeKinds).map(([kind, charge]) => ({
    name: `${kind}, batches of 16`,
    keyCounts: [20_000],
    batchSize: 16,
    multiplicity: 1,
    charge,
  })),
  ...multiplicities.map((multiplicity) => ({
    name: `hot key, multiplicity ${multiplicity}`,
    keyCounts: [1],
    batchSize: 1,
    multiplicity,
  })),
];

/** Batches sent before the first of them is answered, as a busy replica has it. */
const batchesInFlight = 4;

/** Rounds of all rows in turn: of each the least counts, which other work has touched least. */
const roundCount = 5;

/** Does nothing with its keys and its batch. */
const emptyScript: StoreScript = { name: "empty", text: "return ''" };

/** Measures each scenario over the store's own connection, so Redis reads and writes as it does. */
export async function measureRedisScript(
  scenarios: readonly RedisScriptScenario[],
  measureMs: number,
): Promise<readonly RedisScriptRow[]> {
  if (scenarios.length === 0) return [];
  const server = await RedisServer.start({ engine: "redis" });
  try {
    const opened = await openTestStore(server);
    const sides = scenarios.map((scenario) => new Side(scenario, opened));
    for (const side of sides) await side.takeFor(measureMs / 4);
    const leastUs = sides.map(() => Number.POSITIVE_INFINITY);
    for (let round = 0; round < roundCount; round += 1) {
      for (const [i, side] of sides.entries()) {
        const before = mainThreadCpuUs(server.pid);
        const batchCount = await side.takeFor(measureMs / roundCount);
        const perRunUs = (mainThreadCpuUs(server.pid) - before) / batchCount;
        leastUs[i] = Math.min(leastUs[i] ?? perRunUs, perRunUs);
      }
    }
    await opened.store.close();
    return scenarios.map(({ name, batchSize, multiplicity }, i) => {
      const redisCpuUsPerRun = leastUs[i] ?? 0;
      const redisCpuUsPerDecision = redisCpuUsPerRun / (batchSize * multiplicity);
      return { name, redisCpuUsPerDecision, redisCpuUsPerRun };
    });
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
      return testCharge({ key, hits: burst, burst, periodUs, ...scenario.charge });
    });
  });
}

/** A scenario, going on with the next keys at each turn. */
class Side {
  readonly #scenario: RedisScriptScenario;
  readonly #opened: TestRedisStore;
  /** The charges of each limit, by key. */
  readonly #limits: readonly (readonly Charge[])[];
  #next = 0;

  constructor(scenario: RedisScriptScenario, opened: TestRedisStore) {
    this.#scenario = scenario;
    this.#opened = opened;
    this.#limits = createLimits(scenario);
  }

  /** Sends batches for so long, and says how many. */
  async takeFor(forMs: number): Promise<number> {
    const endMs = systemClock.monotonicMs() + forMs;
    let batchCount = 0;
    const worker = async (): Promise<void> => {
      while (systemClock.monotonicMs() < endMs) {
        await this.#take(this.#nextBatch());
        batchCount += 1;
      }
    };
    await Promise.all(Array.from({ length: batchesInFlight }, worker));
    return batchCount;
  }

  #nextBatch(): readonly StoreRequest[] {
    const { batchSize, multiplicity } = this.#scenario;
    return Array.from({ length: batchSize }, () => {
      const charges = this.#limits.flatMap(
        (keys) => keys[(this.#next * 7_919) % keys.length] ?? [],
      );
      this.#next += 1;
      return { charges, multiplicity };
    });
  }

  async #take(batch: readonly StoreRequest[]): Promise<void> {
    const deadlineMs = systemClock.monotonicMs() + 20_000;
    const { store, connections } = this.#opened;
    if (this.#scenario.isEmpty !== true) {
      await store.take(batch, deadlineMs);
      return;
    }
    const { keys, bytes } = encodeBatch(batch);
    const call = { script: emptyScript, keys, args: [bytes], deadlineMs };
    await connections.decision.run(call);
  }
}
