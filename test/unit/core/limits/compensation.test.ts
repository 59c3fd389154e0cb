import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bucket, levelAt, unitsPerHit } from "../../../../src/core/limits/bucket.js";
import { type Compensation, compensationUnits } from "../../../../src/core/limits/compensation.js";
import { type BucketTable, decideRequest } from "../../../../src/core/limits/gcra.js";
import { hitsMax, type LimitKey } from "../../../../src/core/limits/limit.js";
import { testCharge, testKey } from "../../../support/charges.js";
import { compensate } from "../../../support/compensate.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

const startUs = 1_700_000_000_000_000;

function compensation(overrides: Partial<Compensation> = {}): Compensation {
  return {
    key: testKey("k"),
    hits: 10,
    periodUs: 1_000_000,
    cost: 5,
    chargedUs: startUs,
    ...overrides,
  };
}

describe("compensationUnits()", () => {
  it.each([
    ["at once: all of it", {}, 0, 5 * unitsPerHit],
    ["later: all but what can have drained", {}, 200_000, 3 * unitsPerHit],
    ["rounded against us", {}, 1, 5 * unitsPerHit - 11],
    ["after all of it has drained: nothing", {}, 500_000, 0],
    ["much later: nothing", {}, 1e15, 0],
    ["before it happened, by a clock that went back: nothing", {}, -1, 0],
    ["at a rate of zero: nothing", { hits: 0 }, 0, 0],
    ["of no cost: nothing", { cost: 0 }, 0, 0],
    ["the largest charge", { cost: hitsMax, hits: 1 }, 0, hitsMax * unitsPerHit],
  ])("gives back, %s", (_name, overrides, elapsedUs, units) => {
    expect(compensationUnits(compensation(overrides), startUs + elapsedUs)).toBe(units);
  });

  it("never gives back more than was charged less what drained, to the last unit", () => {
    const property = fc.property(
      fc.record({
        hits: fc.integer({ min: 1, max: hitsMax }),
        periodUs: fc.integer({ min: 1, max: 10 * 31_536_000_000_000 }),
        cost: fc.integer({ min: 0, max: hitsMax }),
        elapsedUs: fc.oneof(fc.integer({ min: 0, max: 10_000 }), fc.maxSafeNat()),
      }),
      ({ hits, periodUs, cost, elapsedUs }) => {
        const given = compensation({ hits, periodUs, cost, chargedUs: 0 });
        const units = compensationUnits(given, elapsedUs);
        const charged = BigInt(cost) * BigInt(unitsPerHit);
        const drained = BigInt(elapsedUs) * BigInt(hits) * BigInt(unitsPerHit);
        expect(BigInt(units) * BigInt(periodUs)).toBeLessThanOrEqual(
          drained > charged * BigInt(periodUs) ? 0n : charged * BigInt(periodUs) - drained,
        );
      },
    );
    fc.assert(property, propertyRuns(300));
  });
});

describe("compensate()", () => {
  it("takes the units off the drained level", () => {
    const bucket: Bucket = { level: 8 * unitsPerHit, tUs: startUs };
    expect(compensate(compensation(), bucket, startUs + 200_000)).toEqual({
      level: 3 * unitsPerHit,
      tUs: startUs + 200_000,
    });
  });

  it.each<[string, Bucket, number]>([
    ["an empty bucket", { level: 0, tUs: startUs }, 0],
    ["a bucket from the future", { level: unitsPerHit, tUs: startUs + 1 }, 0],
    ["one that has nothing to get back", { level: unitsPerHit, tUs: startUs }, 500_000],
  ])("leaves alone %s", (_name, bucket, elapsedUs) => {
    expect(compensate(compensation(), bucket, startUs + elapsedUs)).toBe(bucket);
  });

  it("never goes below an empty bucket", () => {
    const bucket: Bucket = { level: unitsPerHit, tUs: startUs };
    expect(compensate(compensation(), bucket, startUs).level).toBe(0);
  });

  it("never leaves a bucket emptier than if what is undone had never been charged", () => {
    let undoneCount = 0;
    const property = fc.property(limitArbitrary, historyArbitrary, (limit, events) => {
      const history = new History(limit);
      for (const event of events) {
        history.play(event);
        expect(history.levelWith).toBeGreaterThanOrEqual(history.levelWithout);
      }
      undoneCount += history.undoneCount;
    });
    fc.assert(property, propertyRuns(300));
    expect(undoneCount).toBeGreaterThan(metCount(150));
  });
});

const limitArbitrary = fc.record({
  hits: fc.integer({ min: 1, max: 1_000 }),
  periodUs: fc.constantFrom(1_000, 1_000_000, 3_600_000_000),
  burst: fc.integer({ min: 1, max: 100 }),
});

const eventArbitrary = fc.oneof(
  fc.record({ kind: fc.constant("wait" as const), us: fc.integer({ min: 0, max: 300_000 }) }),
  fc.record({ kind: fc.constant("admit" as const), cost: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ kind: fc.constant("charge" as const), cost: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ kind: fc.constant("undo" as const), which: fc.nat(50) }),
);
const historyArbitrary = fc.array(eventArbitrary, { minLength: 5, maxLength: 40 });

type HistoryEvent = typeof eventArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** One bucket twice: with charges that are undone later, and as if they had never been made. */
class History {
  readonly #limit: { readonly hits: number; readonly periodUs: number; readonly burst: number };
  readonly #with = new Map<LimitKey, Bucket>();
  readonly #without = new Map<LimitKey, Bucket>();
  readonly #pending: Compensation[] = [];
  #nowUs = startUs;
  undoneCount = 0;

  constructor(limit: { readonly hits: number; readonly periodUs: number; readonly burst: number }) {
    this.#limit = limit;
  }

  get levelWith(): number {
    return this.#level(this.#with);
  }

  get levelWithout(): number {
    return this.#level(this.#without);
  }

  play(event: HistoryEvent): void {
    if (event.kind === "wait") this.#nowUs += event.us;
    else if (event.kind === "undo") this.#undo(event.which);
    else this.#charge(event);
  }

  #charge({ kind, cost }: Extract<HistoryEvent, { kind: "admit" | "charge" }>): void {
    const charge = testCharge({ ...this.#limit, cost });
    if (decideRequest([charge], this.#table(this.#with), this.#nowUs).isDenied) return;
    if (kind === "charge") {
      this.#pending.push(compensation({ ...this.#limit, cost, chargedUs: this.#nowUs }));
      return;
    }
    // What was admitted beside them must also fit where they never were.
    const { isDenied } = decideRequest([charge], this.#table(this.#without), this.#nowUs);
    expect(isDenied).toBe(false);
  }

  #undo(which: number): void {
    const [undone] = this.#pending.splice(which % Math.max(1, this.#pending.length), 1);
    const bucket = this.#with.get(testKey("k"));
    if (undone === undefined || bucket === undefined) return;
    this.#with.set(testKey("k"), compensate(undone, bucket, this.#nowUs));
    this.undoneCount += 1;
  }

  #level(buckets: ReadonlyMap<LimitKey, Bucket>): number {
    const bucket = buckets.get(testKey("k"));
    return bucket === undefined ? 0 : levelAt(this.#limit, bucket, this.#nowUs);
  }

  #table(buckets: Map<LimitKey, Bucket>): BucketTable {
    return {
      get: (key) => buckets.get(key),
      set: (key, bucket) => void buckets.set(key, bucket),
      delete: (key) => void buckets.delete(key),
    };
  }
}
