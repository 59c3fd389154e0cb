import fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import {
  type Bucket,
  type Charge,
  costHitsMax,
  delayUsMax,
  levelUnitsMax,
  mayDelay,
  unitsPerHit,
} from "../../src/core/limits/bucket.js";
import {
  type BucketTable,
  decideRepeated,
  multiplicityMax,
  type RepeatedResult,
} from "../../src/core/limits/gcra.js";
import { drainTimeUsMax, hitsMax, type LimitKey } from "../../src/core/limits/limit.js";
import type { Windows } from "../../src/core/limits/window.js";
import type { StoreRequest } from "../../src/store/limit-store.js";
import { testKey } from "../support/charges.js";
import { enginesFor, historiesOn } from "../support/engines.js";
import { realClock } from "../support/real-clock.js";
import { shareTestStore, soon, storedValue } from "../support/redis-store.js";
import { propertyRuns, seedsTimeoutMs } from "../support/seeds.js";

const keyCount = 6;
/** Keys of limits that were carried last. */
const lastKeyCount = 2;
const second = 1_000_000;

/** A limit a test may ask about: ordinary ones, and each end of what a policy may say. */
const limits: readonly Pick<Charge, "hits" | "periodUs" | "burst">[] = [
  { hits: 10, periodUs: second, burst: 10 },
  { hits: 3, periodUs: second, burst: 7 },
  { hits: 100, periodUs: 60 * second, burst: 1 },
  { hits: 1, periodUs: 31_536_000 * second, burst: 1 },
  { hits: 7, periodUs: 31_536_000 * second, burst: 50 },
  { hits: hitsMax, periodUs: second, burst: hitsMax },
  { hits: hitsMax, periodUs: drainTimeUsMax, burst: hitsMax },
  { hits: hitsMax - 2, periodUs: 7 * second, burst: 1_000_003 },
  { hits: 999_983, periodUs: 86_399 * second, burst: 4_000_037 },
  { hits: 0, periodUs: second, burst: 0 },
];

const limitArbitrary = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...limits) },
  {
    weight: 1,
    arbitrary: fc
      .record({
        hits: fc.integer({ min: 1, max: hitsMax }),
        periodUs: fc.integer({ min: 1, max: drainTimeUsMax }),
        burst: fc.integer({ min: 1, max: hitsMax }),
      })
      .map((limit) => ({ ...limit, burst: Math.min(limit.burst, burstMax(limit)) })),
  },
);

/** Windows about now, as clocks ahead of the store's and behind it give them; mostly none. */
const windowsArbitrary: fc.Arbitrary<Windows | undefined> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  {
    weight: 1,
    arbitrary: fc
      .record({
        lengthUs: fc.integer({ min: 1, max: 31_536_000 * second }),
        startedAgo: fc.constantFrom(-0.5, 0, 0.5, 1, 1.5, 2, 7.25),
      })
      .map(({ lengthUs, startedAgo }) => {
        const startUs = Math.max(0, Math.floor(realClock.epochUs() - startedAgo * lengthUs));
        return { startUs, endUs: startUs + lengthUs, nextEndUs: startUs + 2 * lengthUs };
      }),
  },
);

const chargeArbitrary: fc.Arbitrary<Charge> = fc
  .record({
    key: fc.integer({ min: 1, max: keyCount }).map((i) => testKey(`key ${i}`)),
    limit: limitArbitrary,
    role: fc.constantFrom(
      "enforce",
      "enforce",
      "enforce",
      "shadow",
      "quota",
      "settle",
      "shadowSettle",
      "quotaSettle",
    ),
    cost: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(0, 1, 1, 1, 2, 3) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 100 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: costHitsMax }) },
      { weight: 1, arbitrary: fc.constantFrom(hitsMax, hitsMax - 1, costHitsMax) },
    ),
    isRefund: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
    peekExhausted: fc.boolean(),
    windows: windowsArbitrary,
    delayUs: fc.option(fc.oneof(fc.constantFrom(0, 1, second), fc.nat(delayUsMax)), {
      nil: undefined,
    }),
    lastNumber: fc.integer({ min: -6, max: lastKeyCount }),
  })
  .map(({ limit, lastNumber, delayUs, ...rest }): Charge => {
    const lastKey = lastNumber > 0 ? { lastKey: lastKeyOf(lastNumber) } : {};
    const charge = { ...rest, ...limit, ...lastKey };
    return delayUs !== undefined && mayDelay(charge) ? { ...charge, delayUs } : charge;
  });

