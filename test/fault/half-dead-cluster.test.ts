import { beforeAll, describe, expect, it } from "vitest";
import type { StoreOutcome } from "../../src/store/limit-store.js";
import { clusterTags, keySlot, tagIndex } from "../../src/store/redis/cluster/cluster-tags.js";
import { once, testCharge, testKey } from "../support/charges.js";
import { openClusterStore, type TestClusterStore, testTagCount } from "../support/cluster-store.js";
import { recoveryMsMax } from "../support/failure-modes.js";
import { realClock } from "../support/real-clock.js";
import { RedisCluster } from "../support/redis-cluster.js";
import type { RedisEngine } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];

/** Long enough that who waits for it is known by that, on a busy machine too. */
const budgetMs = 500;

/** Until the breaker has opened, at the latest: five time-outs, side by side or one by one. */
const openMsMax = 2 * budgetMs;

/** Time over which the store is asked while a node hangs, and how often. */
const hangMs = 3_000;
const everyMs = 20;

interface Answer {
  readonly atMs: number;
  readonly waitedMs: number;
  readonly outcome: StoreOutcome;
}

/** A cluster, and a store on it. */
interface Rig {
  readonly cluster: RedisCluster;
  readonly store: TestClusterStore["store"];
}

const stage = useStage("file");

/** By engine. */
const rigs = new Map<RedisEngine, Rig>();

beforeAll(async () => {
  await Promise.all(
    engines.map(async (engine) => {
      const cluster = await RedisCluster.start(engine);
      stage.atEnd(() => cluster.stop());
      // The hanging node's connection is never given up here: what spares callers is its breaker.
      const { store } = await openClusterStore(cluster.nodes, { silenceMsMax: 60_000 });
      stage.atEnd(() => store.close());
      rigs.set(engine, { cluster, store });
    }),
  );
});

describe("a cluster of which one node hangs", () => {
  // Side by side: each mostly waits.
  it.concurrent.each(engines)(
    "lets nobody wait for it for long, and decides what needs the others: %s",
    async (engine) => {
      const rig = rigs.get(engine);
      if (rig === undefined) throw new Error(`no ${engine}`);
      const { cluster } = rig;
      const hung = await keyOf(2, rig);
      const alive = await keyOf(0, rig);
      await ask([hung, alive], { rig, startMs: 0 });
      cluster.nodes[2]?.pause();
      const [lost, crossing, well] = await Promise.all([
        askOften([hung], rig),
        askOften([alive, hung], rig),
        askOften([alive], rig),
      ]);
      for (const answers of [lost, crossing]) {
        expect(answers.filter(({ outcome }) => outcome.kind === "decided")).toEqual([]);
        const late = answers.filter(({ atMs }) => atMs > openMsMax);
        const waited = late.filter(({ waitedMs }) => waitedMs > budgetMs / 2);
        // One probe in a quarter of a second and in its own budget; all that it brings along waits.
        expect(waited.length).toBeLessThanOrEqual((hangMs / (250 + budgetMs)) * 2);
        expect(late.length).toBeGreaterThan(5 * waited.length);
      }
      expect(well.filter(({ outcome }) => outcome.kind !== "decided")).toEqual([]);
      cluster.nodes[2]?.resume();
      await waitFor(
        "the node is asked again",
        async () => {
          const { outcome } = await ask([alive, hung], { rig, startMs: 0 });
          return outcome.kind === "decided";
        },
        { withinMs: recoveryMsMax },
      );
    },
  );
});

/** A key that this node serves. */
async function keyOf(node: number, { cluster }: Rig): Promise<string> {
  for (let i = 0; ; i += 1) {
    const tag = clusterTags(testTagCount)[tagIndex(testKey(`key ${i}`), testTagCount)];
    if ((await cluster.ownerOf(keySlot(`{${tag}}`))) === node) return `key ${i}`;
  }
}

/** Asks for the keys every now and then, without waiting for answers, until time is over. */
async function askOften(keys: readonly string[], rig: Rig): Promise<readonly Answer[]> {
  const startMs = realClock.monotonicMs();
  const answers: Promise<Answer>[] = [];
  let dueMs = startMs;
  await waitFor(
    "time passes",
    () => {
      const nowMs = realClock.monotonicMs();
      if (nowMs >= dueMs) {
        dueMs = nowMs + everyMs;
        answers.push(ask(keys, { rig, startMs }));
      }
      return nowMs - startMs >= hangMs;
    },
    { everyMs: everyMs / 4 },
  );
  return Promise.all(answers);
}

async function ask(
  keys: readonly string[],
  { rig, startMs }: { readonly rig: Rig; readonly startMs: number },
): Promise<Answer> {
  const sentMs = realClock.monotonicMs();
  const charges = keys.map((key) => testCharge({ key, hits: 1_000_000, burst: 1_000_000 }));
  const [outcome] = await rig.store.take([once(...charges)], sentMs + budgetMs);
  if (outcome === undefined) throw new Error("no outcome");
  const waitedMs = realClock.monotonicMs() - sentMs;
  return { atMs: sentMs - startMs, waitedMs, outcome };
}
