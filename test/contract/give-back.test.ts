import fc from "fast-check";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Compensation, compensate } from "../../src/core/compensation.js";
import { type Bucket, bucketTimeToFullUs, unitsPerHit } from "../../src/core/gcra.js";
import { drainTimeUsMax, hitsMax } from "../../src/core/limit.js";
import { testKey } from "../support/charges.js";
import { type RedisEngine, RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];
const keyCount = 3;

/** A bucket, and a compensation, with times told by how long ago they were. */
const seedArbitrary = fc.record({
  key: fc.nat(keyCount - 1),
  level: fc.oneof(fc.integer({ min: 1, max: 20 * unitsPerHit }), fc.maxSafeNat()),
  agoUs: fc.integer({ min: -1_000_000, max: 10_000_000 }),
});
const compensationArbitrary = fc.record({
  key: fc.nat(keyCount - 1),
  hits: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 1, max: hitsMax })),
  periodUs: fc.oneof(fc.constant(1_000_000), fc.integer({ min: 1, max: drainTimeUsMax })),
  cost: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: hitsMax })),
  agoUs: fc.integer({ min: -1_000_000, max: 2_000_000 }),
});

describe.each(engines)("RedisLimitStore.giveBack() on %s", (engine) => {
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

  async function nowUs(): Promise<number> {
    const [seconds, micros] = await control.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  async function write(key: string, bucket: Bucket): Promise<void> {
    const value = Buffer.alloc(16);
    value.writeDoubleLE(bucket.level, 0);
    value.writeDoubleLE(bucket.tUs, 8);
    await control.set(`headgate:${key}`, value);
  }

  async function read(key: string): Promise<Bucket | undefined> {
    const value = await control.getBuffer(`headgate:${key}`);
    if (value === null) return undefined;
    return { level: value.readDoubleLE(0), tUs: value.readDoubleLE(8) };
  }

  it("does what core/compensation says, to the last bit", { timeout: 60_000 }, async () => {
    let changedCount = 0;
    const property = fc.asyncProperty(
      fc.uniqueArray(seedArbitrary, { maxLength: keyCount, selector: ({ key }) => key }),
      fc.array(compensationArbitrary, { minLength: 1, maxLength: 5 }),
      async (seeds, asked) => {
        await control.flushall();
        const startUs = await nowUs();
        const model = new Map<string, Bucket>();
        for (const { key, level, agoUs } of seeds) {
          model.set(`k${key}`, { level, tUs: startUs - agoUs });
          await write(`k${key}`, { level, tUs: startUs - agoUs });
        }
        const compensations = asked.map(({ key, agoUs, ...rest }): Compensation => {
          return { ...rest, key: testKey(`k${key}`), chargedUs: startUs - agoUs };
        });
        const givenBack = await opened.store.giveBack(compensations, soon());
        for (const [i, one] of compensations.entries()) {
          const before = model.get(one.key);
          const after = before && compensate(one, before, givenBack.nowUs);
          if (after !== undefined && after !== before) changedCount += 1;
          if (after !== undefined) model.set(one.key, after);
          expect(givenBack.buckets[i]).toEqual(after ?? { level: 0, tUs: givenBack.nowUs });
        }
        for (const [key, bucket] of model) {
          const stored = await read(key);
          const last = compensations.findLast((one) => one.key === key);
          const timeToFullUs = last && bucketTimeToFullUs(last, bucket, givenBack.nowUs);
          // What drains before a busy machine looks may be gone already.
          if (stored === undefined) expect(timeToFullUs ?? 0).toBeLessThan(5_000_000);
          else expect(stored).toEqual(bucket);
        }
      },
    );
    // A failure prints its seed.
    await fc.assert(property, { numRuns: 300, interruptAfterTimeLimit: 40_000 });
    expect(changedCount).toBeGreaterThan(50);
  });

  it("keeps what is left until it has drained, and deletes what is empty", async () => {
    const chargedUs = await nowUs();
    await write("half", { level: 10 * unitsPerHit, tUs: chargedUs });
    await write("whole", { level: 5 * unitsPerHit, tUs: chargedUs });
    const undo = (key: string): Compensation => {
      return { key: testKey(key), hits: 1, periodUs: 60_000_000, cost: 5, chargedUs };
    };
    const wide = { ...undo("whole"), cost: 6 };
    await opened.store.giveBack([undo("half"), wide], soon());
    const leftMs = await control.pttl("headgate:half");
    expect(leftMs).toBeGreaterThan(240_000);
    expect(leftMs).toBeLessThanOrEqual(300_010);
    expect(await control.exists("headgate:whole")).toBe(0);
  });

  it("takes a value that is not ours for nothing to give back", async () => {
    await control.set("headgate:odd", "not a bucket");
    const odd = { key: testKey("odd"), hits: 1, periodUs: 1_000_000, cost: 1, chargedUs: 0 };
    const { buckets, nowUs } = await opened.store.giveBack([odd], soon());
    expect(buckets).toEqual([{ level: 0, tUs: nowUs }]);
    expect(await control.get("headgate:odd")).toBe("not a bucket");
  });
});
