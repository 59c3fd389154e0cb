import type { Redis } from "ioredis";
import { freePort } from "./free-port.js";
import { allStarted, type RedisEngine, RedisServer } from "./redis-server.js";
import { waitFor } from "./wait.js";

const slotCount = 16_384;

/** Keys moved by one MIGRATE. */
const migratedKeysMax = 100;

/**
 * A real Redis Cluster on the loopback, of primaries without replicas but for those that a test
 * adds. A dead node takes only its own slots with it.
 */
export class RedisCluster {
  readonly nodes: readonly RedisServer[];
  readonly #engine: RedisEngine;
  readonly #controls: readonly Redis[];
  readonly #replicas: RedisServer[] = [];

  private constructor(engine: RedisEngine, nodes: readonly RedisServer[]) {
    this.#engine = engine;
    this.nodes = nodes;
    this.#controls = nodes.map((node) => node.client());
  }

  /**
   * Resolves when every node serves an equal part of the slots, and knows all others.
   *
   * @param moreArgs asked for each node: more words of its command line
   */
  static async start(
    engine: RedisEngine,
    nodeCount = 3,
    moreArgs: () => Promise<readonly string[]> = async () => [],
  ): Promise<RedisCluster> {
    const nodes = await allStarted(
      Array.from({ length: nodeCount }, async () => startNode(engine, await moreArgs())),
    );
    const cluster = new RedisCluster(engine, nodes);
    try {
      await cluster.#join();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** A connection of the test's own to a node. */
  control(node: number): Redis {
    const control = this.#controls[node];
    if (control === undefined) throw new Error(`there is no node ${node}`);
    return control;
  }

  /** Starts a replica of a node, which takes over when that one dies; resolves when it follows. */
  async addReplica(of: number): Promise<RedisServer> {
    const replica = await startNode(this.#engine);
    this.#replicas.push(replica);
    const control = replica.client();
    const [first] = this.nodes;
    if (first === undefined) throw new Error("there is no node");
    await control.call("cluster", "meet", "127.0.0.1", first.port, busPortOf(first));
    const primary = await this.#id(of);
    await waitFor("it knows its primary", async () => {
      return String(await control.call("cluster", "nodes")).includes(primary);
    });
    await control.call("cluster", "replicate", primary);
    await waitFor("it follows", async () => {
      return (await control.info("replication")).includes("master_link_status:up");
    });
    // Who does not know it would not vote for it.
    await waitFor("all know it", async () => {
      const reported = this.#controls.map((one) => one.call("cluster", "nodes"));
      const following = new RegExp(`:${replica.port}@.* slave ${primary} .* connected`);
      return (await Promise.all(reported)).every((nodes) => following.test(String(nodes)));
    });
    return replica;
  }

  /** Which node serves a slot, as the first of them sees it. */
  async ownerOf(slot: number): Promise<number> {
    const ranges = await this.control(0).cluster("SLOTS");
    const range = ranges.find(([first, last]) => first <= slot && slot <= last);
    return this.nodes.findIndex(({ port }) => port === Number(range?.[2]?.[1]));
  }

  /** Begins to move a slot; its keys are still where they were. */
  async beginMove(slot: number, from: number, to: number): Promise<void> {
    await this.control(to).call("cluster", "setslot", slot, "importing", await this.#id(from));
    await this.control(from).call("cluster", "setslot", slot, "migrating", await this.#id(to));
  }

  /** Moves some of the slot's keys; answers how many there were to move. */
  async moveKeys(slot: number, from: number, to: number): Promise<number> {
    const source = this.control(from);
    const keys = await source.call("cluster", "getkeysinslot", slot, migratedKeysMax);
    if (!Array.isArray(keys) || keys.length === 0) return 0;
    const port = this.nodes[to]?.port ?? 0;
    await source.call("migrate", "127.0.0.1", port, "", 0, 5_000, "REPLACE", "KEYS", ...keys);
    return keys.length;
  }

  /** Ends a move: both nodes know the new owner, and the others learn it from them. */
  async endMove(slot: number, from: number, to: number): Promise<void> {
    const owner = await this.#id(to);
    for (const node of [to, from]) {
      await this.control(node).call("cluster", "setslot", slot, "node", owner);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.nodes, ...this.#replicas].map((node) => node.stop()));
  }

  async #join(): Promise<void> {
    const share = slotCount / this.nodes.length;
    const serve = async (control: Redis, i: number): Promise<void> => {
      const first = Math.ceil(i * share);
      const last = Math.ceil((i + 1) * share) - 1;
      await control.call("cluster", "set-config-epoch", i + 1);
      await control.call("cluster", "addslotsrange", first, last);
    };
    await Promise.all(this.#controls.map(serve));
    // Each meets all others: to hear of them from the first one takes longer.
    for (const [i, control] of this.#controls.entries()) {
      for (const other of this.nodes.slice(i + 1)) {
        await control.call("cluster", "meet", "127.0.0.1", other.port, busPortOf(other));
      }
    }
    await waitFor("all nodes know each other", () => this.#isWhole(), { withinMs: 30_000 });
  }

  async #isWhole(): Promise<boolean> {
    for (const control of this.#controls) {
      const info = String(await control.call("cluster", "info"));
      if (!info.includes("cluster_state:ok")) return false;
      if (!info.includes(`cluster_slots_ok:${slotCount}`)) return false;
      if (!info.includes(`cluster_known_nodes:${this.nodes.length}`)) return false;
    }
    return true;
  }

  async #id(node: number): Promise<string> {
    return String(await this.control(node).call("cluster", "myid"));
  }
}

const busPorts = new WeakMap<RedisServer, number>();

function busPortOf(server: RedisServer): number {
  return busPorts.get(server) ?? 0;
}

async function startNode(
  engine: RedisEngine,
  moreArgs: readonly string[] = [],
): Promise<RedisServer> {
  const busPort = await freePort();
  const args = ["--cluster-enabled", "yes", "--cluster-port", String(busPort)];
  args.push("--cluster-require-full-coverage", "no", "--cluster-node-timeout", "1000");
  args.push("--repl-diskless-sync-delay", "0", ...moreArgs);
  const server = await RedisServer.start({ engine, args });
  busPorts.set(server, busPort);
  return server;
}
