import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { isServiceError } from "../../src/core/base/errors.js";
import { type Charge, unitsPerHit } from "../../src/core/limits/bucket.js";
import { Membership } from "../../src/fleet/claims/membership.js";
import type { StoreOutcome } from "../../src/store/limit-store.js";
import { clusterTags, keySlot, tagIndex } from "../../src/store/redis/cluster/cluster-tags.js";
import { RedisMembers } from "../../src/store/redis/coordination/redis-members.js";
import { once, takeOne, testCharge, testKey } from "../support/charges.js";
import { openClusterStore, type TestClusterStore, testTagCount } from "../support/cluster-store.js";
import { enginesFor } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { RedisCluster } from "../support/redis-cluster.js";
import { RedisServer } from "../support/redis-server.js";
import { soon } from "../support/redis-store.js";
import { openClockedRooms, TestRoom } from "../support/rooms.js";
import { waitFor } from "../support/wait.js";

/** Far above a busy machine's pauses, far below the silence after which a node is given up. */
const budgetMs = 300;

describe.each(enginesFor.cluster)("SplitStore on a cluster of %s", (engine) => {
  let cluster: RedisCluster;
  const cleanups: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    cluster = await RedisCluster.start(engine);
  });

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });

  afterAll(async () => {
    await cluster?.stop();
  });

  /** How many of our tags a node serves now. */
  async function tagCountOf(node: number): Promise<number> {
    const owners = await Promise.all(usedSlots().map((slot) => cluster.ownerOf(slot)));
    return owners.filter((owner) => owner === node).length;
  }

  /** Knows all nodes at first, or one of them. */
  async function open(only?: number): Promise<TestClusterStore> {
    const seeds = only === undefined ? cluster.nodes : cluster.nodes.slice(only, only + 1);
    const opened = await openClusterStore(seeds);
    cleanups.push(() => opened.store.close());
    return opened;
  }

  it("loses no call and no hit while slots move under load", async () => {
    const stores = [await open(), await open()];
    const load = new Load(stores);
    load.start();
    await load.askedAtLeast(200);
    for (const slot of usedSlots().slice(0, 6)) {
      const from = await cluster.ownerOf(slot);
      const to = (from + 1) % cluster.nodes.length;
      await cluster.beginMove(slot, from, to);
      await load.askedAtLeast(40);
      while ((await cluster.moveKeys(slot, from, to)) > 0) await load.askedAtLeast(10);
      await cluster.endMove(slot, from, to);
      await load.askedAtLeast(40);
    }
    await load.stop();
    // A request over one key is always decided; one over several may meet them in two places.
    expect(load.failedCodes("one key")).toEqual([]);
    expect(load.failedCodes("two keys").filter((code) => code !== "STORE_UNAVAILABLE")).toEqual([]);
    const [opened] = stores;
    for (const key of load.keys) {
      const peeked = await opened?.store.peek(testKey(key), soon());
      const used = Math.ceil((peeked?.bucket.level ?? 0) / unitsPerHit);
      expect(used).toBeLessThanOrEqual(loadBurst);
      // What failed half way stays charged; nothing else is charged that was not admitted.
      expect(used).toBeGreaterThanOrEqual(load.admittedHits(key));
      expect(used).toBeLessThanOrEqual(load.admittedHits(key) + load.failedHits(key));
    }
  });

  it("asks key by key where a slot's keys are in two places", async () => {
    const { store } = await open();
    const keys = keysOfTag(3, 6);
    await store.forget(keys.map(testKey), soon());
    await store.take(
      keys.slice(0, 4).map((key) => once(yearly(key))),
      soon(),
    );
    const slot = keySlot(`{${clusterTags(testTagCount)[3]}}`);
    const from = await cluster.ownerOf(slot);
    const to = (from + 1) % cluster.nodes.length;
    await cluster.beginMove(slot, from, to);
    const [moved] = keys;
    const place = ["127.0.0.1", cluster.nodes[to]?.port ?? 0, prefixed(moved ?? "", 3), 0, 5_000];
    await cluster.control(from).call("migrate", ...place);
    const asked = keys.map((key) => once(yearly(key)));
    const outcomes = await store.take([...asked, once(yearly("elsewhere"))], soon());
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(7).fill("decided"));
    expect(await Promise.all(keys.map((key) => usedHits(store, key)))).toEqual([2, 2, 2, 2, 1, 1]);
    const both = once(yearly(keys[0] ?? ""), yearly(keys[1] ?? ""));
    const [failed] = await store.take([both, once(yearly("elsewhere"))], soon());
    expect(failed).toEqual({ kind: "failed", code: "STORE_UNAVAILABLE" });
    while ((await cluster.moveKeys(slot, from, to)) > 0);
    await cluster.endMove(slot, from, to);
    const [whole] = await store.take([both], soon());
    expect(whole?.kind).toBe("decided");
    expect(await usedHits(store, keys[0] ?? "")).toBe(3);
  });

  it("follows a slot that moved behind its back, and then knows", async () => {
    const { store } = await open();
    const [key = ""] = keysOfTag(5, 1);
    await store.forget([testKey(key)], soon());
    await takeOne(store, [yearly(key)], soon());
    const slot = keySlot(prefixed(key, 5));
    const from = await cluster.ownerOf(slot);
    const to = (from + 1) % cluster.nodes.length;
    await cluster.beginMove(slot, from, to);
    while ((await cluster.moveKeys(slot, from, to)) > 0);
    await cluster.endMove(slot, from, to);
    await cluster.control(from).config("RESETSTAT");
    await takeOne(store, [yearly(key)], soon());
    const refusedCount = await errorCount(cluster, from, "MOVED");
    expect(refusedCount).toBe(1);
    for (let i = 0; i < 20; i += 1) await takeOne(store, [yearly(key)], soon());
    expect(await errorCount(cluster, from, "MOVED")).toBe(refusedCount);
    expect(await usedHits(store, key)).toBe(22);
  });

  it("takes turns of a waiting room before, while and after its slot moves", async () => {
    const { connections } = await open();
    const clock = new FakeClock();
    const room = await TestRoom.open({ store: openClockedRooms({ connections, clock }), clock });
    await room.turn({ joinCount: 3 });
    await room.call([0]);
    const slot = keySlot(`headgate:{room-${room.name}}:head`);
    const from = await cluster.ownerOf(slot);
    const to = (from + 1) % cluster.nodes.length;
    await cluster.beginMove(slot, from, to);
    expect(await room.visit(1)).toEqual([{ kind: "waiting" }]);
    while ((await cluster.moveKeys(slot, from, to)) > 0);
    expect(await room.visit(0, 1)).toMatchObject([{ kind: "entered" }, { kind: "waiting" }]);
    await cluster.endMove(slot, from, to);
    expect(await room.turn({ joinCount: 1 })).toMatchObject({ firstNumber: 3, joinedCount: 1 });
    expect(await room.sessions(0, 1)).toEqual([0, 1]);
  });

  it("finds the slot of a key as the server does", async () => {
    const control = cluster.control(0);
    for (const key of ["", "k", "{}k", "a{b}c{d}", "a{", "größe", "𝄞{☃}", "headgate:{12}1g"]) {
      expect(keySlot(key)).toBe(await control.cluster("KEYSLOT", key));
    }
  });

  if (enginesFor.behaviour.includes(engine)) {
    it("answers for the other nodes while one is dead, and for all when it is back", async () => {
      const { store } = await open();
      const batch = Array.from({ length: testTagCount }, (_, tag) => {
        return once(yearly(keysOfTag(tag, 1)[0] ?? ""));
      });
      const decidedCount = async (): Promise<number> => {
        const outcomes = await store.take(batch, realClock.monotonicMs() + budgetMs);
        return outcomes.filter(({ kind }) => kind === "decided").length;
      };
      expect(await decidedCount()).toBe(testTagCount);
      const lostCount = await tagCountOf(1);
      expect(lostCount).toBeGreaterThan(0);
      await cluster.nodes[1]?.kill();
      await waitFor("the loss is noticed", async () => (await decidedCount()) < testTagCount);
      for (let i = 0; i < 20; i += 1) {
        const startMs = realClock.monotonicMs();
        expect(await decidedCount()).toBe(testTagCount - lostCount);
        expect(realClock.monotonicMs() - startMs).toBeLessThan(budgetMs);
      }
      await cluster.nodes[1]?.restart();
      await waitFor("all is well again", async () => (await decidedCount()) === testTagCount);
    });

    it("waits for a node that hangs for the budget at most, and soon not at all", async () => {
      const { store, events } = await open();
      const batch = Array.from({ length: testTagCount }, (_, tag) => {
        return once(yearly(keysOfTag(tag, 1)[0] ?? ""));
      });
      const take = () => store.take(batch, realClock.monotonicMs() + budgetMs);
      await take();
      const hungCount = await tagCountOf(2);
      expect(hungCount).toBeGreaterThan(0);
      cluster.nodes[2]?.pause();
      const outcomes = await take();
      const codes = outcomes.map((outcome) =>
        outcome.kind === "failed" ? outcome.code : "decided",
      );
      expect(codes.filter((code) => code === "STORE_TIMEOUT")).toHaveLength(hungCount);
      expect(codes.filter((code) => code === "decided")).toHaveLength(testTagCount - hungCount);
      await waitFor("the node is given up", async () => {
        await take();
        return events.some(({ event }) => event.kind === "redisLost");
      });
      const startMs = realClock.monotonicMs();
      await take();
      expect(realClock.monotonicMs() - startMs).toBeLessThan(budgetMs);
      cluster.nodes[2]?.resume();
      await waitFor("all is well again", async () => {
        return (await take()).every(({ kind }) => kind === "decided");
      });
    });

    it("keeps the fleet's key on the node that owns it", async () => {
      const { connections } = await open();
      const members = [1, 2].map(() => {
        const keyPrefix = "headgate:";
        const parts = { connection: connections.fleet, clock: realClock, random: realRandom };
        const store = new RedisMembers({ ...parts, keyPrefix });
        return new Membership({ ...parts, store, heartbeatMs: 50 });
      });
      await waitFor("they know of each other", () => {
        return members.every((member) => member.liveReplicas() === 2);
      });
      for (const member of members) await member.stop();
    });
  }

  // The last one: the cluster has lost a primary then.
  it("finds the replica that took over, and what it had of the buckets", async () => {
    const { store } = await open(1);
    const replica = (await cluster.addReplica(1)).client();
    const keys = Array.from({ length: testTagCount }, (_, tag) => keysOfTag(tag, 1)[0] ?? "");
    await store.forget(keys.map(testKey), soon());
    const batch = keys.map((key) => once(yearly(key)));
    const take = () => store.take(batch, realClock.monotonicMs() + budgetMs);
    await take();
    await waitFor("the replica has the buckets", async () => {
      return (await replica.dbsize()) === (await cluster.control(1).dbsize());
    });
    await cluster.nodes[1]?.kill();
    await waitFor("the loss is noticed", async () => {
      return (await take()).some(({ kind }) => kind === "failed");
    });
    const isDecided = async (): Promise<boolean> =>
      (await take()).every(({ kind }) => kind === "decided");
    await waitFor("the replica decides", isDecided, { withinMs: 30_000 });
    for (const key of keys) expect(await usedHits(store, key)).toBeGreaterThanOrEqual(2);
  });
});

