import type { Redis } from "ioredis";
import { regionalCharge } from "../../src/core/limits/lending.js";
import { borrowedKeysMax } from "../../src/fleet/regions/demand-table.js";
import { Lender } from "../../src/fleet/regions/lender.js";
import { systemClock, systemRandom } from "../../src/host/clock.js";
import type { StoreRequest } from "../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import type { UnaryHandler } from "../../src/wire/grpc/service.js";
import { testCharge } from "../support/charges.js";
import { testLimit } from "../support/policies.js";
import { allStarted, RedisServer } from "../support/redis-server.js";
import { openTestStore, type TestRedisStore } from "../support/redis-store.js";
import { decideMany } from "./calls.js";
import { cpuUsPer, createHandler, createPolicy } from "./in-process.js";
import { mainThreadCpuUs } from "./process-cpu.js";
import type { ProofRow } from "./proof.js";

/** What limits with `spread: global` cost a decision, and lending between two regions. */
export async function regionRows(measureMs: number): Promise<readonly ProofRow[]> {
  return [...(await decisionRows(4 * measureMs)), ...(await lendingRows(measureMs / 2))];
}

/** Rounds of both sides in turn; the least of each counts. */
const roundCount = 7;

/** Keys with room in their buckets, and keys that are asked for more than the limit. */
const shapes = [
  { name: "a decision of a global limit, of a regional one", keyCount: 20_000 },
  { name: "in demand, a decision of a global limit, of a regional one", keyCount: 1_000, most: 20 },
];

async function decisionRows(decisionCount: number): Promise<readonly ProofRow[]> {
  const rows: ProofRow[] = [];
  for (const { name, keyCount, most } of shapes) {
    const sides = [createSide(false, most), createSide(true, most)];
    const leastUs = sides.map(() => Number.POSITIVE_INFINITY);
    for (let round = 0; round <= roundCount; round += 1) {
      for (const [i, { handle }] of sides.entries()) {
        const us = await cpuUsPer(decisionCount, () =>
          decideMany(handle, { keyCount }, decisionCount),
        );
        // The first is about new keys.
        if (round > 0) leastUs[i] = Math.min(leastUs[i] ?? 0, us);
      }
    }
    for (const { close } of sides) await close();
    const [regional = 0, global = 0] = leastUs;
    const ratio = global / regional;
    const note = `${global.toFixed(2)} and ${regional.toFixed(2)} us, ${keyCount} keys`;
    rows.push({ group: "wide", name: `regions, ${name}`, value: ratio, unit: "x", ratio, note });
  }
  return rows;
}

interface Side {
  readonly handle: UnaryHandler;
  readonly close: () => Promise<void>;
}

/** Decisions with an embedded store; those of global limits with a lender of two regions. */
function createSide(isGlobal: boolean, hitsPerSecond: number | undefined): Side {
  const policy = createPolicy({
    name: "",
    keyCount: 1,
    isGlobal,
    ...(hitsPerSecond === undefined ? {} : { hitsPerSecond }),
  });
  const createStore = () => new MemoryLimitStore({ clock: systemClock });
  const store = createStore();
  if (!isGlobal) return { handle: createHandler(policy, store, {}), close: () => store.close() };
  const lender = new Lender({
    region: "a",
    store,
    peers: [{ name: "b", store: createStore() }],
    clock: systemClock,
    random: systemRandom,
    replicaCount: () => 1,
  });
  const handle = createHandler(policy, store, { regions: lender });
  return {
    handle,
    close: async () => {
      await lender.close();
      await store.close();
    },
  };
}

const hotKeyCount = 1_000;

/** Each key is asked for more than the limit of both regions allows. */
const demandMs = 50;
const hitsPerDemand = 60;

/** One budget of two regions, of which one has all of the demand: 1,000 hits a second for a key. */
const limit = testLimit(1_000, { unit: "second", periodUs: 1_000_000, spread: "global" });

/** What lending for hot keys costs in an interval, beside the same decisions without lending. */
interface LendingCost {
  readonly ownUs: number;
  readonly nearUs: number;
  readonly farUs: number;
  readonly commandCount: number;
  readonly borrowedHits: number;
  readonly droppedKeyCount: number;
}

async function lendingRows(measureMs: number): Promise<readonly ProofRow[]> {
  const cost = await measureLending(measureMs);
  const row = { group: "wide" } as const;
  const name = "regions, lending of 1,000 hot keys in an interval";
  const perHit = ((cost.nearUs + cost.farUs) / cost.borrowedHits).toFixed(2);
  return [
    {
      ...row,
      name: `${name}, CPU of a replica`,
      value: cost.ownUs / 1_000,
      unit: "ms",
      note:
        `the ${borrowedKeysMax} keys with the most demand borrow ` +
        `${cost.borrowedHits.toFixed(0)} hits, ${cost.droppedKeyCount.toFixed(0)} keys do not`,
    },
    {
      ...row,
      name: `${name}, store commands`,
      value: cost.commandCount,
      unit: "commands",
      note: "of both stores",
    },
    {
      ...row,
      name: `${name}, CPU of the lending store`,
      value: cost.farUs / 1_000,
      unit: "ms",
    },
    {
      ...row,
      name: `${name}, CPU of the borrowing store`,
      value: cost.nearUs / 1_000,
      unit: "ms",
      note: `${perHit} us of both stores for a borrowed hit`,
    },
  ];
}

/** Turns of each side; the least cost counts. */
const lendingTurnCount = 3;

