import { beforeEach, describe, expect, it } from "vitest";
import {
  bucketTimeToFullUs,
  type Charge,
  levelUnitsMax,
  unitsPerHit,
} from "../../src/core/limits/bucket.js";
import { Membership } from "../../src/fleet/claims/membership.js";
import { PermitShares } from "../../src/fleet/claims/permit-shares.js";
import type { SharedCoordination } from "../../src/store/coordination/coordination-store.js";
import type { StoreRequest } from "../../src/store/limit-store.js";
import type { RedisConnections } from "../../src/store/redis/connections.js";
import { createRedisCoordination } from "../../src/store/redis/coordination/redis-coordination.js";
import { once, takeOne, testCharge, testKey } from "../support/charges.js";
import { enginesFor } from "../support/engines.js";
import { TestHolder } from "../support/permit-holder.js";
import { realClock, realRandom } from "../support/real-clock.js";
import {
  openTestStore,
  shareTestStore,
  soon,
  storedValue,
  type TestRedisStore,
} from "../support/redis-store.js";

const hourUs = 3_600_000_000;

// Scripts that are forgotten, and rights, are for both as well.
describe.each(enginesFor.expiry)("RedisLimitStore's state on %s", (engine) => {
  const shared = shareTestStore(engine);

  beforeEach(async () => {
    await shared.control.flushall();
  });

  /** Ten hits an hour, burst ten: one hit drains in six minutes. */
  function hourly(overrides: Omit<Partial<Charge>, "key"> = {}): Charge {
    return testCharge({ periodUs: hourUs, ...overrides });
  }

  async function seed(level: number): Promise<void> {
    const value = storedValue({ level, tUs: await storeUs() });
    await shared.control.set("headgate:k", value);
  }

  async function storeUs(): Promise<number> {
    const [seconds, micros] = await shared.control.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  /** When the key expires in ms by the server, which must be what its value says. */
  async function expiryMs(key = "k"): Promise<number> {
    const value = await shared.control.getBuffer(`headgate:${key}`);
    const expiresMs = Number(await shared.control.call("pexpiretime", `headgate:${key}`));
    expect(value?.readDoubleLE(16)).toBe(expiresMs);
    return expiresMs;
  }

  it("keeps a bucket until it has drained, a quarter and a second longer at most", async () => {
    for (const charge of [
      hourly({ cost: 3 }),
      testCharge({ hits: 3, periodUs: 7_000_000, burst: 30, cost: 29 }),
      testCharge({ hits: 1, burst: 3, periodUs: 31_536_000_000_000, cost: 3 }),
    ]) {
      await shared.control.flushall();
      const { results, nowUs } = await takeOne(shared.opened.store, [charge], soon());
      const bucket = results[0]?.bucket ?? { level: 0, tUs: 0 };
      const fullMs = (bucketTimeToFullUs(charge, bucket, nowUs) ?? 0) / 1_000;
      const keptMs = (await expiryMs()) - nowUs / 1_000;
      expect(keptMs).toBeGreaterThan(fullMs);
      expect(keptMs).toBeLessThanOrEqual(1.25 * fullMs + 1_000);
    }
  });

  it("keeps a key that is charged again up to half as long again, and a second", async () => {
    await shared.control.flushall();
    await takeOne(shared.opened.store, [hourly()], soon());
    const charge = hourly({ cost: 4 });
    const { results, nowUs } = await takeOne(shared.opened.store, [charge], soon());
    const bucket = results[0]?.bucket ?? empty;
    const fullMs = (bucketTimeToFullUs(charge, bucket, nowUs) ?? 0) / 1_000;
    const keptMs = (await expiryMs()) - nowUs / 1_000;
    expect(keptMs).toBeGreaterThan(1.49 * fullMs);
    expect(keptMs).toBeLessThanOrEqual(1.5 * fullMs + 1_000);
  });

  it("never forgets a bucket before it has drained, however often it is charged", async () => {
    const expiries = new Set<number>();
    // A hit drains in 30 s, so 40 of them need some twenty expiries at first and ever fewer later.
    const charge = testCharge({ hits: 2, periodUs: 60_000_131, burst: 200 });
    for (let i = 0; i < 100; i += 1) {
      const { results, nowUs } = await takeOne(shared.opened.store, [charge], soon());
      const bucket = results[0]?.bucket ?? { level: 0, tUs: 0 };
      const fullMs = (bucketTimeToFullUs(charge, bucket, nowUs) ?? 0) / 1_000;
      const expiresMs = await expiryMs();
      expect(expiresMs).toBeGreaterThan(nowUs / 1_000 + fullMs);
      expiries.add(expiresMs);
    }
    expect(expiries.size).toBeGreaterThan(5);
    expect(expiries.size).toBeLessThan(30);
  });

  it.each([2, 3, 4])(
    "keeps each key of requests of %d limits until it has drained",
    async (count) => {
      await shared.control.flushall();
      const requestOf = (caller: number): StoreRequest => ({
        charges: Array.from({ length: count }, (_, i) =>
          testCharge({ key: `${caller} ${i}`, hits: 1, periodUs: 60_000_000 * (i + 1) }),
        ),
        multiplicity: 2,
      });
      await shared.opened.store.take([0, 1, 2].map(requestOf), soon());
      const nowMs = (await storeUs()) / 1_000;
      for (let caller = 0; caller < 3; caller += 1) {
        for (let i = 0; i < count; i += 1) {
          const keptMs = (await expiryMs(`${caller} ${i}`)) - nowMs;
          const fullMs = 2 * 60_000 * (i + 1);
          expect(keptMs).toBeGreaterThan(fullMs);
          expect(keptMs).toBeLessThanOrEqual(1.25 * fullMs + 1_000);
        }
      }
    },
  );

  it("gives a key that is charged after its expiry was taken away a new one", async () => {
    await takeOne(shared.opened.store, [hourly({ cost: 3 })], soon());
    const soonMs = Math.floor((await storeUs()) / 1_000) + 60_000;
    const { level, tUs } = (await shared.opened.store.peek(testKey("k"), soon()))?.bucket ?? empty;
    await shared.control.set("headgate:k", storedValue({ level, tUs }, soonMs));
    await takeOne(shared.opened.store, [hourly()], soon());
    expect(await expiryMs()).toBeGreaterThan(soonMs + 1_000_000);
  });

  it("keeps a bucket that drains at once for a millisecond at least", async () => {
    const quick = testCharge({ hits: 4_294_967_295, periodUs: 1_000_000, burst: 10 });
    expect((await takeOne(shared.opened.store, [quick], soon())).isDenied).toBe(false);
  });

  it("clamps a time in the future to now, and writes that back though it refuses", async () => {
    // As it was written two hours from now, to be kept for an hour and more from then.
    const tUs = (await storeUs()) + 2 * hourUs;
    const expiresMs = Math.floor(tUs / 1_000) + 4_500_000;
    const ahead = storedValue({ level: 10 * unitsPerHit, tUs }, expiresMs);
    await shared.control.set("headgate:k", ahead, "PXAT", expiresMs);
    const { isDenied, nowUs } = await takeOne(shared.opened.store, [hourly()], soon());
    expect(isDenied).toBe(true);
    const left = await shared.opened.store.peek(testKey("k"), soon());
    expect(left?.bucket).toEqual({ level: 10 * unitsPerHit, tUs: nowUs });
    // Else the key would stay for the two hours of the step as well.
    expect(await expiryMs()).toBeLessThanOrEqual(nowUs / 1_000 + 1.25 * (hourUs / 1_000) + 1_000);
  });

  it("asks again for a script that the server forgot, and fails no call", async () => {
    const failures: unknown[] = [];
    const calls: Promise<void>[] = [];
    for (let i = 0; i < 300; i += 1) {
      if (i % 10 === 0) calls.push(shared.control.script("FLUSH").then(() => {}));
      const ask = shared.opened.store.take(
        [once(testCharge({ key: `flush ${i % 7}`, burst: 1_000 }))],
        soon(),
      );
      calls.push(
        ask.then(
          () => {},
          (error: unknown) => void failures.push(error),
        ),
      );
      if (i % 20 === 0) await Promise.all(calls);
    }
    await Promise.all(calls);
    expect(failures).toEqual([]);
  });

  it("names every key it touches, and touches no other", async () => {
    await shared.control.call(
      "acl",
      "setuser",
      "narrow",
      "on",
      ">pw",
      "~headgate:*",
      ...allowedCommands,
    );
    const narrow = await openTestStore(shared.server, {
      target: { username: "narrow", password: "pw" },
    });
    await takeOne(narrow.store, [hourly(), testCharge({ key: "x" })], soon());
    await narrow.store.peek(testKey("k"), soon());
    await narrow.store.forget([testKey("k")], soon());
    await narrow.store.ping(soon());
    const member = joinFleet(narrow);
    const { shares, share } = shareTen(narrow);
    await shares.settled();
    expect(share.isLeased(realClock.monotonicMs())).toBe(true);
    expect(await shared.control.pttl("headgate:{permits}:orders")).toBeGreaterThan(0);
    await shares.stop();
    await member.stop();
    expect(await shared.control.exists("headgate:{permits}:orders")).toBe(0);
    await narrow.store.close();
  });

  it.each([
    ["too short", Buffer.from("short")],
    ["too long", Buffer.alloc(25)],
    ["of an older format", Buffer.alloc(16)],
    ["empty", Buffer.alloc(0)],
    ["not a number", doubles(Number.NaN, 1)],
    ["endless", doubles(Number.POSITIVE_INFINITY, 1)],
    ["negative", doubles(-1, 1)],
    ["a fraction", doubles(0.5, 1)],
    ["a time before 1970", doubles(1, -1)],
    ["a time beyond 2^53", doubles(1, 2 ** 54)],
    ["more than any limit holds", doubles(levelUnitsMax + 1, 1)],
    ["text", Buffer.from("twenty-four letters, odd")],
  ])("takes a value that is not ours for an empty bucket: %s", async (_name, value) => {
    await shared.control.set("headgate:k", value);
    expect(await shared.opened.store.peek(testKey("k"), soon())).toBeUndefined();
    const badBefore = shared.opened.badBuckets.count;
    const batch = [once(hourly()), once(testCharge({ key: "near" }))];
    const outcomes = await shared.opened.store.take(batch, soon());
    expect(outcomes.map(({ kind }) => kind)).toEqual(["decided", "decided"]);
    expect(shared.opened.badBuckets.count).toBe(badBefore + 1);
    const left = await shared.opened.store.peek(testKey("k"), soon());
    expect(left?.bucket.level).toBe(unitsPerHit);
  });

  it("takes a value of another type for an empty bucket", async () => {
    await shared.control.lpush("headgate:k", "one");
    expect(await shared.opened.store.peek(testKey("k"), soon())).toBeUndefined();
    expect((await takeOne(shared.opened.store, [hourly()], soon())).isDenied).toBe(false);
    expect(await shared.control.type("headgate:k")).toBe("string");
  });

  if (enginesFor.behaviour.includes(engine)) {
    it("writes nothing for a refused ask, nor for a peek", async () => {
      await takeOne(shared.opened.store, [hourly({ cost: 8 })], soon());
      const before = await shared.control.getBuffer("headgate:k");
      const expiresBefore = await shared.control.call("pexpiretime", "headgate:k");
      for (const ask of [hourly({ cost: 3 }), hourly({ cost: 0 }), hourly({ cost: 4_000_000 })]) {
        await takeOne(shared.opened.store, [ask], soon());
        expect(await shared.control.getBuffer("headgate:k")).toEqual(before);
        expect(await shared.control.call("pexpiretime", "headgate:k")).toBe(expiresBefore);
      }
      await takeOne(shared.opened.store, [testCharge({ key: "other", cost: 99 })], soon());
      expect(await shared.control.exists("headgate:other")).toBe(0);
    });

    it("deletes a bucket that refunds have emptied", async () => {
      await takeOne(shared.opened.store, [hourly()], soon());
      await takeOne(shared.opened.store, [hourly({ isRefund: true })], soon());
      expect(await shared.control.exists("headgate:k")).toBe(0);
    });

    it("refuses above what the limit holds, and leaves that alone", async () => {
      await seed(80 * unitsPerHit);
      const before = await shared.control.getBuffer("headgate:k");
      const batch = [once(hourly()), once(hourly(), testCharge({ key: "near" }))];
      for (const outcome of await shared.opened.store.take(batch, soon())) {
        expect(outcome).toMatchObject({ kind: "decided", result: { grantedCount: 0 } });
      }
      expect(await shared.control.getBuffer("headgate:k")).toEqual(before);
    });
  }
});

const common = { clock: realClock, random: realRandom };

function coordinationOver(connections: RedisConnections): SharedCoordination {
  return createRedisCoordination({ ...common, connections, keyPrefix: "headgate:" });
}

function joinFleet({ connections }: TestRedisStore): Membership {
  return new Membership({ ...common, store: coordinationOver(connections).members });
}

function shareTen({ connections }: TestRedisStore) {
  const store = coordinationOver(connections).permits;
  const shares = new PermitShares({ ...common, store, replicaCount: () => 1 });
  return { shares, share: shares.open(new TestHolder("orders", 10)) };
}

/** All that a user of ours needs; README and manifests say the same. */
const allowedCommands = [
  "-@all",
  "+evalsha",
  "+script|load",
  "+time",
  "+mget",
  "+set",
  "+del",
  "+client|setname",
  "+zadd",
  "+zrem",
  "+zcard",
  "+zrangebyscore",
  "+zremrangebyscore",
  "+hset",
  "+hgetall",
  "+hdel",
  "+pexpire",
];

function doubles(level: number, tUs: number): Buffer {
  return storedValue({ level, tUs });
}

const empty = { level: 0, tUs: 0 };