describe("SplitStore on what is no cluster for it", () => {
  let server: RedisServer | undefined;

  afterEach(() => server?.stop());

  it.each([
    ["a single server", [], "STORE_PROTOCOL", "REDIS_TYPE"],
    ["a node that wants a password", ["--requirepass", "pw"], "STORE_UNAUTHENTICATED", "password"],
    ["a node without slots", ["--cluster-enabled", "yes"], "STORE_UNAVAILABLE", "slots"],
  ])("says at start what is wrong: %s", async (_name, args, code, word) => {
    server = await RedisServer.start({ engine: "redis", args });
    const { store } = await openClusterStore([server], { isVerified: false });
    const failure = await store.verify(realClock.monotonicMs() + 1_500).catch((e: unknown) => e);
    await store.close();
    expect(failure).toMatchObject({ code, message: expect.stringContaining(word) });
  });
});

const loadBurst = 400;

/** Requests from several stores at a time, over one key and over two, until they are stopped. */
class Load {
  readonly keys = Array.from({ length: 24 }, (_, i) => `load ${i}`);
  readonly #stores: readonly TestClusterStore[];
  readonly #answers: { readonly keys: readonly string[]; readonly outcome: string }[] = [];
  #isStopped = false;
  #workers: readonly Promise<void>[] = [];

