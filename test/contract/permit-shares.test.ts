import { describe, expect, it } from "vitest";
import { fairShares } from "../../src/core/fair-share.js";
import type { PermitShare } from "../../src/core/permit-share.js";
import { shareScript } from "../../src/fleet/permit-script.js";
import { PermitShares } from "../../src/fleet/permit-shares.js";
import type { StoreConnection } from "../../src/store/connection.js";
import { FakeRandom } from "../support/fake-random.js";
import { PermitFleet } from "../support/permit-fleet.js";
import { TestHolder } from "../support/permit-holder.js";
import { realClock, realRandom } from "../support/real-clock.js";
import type { RedisEngine } from "../support/redis-server.js";
import { shareTestStore, soon } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";
import type { CallFate } from "../support/wayward-connection.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];
const fates: readonly CallFate[] = [
  "answered",
  "answered",
  "answered",
  "lost",
  "unanswered",
  "late",
];
const historySteps = 300;
const firstSeed = 20_260_401;
const seedCount = 4;

describe.each(engines)("PermitShares on %s", (engine) => {
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
    for (let i = 0; i < 40; i += 1) busy?.holder.permits.take(0);
    await fleet.beatAll(1);
    for (let i = 0; i < 40; i += 1) busy?.holder.permits.take(0);
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
        for (let i = 0; i < 50; i += 1) holder.permits.take(0);
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
    for (const { holder } of fleet.replicas)
      for (let i = 0; i < 10; i += 1) holder.permits.take(10);
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
      while (holder.permits.inUseCount > 0) holder.permits.giveBack();
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
      for (let i = 0; i < 60; i += 1) slow.holder.permits.take(0);
      await fleet.beat(slow);
      await fleet.beat(other);
    }
    const nowMs = slow.clock.monotonicMs();
    expect(slow.share.permits(nowMs)).toBeGreaterThan(15);
    await slow.connection.deliverOne();
    for (let i = 0; i < 60; i += 1) other.holder.permits.take(0);
    await fleet.beat(other);
    expect(fleet.heldCount).toBeLessThanOrEqual(30);
  });

  it.each(Array.from({ length: seedCount }, (_, i) => firstSeed + i))(
    "never lets more be held than the limit, in a history of losses, seed %i",
    async (seed) => {
      const random = new FakeRandom(seed);
      const below = (count: number): number => Math.floor(random.next() * count);
      const fleet = createFleet(`history-${seed}`, { seed: seed + 1_000 });
      for (let i = 0; i < 3; i += 1) fleet.join();
      for (let step = 0; step < historySteps; step += 1) {
        const replica = fleet.live[below(fleet.live.length)];
        if (replica === undefined) throw new Error("somebody is always alive");
        const { holder, share, clock, connection } = replica;
        for (let i = below(30); i > 0; i -= 1) {
          if (random.next() < 0.4 && holder.inUseCount() > 0) holder.permits.giveBack();
          else if (share.isLeased(clock.monotonicMs())) {
            holder.permits.take(Math.min(share.permits(clock.monotonicMs()), holder.limit));
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
        while (replica.holder.inUseCount() > 0) replica.holder.permits.giveBack();
      }
      await fleet.beatAll(5);
      expect(fleet.heldCount).toBe(30);
    },
    60_000,
  );

  it("divides as fairShares() does, and evenly what nobody needs", async () => {
    const seed = firstSeed;
    const random = new FakeRandom(seed);
    const below = (count: number): number => Math.floor(random.next() * count);
    for (let round = 0; round < 300; round += 1) {
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
        args: [`r${me}`, "2", "3600000", String(limit), "0", String(needs[me])],
        deadlineMs: soon(),
      });
      expect(String(answer), `seed ${seed}, round ${round}`).toBe(
        String(expectedShares(limit, needs)[me]),
      );
    }
  });

  describe("in real time", () => {
    const leaseMs = 900;

    function join(name: string, connection?: StoreConnection) {
      const holder = new TestHolder(name, 30);
      const shares = new PermitShares({
        connection: connection ?? store.opened.connections.fleet,
        clock: realClock,
        random: realRandom,
        keyPrefix: "headgate:",
        replicaCount: () => 3,
        heartbeatMs: 30,
        leaseMs,
      });
      return { holder, shares, share: shares.open(holder) };
    }

    const permits = (share: PermitShare): number => share.permits(realClock.monotonicMs());

    it("gives others what a dead holder held when its lease is over, and not before", async () => {
      let isCut = false;
      const { fleet } = store.opened.connections;
      const cut: StoreConnection = {
        run: (call) => (isCut ? new Promise(() => {}) : fleet.run(call)),
      };
      const dying = join("dying", cut);
      await waitFor("it has all", () => permits(dying.share) === 30);
      const others = [join("dying"), join("dying")];
      await waitFor("each has a third", () =>
        [dying, ...others].every(({ share }) => permits(share) === 10),
      );
      isCut = true;
      const cutMs = realClock.monotonicMs();
      await waitFor("the others have all", () =>
        others.every(({ share }) => permits(share) === 15),
      );
      // The last heartbeat that got through was at most a heartbeat and its way ago.
      expect(realClock.monotonicMs() - cutMs).toBeGreaterThan(leaseMs / 2);
      for (const { shares } of others) await shares.stop();
    });

    it("gives others at once what somebody held who says goodbye", async () => {
      const members = [join("goodbye"), join("goodbye")];
      const [first, last] = members;
      await waitFor("each has a half", () => members.every(({ share }) => permits(share) === 15));
      await last?.shares.stop();
      const leftMs = realClock.monotonicMs();
      await waitFor("all is the other's", () => first !== undefined && permits(first.share) === 30);
      expect(realClock.monotonicMs() - leftMs).toBeLessThan(leaseMs);
      await first?.shares.stop();
      expect(await store.control.exists("headgate:{permits}:goodbye")).toBe(0);
    });

    it("gives a record in the future one lease more, and drops what is none", async () => {
      const [seconds] = await store.control.time();
      const farMs = (Number(seconds) + 7_200) * 1_000;
      await store.control.hset("headgate:{permits}:stepped", {
        stepped: `1 20 20 ${farMs}`,
        broken: "what is this",
      });
      const member = join("stepped");
      await waitFor("it has a lease", () => member.share.isLeased(realClock.monotonicMs()));
      expect(permits(member.share)).toBe(5);
      expect(await store.control.hkeys("headgate:{permits}:stepped")).not.toContain("broken");
      await waitFor("it has all", () => permits(member.share) === 30);
      await member.shares.stop();
    });

    it("leaves keys that go by themselves, should nobody be left to remove them", async () => {
      const member = join("alone");
      await waitFor("it has all", () => permits(member.share) === 30);
      expect(await store.control.pttl("headgate:{permits}:alone")).toBeGreaterThan(0);
      await member.shares.stop();
    });
  });
});

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