/** A bucket written before a batch, its time relative to the store's: past, future, over-full. */
const seedArbitrary = fc.record({
  key: fc
    .integer({ min: 1, max: keyCount + lastKeyCount })
    .map((i) => (i <= keyCount ? testKey(`key ${i}`) : lastKeyOf(i - keyCount))),
  level: fc.oneof(
    fc.integer({ min: 1, max: 20 }).map((hits) => hits * unitsPerHit),
    fc.integer({ min: 1, max: levelUnitsMax }),
  ),
  agoUs: fc.oneof(
    fc.integer({ min: -7_200 * second, max: 7_200 * second }),
    fc.integer({ min: 0, max: 1_600_000_000 }).map((seconds) => seconds * second),
  ),
});

/** Requests of any kind, asked once; and such as may be repeated, asked up to the most often. */
const requestArbitrary: fc.Arbitrary<StoreRequest> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      charges: fc.array(chargeArbitrary, { minLength: 1, maxLength: 5 }),
      multiplicity: fc.constant(1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      charges: fc
        .uniqueArray(chargeArbitrary, { minLength: 1, maxLength: 4, selector: ({ key }) => key })
        .map((charges) => charges.map(repeatable)),
      multiplicity: fc.oneof(
        fc.constantFrom(1, 2, 3, 10, 1_000_000, multiplicityMax),
        fc.integer({ min: 1, max: multiplicityMax }),
      ),
    }),
  },
);

/** Requests that differ in nothing but their keys, as those of one rule do: packed as one. */
const alikeArbitrary: fc.Arbitrary<readonly StoreRequest[]> = fc
  .record({
    charge: chargeArbitrary.map(repeatable),
    numbers: fc.uniqueArray(fc.integer({ min: 1, max: keyCount }), { minLength: 2 }),
    multiplicity: fc.constantFrom(1, 1, 1, 2, 7),
  })
  .map(({ charge, numbers, multiplicity }) =>
    numbers.map((i) => ({ charges: [{ ...charge, key: testKey(`key ${i}`) }], multiplicity })),
  );

/** The same with several charges each, on keys that may be the same from request to request. */
const alikeSeveralArbitrary: fc.Arbitrary<readonly StoreRequest[]> = fc
  .record({
    limits: fc.array(chargeArbitrary.map(repeatable), { minLength: 2, maxLength: 4 }),
    orders: fc.array(
      fc.shuffledSubarray(
        Array.from({ length: keyCount }, (_, i) => i + 1),
        { minLength: 4 },
      ),
      { minLength: 2, maxLength: 6 },
    ),
    multiplicity: fc.constantFrom(1, 1, 1, 2, 7),
  })
  .map(({ limits: alike, orders, multiplicity }) =>
    orders.map((order) => ({
      charges: alike.map((charge, i) => ({ ...charge, key: testKey(`key ${order[i]}`) })),
      multiplicity,
    })),
  );

/** The same of any kind, such as peeks, refunds and settled charges: asked once each. */
const alikeMixedArbitrary: fc.Arbitrary<readonly StoreRequest[]> = fc
  .record({
    limits: fc.array(chargeArbitrary, { minLength: 1, maxLength: 3 }),
    orders: fc.array(
      fc.shuffledSubarray(
        Array.from({ length: keyCount }, (_, i) => i + 1),
        { minLength: 3 },
      ),
      { minLength: 2, maxLength: 6 },
    ),
  })
  .map(({ limits: alike, orders }) =>
    orders.map((order) => ({
      charges: alike.map(({ lastKey, ...charge }, i) => ({
        ...charge,
        key: testKey(`key ${order[i]}`),
      })),
      multiplicity: 1,
    })),
  );

const stepArbitrary = fc.record({
  seeds: fc.array(seedArbitrary, { maxLength: 3 }),
  batch: fc
    .array(
      fc.oneof(
        { weight: 3, arbitrary: requestArbitrary.map((request) => [request]) },
        { weight: 1, arbitrary: alikeArbitrary },
        { weight: 1, arbitrary: alikeSeveralArbitrary },
        { weight: 1, arbitrary: alikeMixedArbitrary },
      ),
      { minLength: 1, maxLength: 8 },
    )
    .map((parts) => parts.flat()),
});