  constructor(stores: readonly TestClusterStore[]) {
    this.#stores = stores;
  }

  start(): void {
    this.#workers = this.#stores.flatMap((opened) => [1, 2, 3].map((n) => this.#work(opened, n)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#workers);
  }

  async askedAtLeast(more: number): Promise<void> {
    const wanted = this.#answers.length + more;
    await waitFor("the load goes on", () => this.#answers.length >= wanted, { everyMs: 1 });
  }

  failedCodes(size: "one key" | "two keys"): readonly string[] {
    const keyCount = size === "one key" ? 1 : 2;
    const own = this.#answers.filter(({ keys }) => keys.length === keyCount);
    return own.map(({ outcome }) => outcome).filter((outcome) => outcome.startsWith("STORE_"));
  }

  admittedHits(key: string): number {
    return this.#countOf(key, (outcome) => outcome === "granted");
  }

  failedHits(key: string): number {
    return this.#countOf(key, (outcome) => outcome.startsWith("STORE_"));
  }

  #countOf(key: string, isMeant: (outcome: string) => boolean): number {
    return this.#answers.filter(({ keys, outcome }) => keys.includes(key) && isMeant(outcome))
      .length;
  }

  async #work({ store }: TestClusterStore, worker: number): Promise<void> {
    for (let i = worker; !this.#isStopped; i += 1) {
      const requests = [0, 5, 9, 14].map((step) => {
        const one = this.keys[(i + step) % this.keys.length] ?? "";
        const other = this.keys[(i * 7 + step + 1) % this.keys.length] ?? "";
        return step === 9 && one !== other ? [one, other] : [one];
      });
      const batch = requests.map((keys) => once(...keys.map((key) => wide(key))));
      const outcomes = await store.take(batch, soon()).catch((error: unknown): StoreOutcome[] => {
        const code = isServiceError(error) ? error.code : "INTERNAL";
        return batch.map(() => ({ kind: "failed", code }));
      });
      outcomes.forEach((outcome, at) => {
        this.#answers.push({ keys: requests[at] ?? [], outcome: wordOf(outcome) });
      });
    }
  }
}

