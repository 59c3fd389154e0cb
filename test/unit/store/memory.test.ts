import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/core/limits/bucket.js";
import { type BucketTable, decideRepeated } from "../../../src/core/limits/gcra.js";
import type { LimitKey } from "../../../src/core/limits/limit.js";
import { defaultKeysMax, MemoryLimitStore } from "../../../src/store/memory.js";
import { farDeadlineMs, once, takeOne, testCharge, testKey } from "../../support/charges.js";
import { FakeClock } from "../../support/fake-clock.js";
import { propertyRuns } from "../../support/seeds.js";

function createStore(keysMax: number): { clock: FakeClock; store: MemoryLimitStore } {
  const clock = new FakeClock();
  return { clock, store: new MemoryLimitStore({ clock, keysMax }) };
}

/** One request of a random history, and the time before it. */
const steps = fc.record({
  passedMs: fc.constantFrom(0, 1, 500, 6_000, 30_000, 70_000),
  isForgotten: fc.integer({ min: 0, max: 7 }).map((roll) => roll === 0),
  charges: fc.array(
    fc.record({
      key: fc.integer({ min: 0, max: 7 }).map((i) => `key ${i}`),
      cost: fc.integer({ min: 0, max: 6 }),
      isRefund: fc.integer({ min: 0, max: 4 }).map((roll) => roll === 0),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});

/** Buckets without a bound, forgotten when they have drained. */
class PlainTable implements BucketTable {
  readonly #entries = new Map<LimitKey, { readonly bucket: Bucket; readonly drainedUs: number }>();
  nowUs = 0;

  get(key: LimitKey): Bucket | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.drainedUs <= this.nowUs ? undefined : entry.bucket;
  }

  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void {
    this.#entries.set(key, { bucket, drainedUs: this.nowUs + timeToFullUs });
  }

  delete(key: LimitKey): void {
    this.#entries.delete(key);
  }
}

interface Step {
  readonly passedMs: number;
  readonly isForgotten: boolean;
  readonly charges: readonly { readonly key: string; readonly cost: number }[];
}

async function playModel(history: readonly Step[]): Promise<void> {
  // As many keys as there are, so that only what has drained is ever in the way.
  const { clock, store } = createStore(8);
  const table = new PlainTable();
  for (const { passedMs, isForgotten, charges: wishes } of history) {
    clock.advance(passedMs);
    table.nowUs = clock.epochUs();
    const charges = wishes.map(testCharge);
    const key = testKey(wishes[0]?.key ?? "");
    if (isForgotten) {
      expect(await store.forget([key])).toBe(table.get(key) === undefined ? 0 : 1);
      table.delete(key);
    }
    const { grantedCount, results } = await takeOne(store, charges, farDeadlineMs);
    expect({ grantedCount, results }).toEqual(decideRepeated(once(...charges), table, table.nowUs));
    expect((await store.peek(key))?.bucket).toEqual(table.get(key));
    expect(store.keyCount).toBeLessThanOrEqual(8);
  }
}

describe("MemoryLimitStore", () => {
  it("holds a million keys unless told otherwise", () => {
    expect(defaultKeysMax).toBe(1_000_000);
  });

  it("goes on from the wall clock of its start, whatever that does later", async () => {
    const epochUs = 1_700_000_000_123_456;
    const clock = new FakeClock({ monotonicMs: 1_234.5678, epochUs });
    const store = new MemoryLimitStore({ clock });
    clock.stepEpoch(-7_200_000_000);
    clock.advance(2);
    expect((await takeOne(store, [testCharge()], farDeadlineMs)).nowUs).toBe(epochUs + 2_000);
  });

  it("refuses a new key when full, alone in its batch, and charges nothing of it", async () => {
    const { store } = createStore(2);
    await takeOne(store, [testCharge({ key: "a" })], farDeadlineMs);
    await takeOne(store, [testCharge({ key: "b" })], farDeadlineMs);
    const outcomes = await store.take([
      once(testCharge({ key: "a" })),
      once(testCharge({ key: "a" }), testCharge({ key: "c" })),
      once(testCharge({ key: "b" })),
    ]);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(["decided", "failed", "decided"]);
    expect(outcomes[1]).toEqual({ kind: "failed", code: "STORE_FULL" });
    const left = await store.peek(testKey("a"));
    expect(left?.bucket.level).toBe(2 * 1_048_576);
    expect(store.keyCount).toBe(2);
  });

  it("answers asks that store nothing about a new key although it is full", async () => {
    const { store } = createStore(1);
    await takeOne(store, [testCharge({ key: "a" })], farDeadlineMs);
    const peeked = await takeOne(store, [testCharge({ key: "b", cost: 0 })], farDeadlineMs);
    expect(peeked.isDenied).toBe(false);
    const denied = await takeOne(store, [testCharge({ key: "b", cost: 11 })], farDeadlineMs);
    expect(denied.isDenied).toBe(true);
  });

  it("makes room from expired keys before it refuses", async () => {
    const { clock, store } = createStore(3);
    for (const key of ["a", "b", "c"]) await takeOne(store, [testCharge({ key })], farDeadlineMs);
    clock.advance(6_001);
    expect((await takeOne(store, [testCharge({ key: "d" })], farDeadlineMs)).isDenied).toBe(false);
    expect(store.keyCount).toBeLessThanOrEqual(3);
  });

  it("looks further for an expired key before it refuses", async () => {
    const { clock, store } = createStore(60);
    for (let i = 0; i < 60; i += 1) {
      const periodUs = i === 30 ? 60_000_000 : 3_600_000_000;
      await takeOne(store, [testCharge({ key: `key ${i}`, periodUs })], farDeadlineMs);
    }
    clock.advance(6_001);
    expect((await takeOne(store, [testCharge({ key: "new" })], farDeadlineMs)).isDenied).toBe(
      false,
    );
  });

  // Three places, because the sweep that every request brings along may be at one of them.
  it.each([5, 25, 45])("counts a key as new that made room for its own request: %i", async (at) => {
    const { clock, store } = createStore(60);
    for (let i = 0; i < 60; i += 1) {
      const periodUs = i === at ? 60_000_000 : 3_600_000_000;
      await takeOne(store, [testCharge({ key: `key ${i}`, periodUs })], farDeadlineMs);
    }
    clock.advance(6_001);
    const request = once(testCharge({ key: `key ${at}` }), testCharge({ key: "new" }));
    expect(await store.take([request])).toEqual([{ kind: "failed", code: "STORE_FULL" }]);
    expect(store.keyCount).toBe(59);
    expect(await store.peek(testKey(`key ${at}`))).toBeUndefined();
    expect((await takeOne(store, request.charges.slice(1), farDeadlineMs)).grantedCount).toBe(1);
  });

  it("drops keys a minute after they expired as others come, without a timer", async () => {
    const { clock, store } = createStore(10_000);
    for (let i = 0; i < 1_000; i += 1) {
      await takeOne(store, [testCharge({ key: `old ${i}` })], farDeadlineMs);
    }
    const chargeOthers = async (): Promise<void> => {
      for (let i = 0; i < 1_300; i += 1) {
        await takeOne(store, [testCharge({ key: "new", burst: 1_000 })], farDeadlineMs);
      }
    };
    clock.advance(65_999);
    await chargeOthers();
    expect(store.keyCount).toBe(1_001);
    clock.advance(1);
    await chargeOthers();
    expect(store.keyCount).toBe(1);
    expect(clock.timerCount).toBe(0);
  });

  it("keeps the expired to a quarter of the room while new keys keep coming", async () => {
    const { clock, store } = createStore(2_000);
    let refusedCount = 0;
    // A key lives 6 s; one arrives every 5 ms, so 1,200 are live at any time.
    for (let i = 0; i < 20_000; i += 1) {
      clock.advance(5);
      const [outcome] = await store.take([once(testCharge({ key: `key ${i}` }))]);
      if (outcome?.kind !== "decided") refusedCount += 1;
    }
    expect(refusedCount).toBe(0);
    expect(store.keyCount).toBeGreaterThanOrEqual(1_200);
    expect(store.keyCount).toBeLessThanOrEqual(1_700);
  });

  it("fills to its bound, empties as keys drain, and fills again", async () => {
    const { clock, store } = createStore(9_000);
    const kinds = async (from: number): Promise<Record<string, number>> => {
      const counts: Record<string, number> = {};
      for (let i = from; i < from + 10_000; i += 500) {
        const keys = Array.from({ length: 500 }, (_, j) => `key ${i + j}`);
        const batch = keys.map((key) => once(testCharge({ key })));
        for (const { kind } of await store.take(batch)) counts[kind] = (counts[kind] ?? 0) + 1;
      }
      return counts;
    };
    for (let round = 0; round < 3; round += 1) {
      expect(await kinds(round * 10_000)).toEqual({ decided: 9_000, failed: 1_000 });
      expect(store.keyCount).toBe(9_000);
      clock.advance(6_001);
    }
  });

  it("decides and keeps what a plain Map of buckets would, however keys come and go", async () => {
    const property = fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 60 }), playModel);
    await fc.assert(property, propertyRuns(200));
  });

  it("drops expired keys faster than new ones come", async () => {
    const { clock, store } = createStore(10_000);
    for (let i = 0; i < 1_000; i += 1) {
      await takeOne(store, [testCharge({ key: `old ${i}` })], farDeadlineMs);
    }
    clock.advance(66_000);
    for (let i = 0; i < 300; i += 1) {
      await takeOne(store, [testCharge({ key: `new ${i}` })], farDeadlineMs);
    }
    expect(store.keyCount).toBe(300);
  });

  it("finds every bucket of a batch among more than the processor's cache holds", async () => {
    const { store } = createStore(20_000);
    const keyOf = (i: number) => store.shorten(testKey(`key ${i}`));
    const batchFrom = (from: number) =>
      Array.from({ length: 500 }, (_, i) => once(testCharge({ key: keyOf(from + i), cost: 2 })));
    for (let from = 0; from < 10_000; from += 500) await store.take(batchFrom(from));
    for (let from = 0; from < 10_000; from += 500) {
      for (const outcome of await store.take(batchFrom(from))) {
        const level = outcome.kind === "decided" ? outcome.result.results[0]?.bucket.level : 0;
        expect(level).toBe(4 * 1_048_576);
      }
    }
    expect(store.keyCount).toBe(10_000);
  });

  it("treats an expired key as absent before any sweep has met it", async () => {
    const { clock, store } = createStore(10);
    await takeOne(store, [testCharge()], farDeadlineMs);
    clock.advance(5_999);
    expect(await store.peek(testKey("k"))).toBeDefined();
    clock.advance(1);
    expect(await store.peek(testKey("k"))).toBeUndefined();
    expect(await store.forget([testKey("k")])).toBe(0);
  });

  it("rejects with STORE_CLOSED after close()", async () => {
    const { store } = createStore(10);
    await store.close();
    const calls = [
      store.take([once(testCharge())]),
      store.peek(testKey("k")),
      store.forget([testKey("k")]),
      store.ping(),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });
});
