import { beforeEach, describe, expect, it } from "vitest";
import { unitsPerHit } from "../../../../src/core/limits/bucket.js";
import { throttleKey } from "../../../../src/core/limits/key.js";
import type { LimitKey } from "../../../../src/core/limits/limit.js";
import { throttleCharge } from "../../../../src/core/limits/throttle.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import { Pressure } from "../../../../src/decide/rate-limit/pressure.js";
import {
  RecentCharges,
  recentChargesMax,
} from "../../../../src/decide/rate-limit/recent-charges.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const policy = testPolicy([{ path: ["user"], effect: [testLimit(5)] }]);
const numbers = { maxBurst: 1, count: 1, periodSeconds: 60, quantity: 1 };
const charge = throttleCharge(throttleKey({ value: "k" }), numbers, "enforce");

let clock: FakeClock;
let store: FaultyStore;
let counters: DecisionCounters;
let pressure: Pressure;
let decider: Decider;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  counters = new DecisionCounters();
  pressure = new Pressure({
    loopDelayMsMax: 100,
    requestsInFlightMax: 6,
    requestsInFlightBytesMax: 1_000_000,
    asksStoreWhenLate: false,
  });
  decider = createTestDecider({
    policies: { current: () => policy },
    clock,
    store,
    counters,
    pressure,
  });
});

/** Charges so many times in one turn; answers which of them are denied. */
async function charges(count: number): Promise<readonly boolean[]> {
  const decided = Array.from({ length: count }, () => decider.decideCharge(charge));
  clock.runTurns();
  return (await Promise.all(decided)).map(({ isDenied }) => isDenied);
}

describe("Decider.decideCharge()", () => {
  it("decides in the batch of the turn, beside calls of the policy", async () => {
    const query = {
      domain: "shop",
      descriptors: [{ entries: [{ key: "user", value: "v" }], hits: 1, isRefund: false }],
    };
    const verdict = decideQuery(decider, query, Number.POSITIVE_INFINITY);
    expect(await charges(2)).toEqual([false, false]);
    expect((await verdict).isDenied).toBe(false);
    // Equal charges are one for the store.
    expect(store.batches.map((batch) => batch.map((one) => one.multiplicity))).toEqual([[1, 2]]);
    expect(await charges(1)).toEqual([true]);
    expect(pressure.inFlightCount).toBe(0);
  });

  it("tells each of several equal charges what it has found, and others apart", async () => {
    const other = { ...charge, burst: 3 };
    const asked = [charge, charge, charge, other, { ...charge, cost: 0 }, charge];
    const decided = asked.map((one) => decider.decideCharge(one));
    clock.runTurns();
    const found = (await Promise.all(decided)).map(({ isDenied, results }) => [
      isDenied,
      (results[0]?.bucket.level ?? 0) / unitsPerHit,
    ]);
    expect(found).toEqual([
      [false, 1],
      [false, 2],
      [true, 2],
      [false, 3],
      [true, 3],
      [true, 3],
    ]);
    expect(store.batches[0]?.map(({ multiplicity }) => multiplicity)).toEqual([3, 1, 1, 1]);
  });

  it.each([{ hits: 2 }, { periodUs: 1 }, { burst: 3 }, { cost: 2 }, { role: "shadow" }] as const)(
    "does not take a charge with %o for the last one",
    (changed) => {
      const recent = new RecentCharges();
      const { charges: last } = recent.alike(charge);
      expect(recent.alike({ ...charge }).charges).toBe(last);
      expect(recent.alike({ ...charge, ...changed }).charges).toEqual([{ ...charge, ...changed }]);
    },
  );

  it("combines few keys at a time", async () => {
    const keys = Array.from({ length: recentChargesMax + 1 }, (_, i) =>
      throttleKey({ value: `${i}` }),
    );
    const recent = new RecentCharges();
    const slotOf = (key: LimitKey) => recent.alike({ ...charge, key }).slot;
    const [first] = keys;
    if (first === undefined) throw new Error("there is one");
    const slot = slotOf(first);
    expect(slotOf(first)).toBe(slot);
    for (const key of keys) slotOf(key);
    expect(slotOf(first)).not.toBe(slot);
  });

  it("does not ask the store while too many requests are in flight", async () => {
    // The seventh is one too many: it is decided by this process alone.
    expect(await charges(7)).toEqual([false, false, true, true, true, true, false]);
    expect(store.batches.map((batch) => batch.map((one) => one.multiplicity))).toEqual([[6]]);
    expect(counters.fallbackByMode.local.get("OVERLOADED")).toBe(1);
    expect(pressure.inFlightCount).toBe(0);
  });

  it("is answered within the store's time, and counts why the store did not decide", async () => {
    store.fault = { kind: "hang" };
    const decided = decider.decideCharge(charge);
    clock.runTurns();
    await settlePromises();
    await clock.advanceAsync(10, 1);
    expect(await decided).toMatchObject({ isDenied: false, isFallback: true });
    expect(counters.fallbackByMode.local.get("STORE_TIMEOUT")).toBe(1);
    expect(pressure.inFlightCount).toBe(0);
  });
});