function wordOf(outcome: StoreOutcome): string {
  if (outcome.kind === "failed") return outcome.code;
  return outcome.result.grantedCount > 0 ? "granted" : "denied";
}

function wide(key: string): Charge {
  return yearly(key, { hits: loadBurst, burst: loadBurst });
}

function yearly(key: string, overrides: Omit<Partial<Charge>, "key"> = {}): Charge {
  const limit = { hits: 100, periodUs: 31_536_000_000_000, burst: 100 };
  return testCharge({ key, ...limit, ...overrides });
}

async function usedHits(store: TestClusterStore["store"], key: string): Promise<number> {
  const peeked = await store.peek(testKey(key), soon());
  return Math.ceil((peeked?.bucket.level ?? 0) / unitsPerHit);
}

/** Keys that fall under one tag. */
function keysOfTag(tag: number, count: number): readonly string[] {
  const keys: string[] = [];
  for (let i = 0; keys.length < count; i += 1) {
    const key = `tagged ${i}`;
    if (tagIndex(testKey(key), testTagCount) === tag) keys.push(key);
  }
  return keys;
}

function prefixed(key: string, tag: number): string {
  return `headgate:{${clusterTags(testTagCount)[tag]}}${key}`;
}

function usedSlots(): readonly number[] {
  return clusterTags(testTagCount).map((tag) => keySlot(`{${tag}}`));
}

/** How often a node has refused with this word. */
async function errorCount(cluster: RedisCluster, node: number, word: string): Promise<number> {
  const stats = await cluster.control(node).info("errorstats");
  return Number(new RegExp(`errorstat_${word}:count=(\\d+)`).exec(stats)?.[1] ?? 0);
}
