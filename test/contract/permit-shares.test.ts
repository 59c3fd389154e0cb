import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import type { PermitShare } from "../../src/core/admission/permit-share.js";
import { fairShares } from "../../src/core/feedback/fair-share.js";
import { PermitShares } from "../../src/fleet/claims/permit-shares.js";
import { RedisPermits, shareScript } from "../../src/store/redis/coordination/redis-permits.js";
import type { StoreConnection } from "../../src/store/redis/scripts/connection.js";
import { enginesFor, historiesOn } from "../support/engines.js";
import { FakeRandom } from "../support/fake-random.js";
import { PermitFleet } from "../support/permit-fleet.js";
import { TestHolder } from "../support/permit-holder.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { shareTestStore, soon } from "../support/redis-store.js";
import { runSeeds, seedCount, seedsFrom } from "../support/seeds.js";
import { waitFor } from "../support/wait.js";
import type { CallFate } from "../support/wayward-connection.js";

const fates: readonly CallFate[] = [
  "answered",
  "answered",
  "answered",
  "lost",
  "unanswered",
  "late",
];
const historySteps = 40;
/** One of the histories is longer. */
const longHistorySteps = 300;
/** The store tells whole milliseconds. */
const roundingMs = 2;
const firstSeed = 20_260_401;

