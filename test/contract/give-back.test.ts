import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bucket, levelUnitsMax, unitsPerHit } from "../../src/core/limits/bucket.js";
import type { Compensation } from "../../src/core/limits/compensation.js";
import { drainTimeUsMax, hitsMax } from "../../src/core/limits/limit.js";
import type { Windows } from "../../src/core/limits/window.js";
import { testKey } from "../support/charges.js";
import { compensate } from "../support/compensate.js";
import { enginesFor, historiesOn } from "../support/engines.js";
import { shareTestStore, soon, storedValue } from "../support/redis-store.js";
import { propertyRuns } from "../support/seeds.js";

const keyCount = 3;

/** A bucket, and a compensation, with times told by how long ago they were. */
const seedArbitrary = fc.record({
  key: fc.nat(keyCount - 1),
  level: fc.oneof(fc.integer({ min: 1, max: 20 * unitsPerHit }), fc.nat(levelUnitsMax)),
  agoUs: fc.integer({ min: -1_000_000, max: 10_000_000 }),
});
const compensationArbitrary = fc.record({
  key: fc.nat(keyCount - 1),
  hits: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 1, max: hitsMax })),
  periodUs: fc.oneof(fc.constant(1_000_000), fc.integer({ min: 1, max: drainTimeUsMax })),
  cost: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: hitsMax })),
  agoUs: fc.integer({ min: -1_000_000, max: 2_000_000 }),
  /** How long ago the running window began; mostly there is none. */
  windowAgoUs: fc.option(fc.integer({ min: -1_000_000, max: 8_000_000 }), { freq: 2 }),
});

/** Windows of three seconds. */
function windowsFrom(startUs: number): Windows {
  return { startUs, endUs: startUs + 3_000_000, nextEndUs: startUs + 6_000_000 };
}

describe.each(enginesFor.scripts)("RedisLimitStore.giveBack() on %s", (engine) => {
  const shared = shareTestStore(engine);
  const runs = propertyRuns(historiesOn(engine, 300));

  async function nowUs(): Promise<number> {
    const [seconds, micros] = await shared.control.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  async function write(key: string, bucket: Bucket): Promise<void> {
    await shared.control.set(`headgate:${key}`, storedValue(bucket));
  }

  async function read(key: string): Promise<Bucket | undefined> {
    const value = await shared.control.getBuffer(`headgate:${key}`);
    if (value === null) return undefined;
    return { level: value.readDoubleLE(0), tUs: value.readDoubleLE(8) };
  }

  it("does what core/limits/compensation says, to the last bit", async () => {
    let changedCount = 0;
    const property = fc.asyncProperty(
      fc.uniqueArray(seedArbitrary, { maxLength: keyCount, selector: ({ key }) => key }),
      fc.array(compensationArbitrary, { minLength: 1, maxLength: 5 }),
      async (seeds, asked) => {
        await shared.control.flushall();
        const startUs = await nowUs();
        const model = new Map<string, Bucket>();
        for (const { key, level, agoUs } of seeds) {
          model.set(`k${key}`, { level, tUs: startUs - agoUs });
          await write(`k${key}`, { level, tUs: startUs - agoUs });
        }
        const compensations = asked.map(({ key, agoUs, windowAgoUs, ...rest }): Compensation => {
          const windows = windowAgoUs === null ? undefined : windowsFrom(startUs - windowAgoUs);
          return { ...rest, windows, key: testKey(`k${key}`), chargedUs: startUs - agoUs };
        });
        const givenBack = await shared.opened.store.giveBack(compensations, soon());
        for (const [i, one] of compensations.entries()) {
          const before = model.get(one.key);
          const after = before && compensate(one, before, givenBack.nowUs);
          if (after !== undefined && after !== before) changedCount += 1;
          if (after !== undefined) model.set(one.key, after);
          expect(givenBack.buckets[i]).toEqual(after ?? { level: 0, tUs: givenBack.nowUs });
        }
        for (const [key, bucket] of model) {
          const stored = await read(key);
          if (stored === undefined) expect(bucket.level).toBe(0);
          else expect(stored).toEqual(bucket);
        }
      },
    );
    // A failure prints its seed.
    await fc.assert(property, runs);
    expect(changedCount).toBeGreaterThan(runs.numRuns / 6);
  });

  it("keeps what is left for as long as it was kept, and deletes what is empty", async () => {
    const { control, opened } = shared;
    const chargedUs = await nowUs();
    const expiresMs = Math.floor(chargedUs / 1_000) + 600_000;
    const half = storedValue({ level: 10 * unitsPerHit, tUs: chargedUs }, expiresMs);
    await control.set("headgate:half", half, "PXAT", expiresMs);
    await write("whole", { level: 5 * unitsPerHit, tUs: chargedUs });
    const undo = (key: string): Compensation => {
      return { key: testKey(key), hits: 1, periodUs: 60_000_000, cost: 5, chargedUs };
    };
    const wide = { ...undo("whole"), cost: 6 };
    await opened.store.giveBack([undo("half"), wide], soon());
    expect((await read("half"))?.level).toBeLessThanOrEqual(5 * unitsPerHit + 1);
    expect(Number(await control.call("pexpiretime", "headgate:half"))).toBe(expiresMs);
    expect((await control.getBuffer("headgate:half"))?.readDoubleLE(16)).toBe(expiresMs);
    expect(await control.exists("headgate:whole")).toBe(0);
  });

  it("takes a value that is not ours for nothing to give back", async () => {
    const { control, opened } = shared;
    await control.set("headgate:odd", "not a bucket");
    const odd = { key: testKey("odd"), hits: 1, periodUs: 1_000_000, cost: 1, chargedUs: 0 };
    const { buckets, nowUs } = await opened.store.giveBack([odd], soon());
    expect(buckets).toEqual([{ level: 0, tUs: nowUs }]);
    expect(await control.get("headgate:odd")).toBe("not a bucket");
  });
});