async function measureLending(measureMs: number): Promise<LendingCost> {
  const servers = await allStarted([
    RedisServer.start({ engine: "redis" }),
    RedisServer.start({ engine: "redis" }),
  ]);
  const stores: TestRedisStore[] = [];
  try {
    for (const server of servers) stores.push(await openTestStore(server));
    const [near, far] = stores;
    if (near === undefined || far === undefined) throw new Error("two stores");
    const controls = servers.map((server) => server.client());
    const place = { servers, controls, near, far, measureMs };
    await runDemand(place, true);
    let least: LendingCost | undefined;
    for (let turn = 0; turn < lendingTurnCount; turn += 1) {
      const without = await runDemand(place, false);
      const within = await runDemand(place, true);
      const cost = differenceOf(within, without);
      if (least === undefined || cost.ownUs < least.ownUs) least = cost;
    }
    if (least === undefined) throw new Error("a turn at least");
    return least;
  } finally {
    for (const { store } of stores) await store.close();
    for (const server of servers) await server.stop();
  }
}

interface LendingPlace {
  readonly servers: readonly RedisServer[];
  readonly controls: readonly Redis[];
  readonly near: TestRedisStore;
  readonly far: TestRedisStore;
  readonly measureMs: number;
}

/** What both sides used while the demand lasted. */
interface DemandRun extends LendingCost {
  /** Rounds in which something was borrowed. */
  readonly roundCount: number;
  /** Times that each key was demanded. */
  readonly demandCount: number;
}

/** Decides hits of all keys in the near region at fixed times, and tells a lender, if any. */
async function runDemand(
  { near, far, measureMs, ...place }: LendingPlace,
  isLending: boolean,
): Promise<DemandRun> {
  const lender = new Lender({
    region: "a",
    store: near.store,
    peers: [{ name: "b", store: far.store }],
    clock: systemClock,
    random: systemRandom,
    replicaCount: () => 1,
  });
  const before = await usedBy(place);
  let demandCount = 0;
  const startMs = systemClock.monotonicMs();
  const untilMs = (atMs: number): Promise<void> =>
    new Promise((resolve) => setTimeout(resolve, atMs - systemClock.monotonicMs()));
  while (systemClock.monotonicMs() < startMs + measureMs) {
    await decideAll(near, isLending ? lender : undefined);
    demandCount += 1;
    await untilMs(startMs + demandCount * demandMs);
  }
  await lender.close();
  const after = await usedBy(place);
  const { callCount = 0, borrowedHits = 0 } = lender.regions()[0] ?? {};
  return {
    ownUs: after.ownUs - before.ownUs,
    nearUs: after.nearUs - before.nearUs,
    farUs: after.farUs - before.farUs,
    commandCount: after.commandCount - before.commandCount,
    borrowedHits,
    droppedKeyCount: lender.droppedKeyCount,
    roundCount: callCount,
    demandCount,
  };
}

const here = { index: 0, count: 2 };

const demanded: readonly StoreRequest[] = Array.from({ length: hotKeyCount }, (_, i) => {
  const { hits, periodUs, burst } = limit;
  const key = `2g5:bench4:user20:user-${String(i).padStart(15, "0")}n5:1s`;
  const charge = regionalCharge(testCharge({ key, hits, periodUs, burst }), here);
  return { charges: [charge], multiplicity: hitsPerDemand };
});

/** Requests of one call. */
const batchSize = 100;

async function decideAll(near: TestRedisStore, lender: Lender | undefined): Promise<void> {
  for (let start = 0; start < demanded.length; start += batchSize) {
    await decide(near, demanded.slice(start, start + batchSize), lender);
  }
}

async function decide(
  { store }: TestRedisStore,
  batch: readonly StoreRequest[],
  lender: Lender | undefined,
): Promise<void> {
  const outcomes = await store.take(batch, systemClock.monotonicMs() + 20_000);
  for (const [i, outcome] of outcomes.entries()) {
    const [charge] = batch[i]?.charges ?? [];
    if (outcome.kind !== "decided" || charge === undefined) throw new Error("the store decides");
    const [result] = outcome.result.results;
    if (result === undefined) throw new Error("a result for each charge");
    const { nowUs } = outcome.result;
    lender?.note({ limit, charge: { ...charge, cost: hitsPerDemand }, result, nowUs });
  }
}

async function usedBy({ servers, controls }: Pick<LendingPlace, "servers" | "controls">) {
  const [nearUs = 0, farUs = 0] = servers.map(({ pid }) => mainThreadCpuUs(pid));
  const counts = await Promise.all(controls.map(scriptCount));
  const { user, system } = process.cpuUsage();
  const commandCount = counts.reduce((sum, count) => sum + count, 0);
  return { ownUs: user + system, nearUs, farUs, commandCount };
}

/** Scripts that a server has run. Source: Redis, INFO commandstats. */
async function scriptCount(control: Redis): Promise<number> {
  const stats = await control.info("commandstats");
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

/** What lending adds in an interval; both sides decided the same demand. */
function differenceOf(within: DemandRun, without: DemandRun): LendingCost {
  const { roundCount: rounds } = within;
  if (rounds === 0) throw new Error("nothing was borrowed");
  const part = within.demandCount / without.demandCount;
  const perRound = (of: (run: DemandRun) => number): number =>
    (of(within) - part * of(without)) / rounds;
  return {
    ownUs: perRound(({ ownUs }) => ownUs),
    nearUs: perRound(({ nearUs }) => nearUs),
    farUs: perRound(({ farUs }) => farUs),
    commandCount: perRound(({ commandCount }) => commandCount),
    borrowedHits: within.borrowedHits / rounds,
    droppedKeyCount: within.droppedKeyCount / rounds,
  };
}
