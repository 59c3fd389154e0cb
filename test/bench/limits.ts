import { systemClock } from "../../src/host/clock.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore } from "../support/redis-store.js";
import { type CallShape, decideMany } from "./calls.js";
import { measureGrowth } from "./growth.js";
import { cpuUsPer, createHandler, createPolicy } from "./in-process.js";
import { libraryRows } from "./library-rows.js";
import { clusterRows } from "./limit-cluster.js";
import { latencyRows } from "./limit-latency.js";
import type { ProofParts, ProofRow } from "./proof.js";
import {
  chargeKinds,
  limitRows,
  measureRedisScript,
  type RedisScriptRow,
  redisScriptScenarios,
} from "./redis-script.js";
import { referenceParts } from "./references.js";

/**
 * What several limits of a request cost Redis and us, one hot key, the latency near saturation, a
 * cluster of more shards, growth, the libraries of services, and other servers.
 *
 * @param measureMs time for each row of a server; the others take as long
 */
export function limitsParts(measureMs: number): ProofParts {
  return {
    script: () => scriptRows(measureMs),
    process: () => processRows(measureMs),
    cluster: () => clusterRows(measureMs),
    latency: () => latencyRows(measureMs),
    growth: () => measureGrowth(measureMs),
    libraries: () => libraryRows(measureMs),
    ...referenceParts(measureMs),
  };
}

/** A limit of one's own, and further ones that callers share: plan, path, all. */
const shapes = [
  { limits: "one limit", sharedCounts: [] },
  { limits: "two limits", sharedCounts: [3], most: 1.4 },
  { limits: "four limits", sharedCounts: [3, 20, 1], most: 2 },
] as const;

async function scriptRows(measureMs: number): Promise<readonly ProofRow[]> {
  const kinds = Object.keys(chargeKinds).map((kind) => `${kind}, batches of 16`);
  const names: readonly string[] = [...Object.values(limitRows), ...kinds];
  const scenarios = redisScriptScenarios.filter(({ name }) => names.includes(name));
  const measured = await measureRedisScript(scenarios, measureMs);
  const us = (name: string): number => find(measured, name).redisCpuUsPerDecision;
  const oneUs = us(limitRows.one);
  const times = (name: string, row: string, most?: number): ProofRow => ({
    group: "limits",
    name: `Redis, ${name}, of one limit`,
    value: us(row) / oneUs,
    unit: "x",
    ...(most === undefined ? {} : { target: { most } }),
    ratio: us(row) / oneUs,
  });
  return [
    absolute("Redis, an empty script, batches of 16", us(limitRows.empty)),
    {
      ...absolute("Redis, 20,000 keys, batches of 16", oneUs, 3),
      ratio: oneUs / us(limitRows.empty),
      note: "reading and writing the keys is most of it",
    },
    { ...absolute("Redis, one hot key, 64 of a turn", us(limitRows.hot), 0.4) },
    times("two limits", limitRows.two, 1.4),
    times("four limits", limitRows.four, 2),
    ...Object.keys(chargeKinds).map((kind) => times(kind, `${kind}, batches of 16`)),
  ];
}

/** Rounds in which all rows take turns; the least of each counts. */
const roundCount = 7;

/** Our own CPU, in batches of 16, with either store. */
async function processRows(measureMs: number): Promise<readonly ProofRow[]> {
  const redis = await RedisServer.start({ engine: "redis" });
  try {
    const { store } = await openTestStore(redis);
    const embedded = () => new MemoryLimitStore({ clock: systemClock });
    const decisionCount = Math.max(20_000, measureMs * 4);
    const rows = [
      ...(await measureShapes({ label: "embedded store", decisionCount }, embedded)),
      ...(await measureShapes({ label: "with Redis", decisionCount }, () => store)),
    ];
    await store.close();
    return rows;
  } finally {
    await redis.stop();
  }
}

async function measureShapes(
  { label, decisionCount }: { readonly label: string; readonly decisionCount: number },
  createStore: () => Parameters<typeof createHandler>[1],
): Promise<readonly ProofRow[]> {
  const sides = shapes.map(({ sharedCounts }) => {
    const handle = createHandler(createPolicy({ name: "", keyCount: 1 }), createStore());
    const shape: CallShape = { keyCount: 20_000, sharedCounts, turnCalls: 16 };
    let first = 0;
    return (): Promise<number> => {
      first += decisionCount;
      return cpuUsPer(decisionCount, () => decideMany(handle, { ...shape, first }, decisionCount));
    };
  });
  for (const decide of sides) for (let i = 0; i < 2; i += 1) await decide();
  const leastUs = sides.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < roundCount; round += 1) {
    for (const [i, decide] of sides.entries()) {
      leastUs[i] = Math.min(leastUs[i] ?? 0, await decide());
    }
  }
  const [oneUs = 0] = leastUs;
  return shapes.map((shape, i): ProofRow => {
    const ownUs = leastUs[i] ?? 0;
    const name = `process, ${label}, ${shape.limits}, batches of 16`;
    if (!("most" in shape)) return absolute(name, ownUs);
    const ratio = ownUs / oneUs;
    const note = `${ownUs.toFixed(2)} us`;
    const target = { most: shape.most };
    return {
      group: "limits",
      name: `${name}, of one`,
      value: ratio,
      unit: "x",
      target,
      ratio,
      note,
    };
  });
}

function absolute(name: string, value: number, most?: number): ProofRow {
  const row: ProofRow = { group: "limits", name, value, unit: "us" };
  return most === undefined ? row : { ...row, target: { most } };
}

function find(rows: readonly RedisScriptRow[], name: string): RedisScriptRow {
  const row = rows.find((candidate) => candidate.name === name);
  if (row === undefined) throw new Error(`no row ${name}`);
  return row;
}
