import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bucketTimeToFullUs, type Charge, unitsPerHit } from "../../src/core/gcra.js";
import { once, takeOne, testCharge, testKey } from "../support/charges.js";
import { type RedisEngine, RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];
const hourUs = 3_600_000_000;

describe.each(engines)("RedisLimitStore's state on %s", (engine) => {
  let server: RedisServer;
  let opened: TestRedisStore;
  let control: Redis;

  beforeAll(async () => {
    server = await RedisServer.start({ engine });
    opened = await openTestStore(server);
    control = server.client();
  });

  afterAll(async () => {
    await opened?.store.close();
    await server?.stop();
  });

  beforeEach(async () => {
    await control.flushall();
  });

  /** Ten hits an hour, burst ten: one hit drains in six minutes. */
  function hourly(overrides: Omit<Partial<Charge>, "key"> = {}): Charge {
    return testCharge({ periodUs: hourUs, ...overrides });
  }

  async function seed(level: number, agoUs: number): Promise<void> {
    const value = Buffer.alloc(16);
    value.writeDoubleLE(level, 0);
    value.writeDoubleLE((await storeUs()) - agoUs, 8);
    await control.set("headgate:k", value);
  }

  async function storeUs(): Promise<number> {
    const [seconds, micros] = await control.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  it("keeps a bucket until it has drained, and hardly longer", async () => {
    for (const charge of [
      hourly({ cost: 3 }),
      testCharge({ hits: 3, periodUs: 7_000_000, burst: 30, cost: 29 }),
      testCharge({ hits: 1, burst: 3, periodUs: 31_536_000_000_000, cost: 3 }),
    ]) {
      await control.flushall();
      const { results, nowUs } = await takeOne(opened.store, [charge], soon());
      const bucket = results[0]?.bucket ?? { level: 0, tUs: 0 };
      const fullMs = Math.ceil((bucketTimeToFullUs(charge, bucket, nowUs) ?? 0) / 1_000) + 1;
      const leftMs = await control.pttl("headgate:k");
      const sinceMs = ((await storeUs()) - nowUs) / 1_000;
      expect(leftMs).toBeLessThanOrEqual(fullMs);
      expect(leftMs).toBeGreaterThanOrEqual(fullMs - Math.ceil(sinceMs) - 1);
    }
  });

  it("never forgets a bucket before it has drained, not by a part of a millisecond", async () => {
    const spares: number[] = [];
    for (let i = 0; i < 40; i += 1) {
      const charge = testCharge({ key: `ttl ${i}`, hits: 7, periodUs: 60_000_000 + i * 131 });
      const { results, nowUs } = await takeOne(opened.store, [charge], soon());
      const bucket = results[0]?.bucket ?? { level: 0, tUs: 0 };
      const fullMs = Math.ceil((bucketTimeToFullUs(charge, bucket, nowUs) ?? 0) / 1_000);
      const expiresMs = Number(await control.call("pexpiretime", `headgate:ttl ${i}`));
      spares.push(expiresMs - Math.floor(nowUs / 1_000) - fullMs);
    }
    expect(Math.min(...spares)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...spares)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...spares)).toBeLessThanOrEqual(50);
  });

  it("keeps a bucket that drains at once for a millisecond at least", async () => {
    const quick = testCharge({ hits: 4_294_967_295, periodUs: 1_000_000, burst: 10 });
    expect((await takeOne(opened.store, [quick], soon())).isDenied).toBe(false);
  });

  it("writes nothing for a refused ask, nor for a peek", async () => {
    await takeOne(opened.store, [hourly({ cost: 8 })], soon());
    const before = await control.getBuffer("headgate:k");
    const expiresBefore = await control.call("pexpiretime", "headgate:k");
    for (const ask of [hourly({ cost: 3 }), hourly({ cost: 0 }), hourly({ cost: 4_000_000 })]) {
      await takeOne(opened.store, [ask], soon());
      expect(await control.getBuffer("headgate:k")).toEqual(before);
      expect(await control.call("pexpiretime", "headgate:k")).toBe(expiresBefore);
    }
    await takeOne(opened.store, [testCharge({ key: "other", cost: 99 })], soon());
    expect(await control.exists("headgate:other")).toBe(0);
  });

  it("deletes a bucket that refunds have emptied", async () => {
    await takeOne(opened.store, [hourly()], soon());
    await takeOne(opened.store, [hourly({ isRefund: true })], soon());
    expect(await control.exists("headgate:k")).toBe(0);
  });

  it("clamps a time in the future to now, and writes that back though it refuses", async () => {
    await seed(10 * unitsPerHit, -2 * hourUs);
    const { isDenied, nowUs } = await takeOne(opened.store, [hourly()], soon());
    expect(isDenied).toBe(true);
    const left = await opened.store.peek(testKey("k"), soon());
    expect(left?.bucket).toEqual({ level: 10 * unitsPerHit, tUs: nowUs });
    // Without the clamp the key would stay for the two hours of the step as well.
    expect(await control.pttl("headgate:k")).toBeLessThanOrEqual(hourUs / 1_000 + 1);
  });

  it("clamps a level above what the limit holds", async () => {
    await seed(Number.MAX_SAFE_INTEGER, 0);
    const { nowUs } = await takeOne(opened.store, [hourly()], soon());
    const left = await opened.store.peek(testKey("k"), soon());
    expect(left?.bucket.level).toBe(10 * unitsPerHit);
    expect(left?.bucket.tUs).toBeLessThanOrEqual(nowUs);
  });

  it.each([
    ["too short", Buffer.from("short")],
    ["too long", Buffer.alloc(17)],
    ["empty", Buffer.alloc(0)],
    ["not a number", doubles(Number.NaN, 1)],
    ["endless", doubles(Number.POSITIVE_INFINITY, 1)],
    ["negative", doubles(-1, 1)],
    ["a fraction", doubles(0.5, 1)],
    ["a time before 1970", doubles(1, -1)],
    ["a time beyond 2^53", doubles(1, 2 ** 54)],
    ["text", Buffer.from("sixteen letters!")],
  ])("takes a value that is not ours for an empty bucket: %s", async (_name, value) => {
    await control.set("headgate:k", value);
    expect(await opened.store.peek(testKey("k"), soon())).toBeUndefined();
    const badBefore = opened.badBuckets.count;
    const batch = [once(hourly()), once(testCharge({ key: "near" }))];
    const outcomes = await opened.store.take(batch, soon());
    expect(outcomes.map(({ kind }) => kind)).toEqual(["decided", "decided"]);
    expect(opened.badBuckets.count).toBe(badBefore + 1);
    const left = await opened.store.peek(testKey("k"), soon());
    expect(left?.bucket.level).toBe(unitsPerHit);
  });

  it("takes a value of another type for an empty bucket", async () => {
    await control.lpush("headgate:k", "one");
    expect(await opened.store.peek(testKey("k"), soon())).toBeUndefined();
    expect((await takeOne(opened.store, [hourly()], soon())).isDenied).toBe(false);
    expect(await control.type("headgate:k")).toBe("string");
  });

  it("asks again for a script that the server forgot, and fails no call", async () => {
    const failures: unknown[] = [];
    const calls: Promise<void>[] = [];
    for (let i = 0; i < 300; i += 1) {
      if (i % 10 === 0) calls.push(control.script("FLUSH").then(() => {}));
      const ask = opened.store.take(
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
    await control.call("acl", "setuser", "narrow", "on", ">pw", "~headgate:*", ...allowedCommands);
    const narrow = await openTestStore(server, { target: { username: "narrow", password: "pw" } });
    await takeOne(narrow.store, [hourly(), testCharge({ key: "x" })], soon());
    await narrow.store.peek(testKey("k"), soon());
    await narrow.store.forget([testKey("k")], soon());
    await narrow.store.ping(soon());
    await narrow.store.close();
  });
});

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
  "+pexpire",
];

function doubles(level: number, tUs: number): Buffer {
  const value = Buffer.alloc(16);
  value.writeDoubleLE(level, 0);
  value.writeDoubleLE(tUs, 8);
  return value;
}
