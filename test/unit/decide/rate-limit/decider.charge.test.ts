import { beforeEach, describe, expect, it } from "vitest";
import { throttleKey } from "../../../../src/core/limits/key.js";
import { throttleCharge } from "../../../../src/core/limits/throttle.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import { Pressure } from "../../../../src/decide/rate-limit/pressure.js";
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
    requestsInFlightMax: 3,
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
    expect(store.batches.map((batch) => batch.length)).toEqual([3]);
    expect(await charges(1)).toEqual([true]);
    expect(pressure.inFlightCount).toBe(0);
  });

  it("does not ask the store while too many requests are in flight", async () => {
    // The fourth is one too many: it is decided by this process alone.
    expect(await charges(4)).toEqual([false, false, true, false]);
    expect(store.batches.map((batch) => batch.length)).toEqual([3]);
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
