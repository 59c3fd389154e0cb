import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/core/limits/bucket.js";
import type { LimitKey } from "../../../src/core/limits/limit.js";
import { BucketSlots } from "../../../src/store/bucket-slots.js";
import { testKey } from "../../support/charges.js";
import { propertyRuns } from "../../support/seeds.js";

/** What the slots must hold: the plainest form of it. */
type Model = Map<LimitKey, { readonly bucket: Bucket; readonly drainedUs: number }>;

/** One step of a random history at the time that the step says. */
interface Step {
  readonly kind: "store" | "delete" | "sweep";
  readonly key: number;
  readonly level: number;
  readonly passedUs: number;
  readonly keptUs: number;
}

const steps: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("store", "store", "store", "store", "delete", "sweep"),
  key: fc.nat(40),
  level: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  passedUs: fc.nat(3),
  keptUs: fc.integer({ min: 1, max: 60 }),
});

function keyOf(i: number): LimitKey {
  return testKey(`key ${i}`);
}

/** Every key of the model is held as it is, and what is held besides has drained. */
function expectHeld(slots: BucketSlots, model: Model, nowUs: number): void {
  const held = new Map<LimitKey, Bucket>();
  let heldCount = 0;
  for (let i = 0; i <= 40; i += 1) {
    const slot = slots.find(keyOf(i));
    if (slot === undefined) continue;
    heldCount += 1;
    if (!slots.isDrained(slot, nowUs)) held.set(keyOf(i), slots.read(slot));
  }
  const live = [...model].filter(([, entry]) => entry.drainedUs > nowUs);
  expect(held).toEqual(new Map(live.map(([key, { bucket }]) => [key, bucket])));
  expect(slots.size).toBe(heldCount);
}

describe("BucketSlots", () => {
  it("holds what a plain Map does, through deletes and sweeps", () => {
    const property = fc.property(fc.array(steps, { maxLength: 150, size: "max" }), (history) => {
      const slots = new BucketSlots({ a: 1, b: 2, c: 3, d: 4 });
      const model: Model = new Map();
      let nowUs = 0;
      for (const { kind, key, level, passedUs, keptUs } of history) {
        nowUs += passedUs;
        if (kind === "store") {
          const bucket = { level, tUs: nowUs };
          const slot = slots.find(keyOf(key));
          if (slot === undefined) slots.add(keyOf(key), bucket, nowUs + keptUs);
          else slots.write(slot, bucket, nowUs + keptUs);
          model.set(keyOf(key), { bucket, drainedUs: nowUs + keptUs });
        } else if (kind === "delete") {
          slots.delete(keyOf(key));
          model.delete(keyOf(key));
        } else {
          slots.sweep(key, nowUs);
        }
        expectHeld(slots, model, nowUs);
      }
    });
    fc.assert(property, propertyRuns(60));
  });

  it.each([1, 2_147_483_647, 2_147_483_648, 315_360_000_000_001, 2 ** 51])(
    "keeps a bucket for %i us: at least, and at most about a second longer",
    (keptUs) => {
      const slots = new BucketSlots({ a: 1, b: 2, c: 3, d: 4 });
      const tUs = 1_700_000_000_123_456;
      slots.add(keyOf(1), { level: 1, tUs }, tUs + keptUs);
      const slot = slots.find(keyOf(1)) ?? 0;
      const longerUs = keptUs < 2 ** 31 ? 0 : 1_048_576;
      expect(slots.isDrained(slot, tUs + keptUs - 1)).toBe(false);
      expect(slots.isDrained(slot, tUs + keptUs + longerUs)).toBe(true);
      expect(slots.read(slot)).toEqual({ level: 1, tUs });
    },
  );

  it("uses the room of forgotten keys again, and meets all of them in one round", () => {
    const slots = new BucketSlots({ a: 1, b: 2, c: 3, d: 4 });
    const count = 10_000;
    const heldBytes = new Set<number>();
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < count; i += 1) {
        slots.add(testKey(`${round}/${i}`), { level: i + 1, tUs: round }, round + 1);
      }
      expect(slots.size).toBe(count);
      heldBytes.add(slots.bytes);
      const slot = slots.find(testKey(`${round}/4321`));
      expect(slot !== undefined && slots.read(slot)).toEqual({ level: 4_322, tUs: round });
      slots.sweep(count, round);
      expect(slots.size).toBe(count);
      // A look now and then ends between two buckets.
      slots.sweep(1.1 * count, round + 1);
      expect(slots.size).toBe(0);
    }
    // Keys of other rounds lie elsewhere, so a part or two of 256 may have to grow a little more.
    expect(Math.max(...heldBytes) / Math.min(...heldBytes)).toBeLessThan(1.2);
  });

  it("keeps keys apart that are long, or alike but for one character", () => {
    const slots = new BucketSlots({ a: 1, b: 2, c: 3, d: 4 });
    const long = "k".repeat(1_000);
    const keys = Array.from(long, (_, i) => testKey(`${long.slice(0, i)}x${long.slice(i + 1)}`));
    keys.forEach((key, i) => {
      slots.add(key, { level: i, tUs: i }, 1);
    });
    expect(slots.size).toBe(keys.length);
    keys.forEach((key, i) => {
      const slot = slots.find(key);
      expect(slot !== undefined && slots.read(slot).level).toBe(i);
    });
  });

  it("is empty after clear(), and of use again", () => {
    const slots = new BucketSlots({ a: 1, b: 2, c: 3, d: 4 });
    for (let i = 0; i < 5_000; i += 1) slots.add(keyOf(i), { level: 1, tUs: 0 }, 1);
    slots.delete(keyOf(7));
    slots.clear();
    expect(slots.size).toBe(0);
    expect(slots.find(keyOf(8))).toBeUndefined();
    slots.sweep(10, 1);
    slots.add(keyOf(8), { level: 2, tUs: 3 }, 4);
    const slot = slots.find(keyOf(8));
    expect(slot !== undefined && slots.read(slot)).toEqual({ level: 2, tUs: 3 });
  });
});
