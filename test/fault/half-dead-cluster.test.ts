import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StoreOutcome } from "../../src/store/limit-store.js";
import { clusterTags, keySlot, tagIndex } from "../../src/store/redis/cluster-tags.js";
import { once, testCharge, testKey } from "../support/charges.js";
import { openClusterStore, type TestClusterStore, testTagCount } from "../support/cluster-store.js";
import { realClock } from "../support/real-clock.js";
import { RedisCluster } from "../support/redis-cluster.js";
import type { RedisEngine } from "../support/redis-server.js";
import { waitFor } from "../support/wait.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];

/** Long enough that who waits for it is known by that, on a busy machine too. */
const budgetMs = 200;

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

describe.each(engines)("a cluster of %s, one node of which hangs", (engine) => {
  let cluster: RedisCluster;
  let opened: TestClusterStore;

  beforeAll(async () => {
    cluster = await RedisCluster.start(engine);
    opened = await openClusterStore(cluster.nodes);
  });

  afterAll(async () => {
    await opened?.store.close();
    await cluster?.stop();
  });

  /** A key that this node serves. */
  async function keyOf(node: number): Promise<string> {
    for (let i = 0; ; i += 1) {
      const tag = clusterTags(testTagCount)[tagIndex(testKey(`key ${i}`), testTagCount)];
      if ((await cluster.ownerOf(keySlot(`{${tag}}`))) === node) return `key ${i}`;
    }
  }

  /** Asks for the key every now and then, without waiting for answers, until time is over. */
  async function askOften(keys: readonly string[], forMs: number): Promise<readonly Answer[]> {
    const startMs = realClock.monotonicMs();
    const answers: Promise<Answer>[] = [];
    let dueMs = startMs;
    await waitFor(
      "time passes",
      () => {
        const nowMs = realClock.monotonicMs();
        if (nowMs >= dueMs) {
          dueMs = nowMs + everyMs;
          answers.push(ask(keys, startMs));
        }
        return nowMs - startMs >= forMs;
      },
      { everyMs: 1 },
    );
    return Promise.all(answers);
  }

  async function ask(keys: readonly string[], startMs: number): Promise<Answer> {
    const sentMs = realClock.monotonicMs();
    const charges = keys.map((key) => testCharge({ key, hits: 1_000_000, burst: 1_000_000 }));
    const [outcome] = await opened.store.take([once(...charges)], sentMs + budgetMs);
    if (outcome === undefined) throw new Error("no outcome");
    const waitedMs = realClock.monotonicMs() - sentMs;
    return { atMs: sentMs - startMs, waitedMs, outcome };
  }

  it("lets nobody wait for it for long, and decides what needs the others", async () => {
    const hung = await keyOf(2);
    const alive = await keyOf(0);
    await ask([hung, alive], 0);
    cluster.nodes[2]?.pause();
    const [lost, crossing, well] = await Promise.all([
      askOften([hung], hangMs),
      askOften([alive, hung], hangMs),
      askOften([alive], hangMs),
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
    const resumedMs = realClock.monotonicMs();
    await waitFor("the node is asked again", async () => {
      return (await ask([alive, hung], 0)).outcome.kind === "decided";
    });
    expect(realClock.monotonicMs() - resumedMs).toBeLessThan(recoveryMsMax);
  });
});

/** Ten times the second in which a store that is back must be used again, in milliseconds. */
const recoveryMsMax = 10_000;