describe.each(enginesFor.behaviour)("PermitShares on %s", (engine) => {
  const store = shareTestStore(engine);

  function createFleet(name: string, { limit = 30, seed = 1 } = {}): PermitFleet {
    const { opened, control } = store;
    const connection = opened.connections.fleet;
    return new PermitFleet({ connection, control, random: new FakeRandom(seed), name, limit });
  }

  it("gives all to one who needs it, and one to each who needs nothing", async () => {
    const fleet = createFleet("one-needs");
    const [busy] = [fleet.join(), fleet.join(), fleet.join()];
    await fleet.beatAll(2);
    for (let i = 0; i < 40; i += 1) busy?.holder.take(0);
    await fleet.beatAll(1);
    for (let i = 0; i < 40; i += 1) busy?.holder.take(0);
    await fleet.beatAll(1);
    expect(fleet.replicas.map(({ share, clock }) => share.permits(clock.monotonicMs()))).toEqual([
      28, 1, 1,
    ]);
  });

  it("divides evenly among those who need the same, to the last permit", async () => {
    const fleet = createFleet("same-need", { limit: 31 });
    for (let i = 0; i < 3; i += 1) fleet.join();
    for (let round = 0; round < 4; round += 1) {
      for (const { holder } of fleet.replicas) {
        for (let i = 0; i < 50; i += 1) holder.take(0);
      }
      await fleet.beatAll(1);
    }
    const held = fleet.replicas.map(({ share, clock }) => share.permits(clock.monotonicMs()));
    expect(held.toSorted()).toEqual([10, 10, 11]);
  });

  it("leaves in use what is in use when the limit falls, and comes down with it", async () => {
    const fleet = createFleet("falls");
    for (let i = 0; i < 3; i += 1) fleet.join();
    await fleet.beatAll(3);
    for (const { holder } of fleet.replicas) for (let i = 0; i < 10; i += 1) holder.take(10);
    await fleet.beatAll(2);
    for (const replica of fleet.replicas) fleet.learn(replica, 6);
    await fleet.beatAll(3);
    expect(fleet.inUseCount).toBe(30);
    expect(fleet.heldCount).toBe(6);
    const joined = fleet.join();
    await fleet.beatAll(3);
    // What the others have in use is theirs until they are done with it.
    expect(joined.share.permits(joined.clock.monotonicMs())).toBe(0);
    for (const { holder } of fleet.replicas) {
      while (holder.permits.inUseCount > 0) holder.giveBack();
    }
    await fleet.beatAll(4);
    expect(fleet.heldCount).toBe(6);
    expect(joined.share.permits(joined.clock.monotonicMs())).toBeGreaterThan(0);
  });

  it("leaves aside what arrives after a later heartbeat of the same replica", async () => {
    const fleet = createFleet("late");
    const [slow, other] = [fleet.join(), fleet.join()];
    await fleet.beatAll(2);
    // On its way: that it holds half. What it is granted then is more.
    slow.connection.fate = "late";
    await fleet.beat(slow);
    slow.connection.fate = "answered";
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 60; i += 1) slow.holder.take(0);
      await fleet.beat(slow);
      await fleet.beat(other);
    }
    const nowMs = slow.clock.monotonicMs();
    expect(slow.share.permits(nowMs)).toBeGreaterThan(15);
    await slow.connection.deliverOne();
    for (let i = 0; i < 60; i += 1) other.holder.take(0);
    await fleet.beat(other);
    expect(fleet.heldCount).toBeLessThanOrEqual(30);
  });

  const seeds = seedsFrom(firstSeed, 100);

  it(`never lets more be held than the limit, in ${seeds.length} histories of losses`, () =>
    runSeeds(seeds, runHistory));

  async function runHistory(seed: number): Promise<void> {
    const random = new FakeRandom(seed);
    const below = (count: number): number => Math.floor(random.next() * count);
    const fleet = createFleet(`history-${seed}`, { seed: seed + 1_000 });
    for (let i = 0; i < 3; i += 1) fleet.join();
    const steps = seed === seeds[0] ? longHistorySteps : historySteps;
    for (let step = 0; step < steps; step += 1) {
      const replica = fleet.live[below(fleet.live.length)];
      if (replica === undefined) throw new Error("somebody is always alive");
      const { holder, share, clock, connection } = replica;
      for (let i = below(30); i > 0; i -= 1) {
        if (random.next() < 0.4 && holder.inUseCount() > 0) holder.giveBack();
        else if (share.isLeased(clock.monotonicMs())) {
          holder.take(Math.min(share.permits(clock.monotonicMs()), holder.limit));
        }
      }
      connection.fate = fates[below(fates.length)] ?? "answered";
      await fleet.beat(replica);
      if (random.next() < 0.3) await connection.deliverOne();
      if (random.next() < 0.05) fleet.learn(replica, 1 + below(60));
      if (random.next() < 0.02) {
        replica.isDead = true;
        await fleet.endLease(replica);
        fleet.join();
      }
    }
    // With everybody in agreement again, all of the limit is held, and no more.
    for (const replica of fleet.live) {
      replica.connection.fate = "answered";
      fleet.learn(replica, 30);
      while (replica.holder.inUseCount() > 0) replica.holder.giveBack();
    }
    await fleet.beatAll(5);
    expect(fleet.heldCount).toBe(30);
  }

  describe("in real time", () => {
    function join(
      name: string,
      given: { readonly connection?: StoreConnection; readonly leaseMs?: number } = {},
    ) {
      const { connection = store.opened.connections.fleet, leaseMs = 60_000 } = given;
      const holder = new TestHolder(name, 30);
      const parts = { clock: realClock, random: realRandom };
      const shares = new PermitShares({
        ...parts,
        store: new RedisPermits({ ...parts, connection, keyPrefix: "headgate:" }),
        replicaCount: () => 1,
        heartbeatMs: 30,
        leaseMs,
      });
      return { holder, shares, share: shares.open(holder) };
    }

    const permits = (share: PermitShare): number => share.permits(realClock.monotonicMs());

    it("gives others what a dead holder held when its lease is over, and not before", async () => {
      const leaseMs = 300;
      let isCut = false;
      let heardMs = 0;
      const { fleet } = store.opened.connections;
      const connection: StoreConnection = {
        run: (call) => {
          if (isCut) return new Promise(() => {});
          heardMs = realClock.monotonicMs();
          return fleet.run(call);
        },
      };
      const dying = join("dying", { connection, leaseMs });
      await waitFor("it has all", () => permits(dying.share) === 30);
      const others = [join("dying", { leaseMs }), join("dying", { leaseMs })];
      await waitFor("each has a third", () =>
        [dying, ...others].every(({ share }) => permits(share) === 10),
      );
      isCut = true;
      await waitFor("the others have all", () =>
        others.every(({ share }) => permits(share) === 15),
      );
      expect(realClock.monotonicMs() - heardMs).toBeGreaterThan(leaseMs - roundingMs);
      for (const { shares } of others) await shares.stop();
    });

    it("has a share for a newcomer when it is settled, also in place of a dead one", async () => {
      let isCut = false;
      const { fleet } = store.opened.connections;
      const connection: StoreConnection = {
        run: (call) => (isCut ? new Promise(() => {}) : fleet.run(call)),
      };
      const first = join("newcomers");
      await waitFor("it has all", () => permits(first.share) === 30);
      const dying = join("newcomers", { connection });
      await dying.shares.settled();
      expect(permits(dying.share)).toBeGreaterThan(0);
      await waitFor("each has a half", () => permits(first.share) === 15);
      isCut = true;
      // Its lease would last for longer than anybody waits here.
      const last = join("newcomers");
      await last.shares.settled();
      expect(permits(last.share)).toBeGreaterThan(0);
      expect(permits(first.share) + permits(last.share)).toBeLessThanOrEqual(15);
      for (const { shares } of [first, last]) await shares.stop();
    });

    it("gives others at once what somebody held who says goodbye", async () => {
      const members = [join("goodbye"), join("goodbye")];
      const [first, last] = members;
      await waitFor("each has a half", () => members.every(({ share }) => permits(share) === 15));
      await last?.shares.stop();
      // Its lease would last for longer than anybody waits here.
      await waitFor("all is the other's", () => first !== undefined && permits(first.share) === 30);
      await first?.shares.stop();
      expect(await store.control.exists("headgate:{permits}:goodbye")).toBe(0);
    });

    it("gives a record in the future one lease more, and drops what is none", async () => {
      const key = "headgate:{permits}:stepped";
      const farMs = (await storeMs(store.control)) + 7_200_000;
      const leaseMs = 60_000;
      await store.control.hset(key, { stepped: `1 20 20 ${farMs}`, broken: "what is this" });
      const member = join("stepped", { leaseMs });
      await waitFor("it has a lease", () => member.share.isLeased(realClock.monotonicMs()));
      expect(permits(member.share)).toBe(5);
      const { stepped = "", broken } = await store.control.hgetall(key);
      expect(broken).toBeUndefined();
      const untilMs = Number(stepped.split(" ")[3]);
      expect(untilMs).toBeLessThanOrEqual((await storeMs(store.control)) + leaseMs);
      await member.shares.stop();
    });

    it("leaves keys that go by themselves, should nobody be left to remove them", async () => {
      const member = join("alone");
      // It counts on its share before the store has heard of it.
      const key = "headgate:{permits}:alone";
      await waitFor("its key is there", async () => (await store.control.exists(key)) === 1);
      expect(await store.control.pttl(key)).toBeGreaterThan(0);
      await member.shares.stop();
    });
  });
});

