import { describe, expect, it } from "vitest";
import { defaultKeysMax, MemoryLimitStore } from "../../../src/store/memory.js";
import { farDeadlineMs, once, takeOne, testCharge, testKey } from "../../support/charges.js";
import { FakeClock } from "../../support/fake-clock.js";

function createStore(keysMax: number): { clock: FakeClock; store: MemoryLimitStore } {
  const clock = new FakeClock();
  return { clock, store: new MemoryLimitStore({ clock, keysMax }) };
}

describe("MemoryLimitStore", () => {
  it("holds a million keys unless told otherwise", () => {
    expect(defaultKeysMax).toBe(1_000_000);
  });

  it("reads its time from the monotonic clock, in whole microseconds", async () => {
    const clock = new FakeClock({ monotonicMs: 1_234.5678 });
    const store = new MemoryLimitStore({ clock });
    clock.stepEpoch(-7_200_000_000);
    expect((await takeOne(store, [testCharge()], farDeadlineMs)).nowUs).toBe(1_234_567);
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

  it("drops expired keys as others are charged, without a timer", async () => {
    const { clock, store } = createStore(10_000);
    for (let i = 0; i < 1_000; i += 1) {
      await takeOne(store, [testCharge({ key: `old ${i}` })], farDeadlineMs);
    }
    clock.advance(6_001);
    expect(store.keyCount).toBe(1_000);
    for (let i = 0; i < 260; i += 1) {
      await takeOne(store, [testCharge({ key: "new", burst: 1_000 })], farDeadlineMs);
    }
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
