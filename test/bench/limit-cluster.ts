import { systemClock } from "../../src/host/clock.js";
import type { UnaryHandler } from "../../src/wire/grpc/service.js";
import { openClusterStore } from "../support/cluster-store.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { decideMany } from "./calls.js";
import { createHandler, createPolicy } from "./in-process.js";
import { mainThreadCpuUs } from "./process-cpu.js";
import type { ProofRow } from "./proof.js";

const shardCounts = [1, 3, 6];

/** Rounds in which all clusters take turns; the least of each counts. */
const roundCount = 5;

/** At least 85 % of linear: a decision costs no more than this of what it costs with one shard. */
const mostOfOne = 1 / 0.85;

/** CPU of a decision, of this process and of all nodes. */
interface ShardCost {
  readonly ownUs: number;
  readonly redisUs: number;
}

/** What a decision costs over all parts, with real clusters of one shard and of more. */
export async function clusterRows(measureMs: number): Promise<readonly ProofRow[]> {
  const shape = { keyCount: 20_000 };
  const sides: Side[] = [];
  try {
    for (const shardCount of shardCounts) sides.push(await Side.start(shardCount));
    for (const side of sides) await side.decideFor(measureMs / 4, shape.keyCount);
    for (let round = 0; round < roundCount; round += 1) {
      for (const side of sides) await side.measure(measureMs / roundCount, shape.keyCount);
    }
    const one = sides[0]?.least;
    if (one === undefined) throw new Error("a cluster of one shard");
    return sides.map(({ shardCount, least }) => clusterRow(shardCount, least, one));
  } finally {
    for (const side of sides) await side.stop();
  }
}

function clusterRow(shardCount: number, cost: ShardCost, one: ShardCost): ProofRow {
  const value = cost.ownUs + cost.redisUs;
  const note = `Headgate ${cost.ownUs.toFixed(2)} us, Redis ${cost.redisUs.toFixed(2)} us`;
  const row = { group: "limits", note } as const;
  if (shardCount === 1)
    return { ...row, name: "cluster of 1 shard, CPU of all parts", value, unit: "us" };
  const ratio = value / (one.ownUs + one.redisUs);
  const name = `cluster of ${shardCount} shards, CPU of all parts, of one shard`;
  return { ...row, name, value: ratio, unit: "x", target: { most: mostOfOne }, ratio };
}

/** A cluster and the service over it. */
class Side {
  readonly shardCount: number;
  readonly #cluster: RedisCluster;
  readonly #handle: UnaryHandler;
  readonly #close: () => Promise<void>;
  #first = 0;
  #least: ShardCost = { ownUs: Number.POSITIVE_INFINITY, redisUs: 0 };

  private constructor(cluster: RedisCluster, handle: UnaryHandler, close: () => Promise<void>) {
    this.shardCount = cluster.nodes.length;
    this.#cluster = cluster;
    this.#handle = handle;
    this.#close = close;
  }

  static async start(shardCount: number): Promise<Side> {
    const cluster = await RedisCluster.start("redis", shardCount);
    const { store } = await openClusterStore(cluster.nodes);
    const policy = createPolicy({ name: "", keyCount: 1 });
    return new Side(cluster, createHandler(policy, store), () => store.close());
  }

  get least(): ShardCost {
    return this.#least;
  }

  /** Decides for so long, in turns of as many calls as are in flight; answers how many. */
  async decideFor(forMs: number, keyCount: number): Promise<number> {
    const endMs = systemClock.monotonicMs() + forMs;
    let count = 0;
    while (systemClock.monotonicMs() < endMs) {
      await decideMany(this.#handle, { keyCount, first: this.#first }, decisionsAtOnce);
      this.#first += decisionsAtOnce;
      count += decisionsAtOnce;
    }
    return count;
  }

  async measure(forMs: number, keyCount: number): Promise<void> {
    const ownBefore = process.cpuUsage();
    const redisBefore = this.#redisUs();
    const count = await this.decideFor(forMs, keyCount);
    const { user, system } = process.cpuUsage(ownBefore);
    const cost = {
      ownUs: (user + system) / count,
      redisUs: (this.#redisUs() - redisBefore) / count,
    };
    const sumOf = ({ ownUs, redisUs }: ShardCost): number => ownUs + redisUs;
    if (sumOf(cost) < sumOf(this.#least)) this.#least = cost;
  }

  async stop(): Promise<void> {
    await this.#close();
    await this.#cluster.stop();
  }

  #redisUs(): number {
    return this.#cluster.nodes.reduce((sum, { pid }) => sum + mainThreadCpuUs(pid), 0);
  }
}

const decisionsAtOnce = 2_000;