describe.each(enginesFor.scripts)("the script of permits on %s", (engine) => {
  const store = shareTestStore(engine);
  const rounds = seedCount(historiesOn(engine, 300));

  it("divides as fairShares() does, and evenly what nobody needs", async () => {
    const seed = firstSeed;
    const random = new FakeRandom(seed);
    const below = (count: number): number => Math.floor(random.next() * count);
    for (let round = 0; round < rounds; round += 1) {
      const limit = below(3) === 0 ? 1 + below(8) : 1 + below(400);
      const needs = Array.from({ length: 1 + below(9) }, () => below(3) * below(120));
      const me = below(needs.length);
      const key = "headgate:{permits}:divided";
      await store.control.del(key);
      const records = needs.map((need, i) => [`r${i}`, `1 0 ${need} 99999999999999`]);
      await store.control.hset(key, Object.fromEntries(records));
      const answer = await store.opened.connections.fleet.run({
        script: shareScript,
        keys: [key],
        args: [`r${me}`, "2", "3600000", String(limit), "0", String(needs[me]), "0"],
        deadlineMs: soon(),
      });
      // Nobody holds anything yet.
      expect(String(answer), `seed ${seed}, round ${round}`).toBe(
        `${expectedShares(limit, needs)[me]} 0 ${limit}`,
      );
    }
  });
});

async function storeMs(control: Redis): Promise<number> {
  const [seconds, micros] = await control.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Who needs most comes first, and so has what does not divide. */
function expectedShares(limit: number, needs: readonly number[]): readonly number[] {
  const order = needs
    .map((_, i) => i)
    .toSorted((a, b) => (needs[b] ?? 0) - (needs[a] ?? 0) || b - a);
  const claims = order.map((i) => ({ demand: needs[i] ?? 0, floor: 1, weight: 1 }));
  const filled = fairShares(limit, claims);
  const left = limit - filled.reduce((sum, share) => sum + share, 0);
  const spare = fairShares(
    left,
    order.map(() => ({ demand: left, floor: 0, weight: 1 })),
  );
  const shares: number[] = [];
  order.forEach((i, place) => {
    shares[i] = (filled[place] ?? 0) + (spare[place] ?? 0);
  });
  return shares;
}