describe.each(enginesFor.scripts)("the take script on %s", (engine) => {
  const shared = shareTestStore(engine);
  const runs = propertyRuns(historiesOn(engine, 300));

  it("decides and stores what core/limits/gcra does, to the last bit", async () => {
    const { control, opened } = shared;
    let requestCount = 0;
    const property = fc.asyncProperty(
      fc.array(stepArbitrary, { minLength: 1, maxLength: 8 }),
      async (history) => {
        await control.flushall();
        for (const { seeds, batch } of history) {
          await writeSeeds(control, seeds);
          const before = await holdBuckets(control);
          const outcomes = await opened.store.take(batch, soon());
          const first = outcomes[0];
          if (first?.kind !== "decided") throw new Error("not decided");
          const { nowUs } = first.result;
          const model = new Model(before);
          const expected = batch.map((request) => decideRepeated(request, model, nowUs));
          const decided = outcomes.map((outcome) =>
            outcome.kind === "decided" ? withoutTime(outcome.result) : outcome,
          );
          expect(decided).toEqual(expected);
          expectStored(await readBuckets(control), model);
          requestCount += batch.length;
        }
      },
    );
    // A failure prints its seed and the smallest history that still fails.
    await fc.assert(property, {
      ...runs,
      interruptAfterTimeLimit: seedsTimeoutMs(90_000),
    });
    expect(requestCount).toBeGreaterThan(runs.numRuns * 5);
  });
});

/** The buckets as the law leaves them, and until when each is kept. */
class Model implements BucketTable {
  readonly buckets: Map<LimitKey, Bucket>;
  readonly timesToFullUs = new Map<LimitKey, number>();

  constructor(buckets: ReadonlyMap<LimitKey, Bucket>) {
    this.buckets = new Map(buckets);
  }

  get(key: LimitKey): Bucket | undefined {
    return this.buckets.get(key);
  }

  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void {
    this.buckets.set(key, bucket);
    this.timesToFullUs.set(key, timeToFullUs);
  }

  delete(key: LimitKey): void {
    this.buckets.delete(key);
    this.timesToFullUs.delete(key);
  }
}

function burstMax({ hits, periodUs }: { hits: number; periodUs: number }): number {
  return Math.max(1, Math.floor((drainTimeUsMax / periodUs) * hits * 0.999));
}

function repeatable({ lastKey, ...charge }: Charge): Charge {
  const cost = Math.max(1, charge.cost);
  return { ...charge, role: "enforce", isRefund: false, cost };
}

function lastKeyOf(number: number): LimitKey {
  return testKey(`last ${number}`);
}

function withoutTime({ grantedCount, results }: RepeatedResult): RepeatedResult {
  return { grantedCount, results };
}

interface Seed {
  readonly key: LimitKey;
  readonly level: number;
  readonly agoUs: number;
}

async function writeSeeds(control: Redis, seeds: readonly Seed[]): Promise<void> {
  if (seeds.length === 0) return;
  const [seconds, micros] = await control.time();
  const nowUs = Number(seconds) * second + Number(micros);
  for (const { key, level, agoUs } of seeds) {
    // One that says it is kept for long enough, and one that says nothing of it.
    const expiresMs = level % 2 === 0 ? Math.floor(nowUs / 1_000) + drainTimeUsMax : 0;
    const value = storedValue({ level, tUs: Math.max(0, nowUs - agoUs) }, expiresMs);
    await control.set(`headgate:${key}`, value);
  }
}

const keys = [
  ...Array.from({ length: keyCount }, (_, i) => testKey(`key ${i + 1}`)),
  ...Array.from({ length: lastKeyCount }, (_, i) => lastKeyOf(i + 1)),
];

/** Reads the buckets and keeps them from expiring between this look and the batch. */
async function holdBuckets(control: Redis): Promise<Map<LimitKey, Bucket>> {
  for (const key of keys) await control.persist(`headgate:${key}`);
  return readBuckets(control);
}

async function readBuckets(control: Redis): Promise<Map<LimitKey, Bucket>> {
  const values = await control.mgetBuffer(keys.map((key) => `headgate:${key}`));
  const buckets = new Map<LimitKey, Bucket>();
  keys.forEach((key, i) => {
    const value = values[i];
    if (value === null || value === undefined) return;
    expect(value.length).toBe(24);
    buckets.set(key, { level: value.readDoubleLE(0), tUs: value.readDoubleLE(8) });
  });
  return buckets;
}

/**
 * What is stored is what the model holds. Only a bucket that is kept for less time than a busy
 * machine takes to look may be gone already.
 */
function expectStored(stored: ReadonlyMap<LimitKey, Bucket>, model: Model): void {
  const lookUs = 5 * second;
  for (const [key, timeToFullUs] of model.timesToFullUs) {
    if (timeToFullUs < lookUs && !stored.has(key)) model.buckets.delete(key);
  }
  expect(stored).toEqual(model.buckets);
}
