import { beforeEach, describe, expect, it } from "vitest";
import { Breaker } from "../../../../src/core/base/breaker.js";
import type { Charge } from "../../../../src/core/limits/bucket.js";
import {
  Batcher,
  type BatcherEvent,
  type BatchOutcome,
  type CoalescingSlot,
  createSlot,
  waitingRequestsMax,
} from "../../../../src/decide/rate-limit/batcher.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { StoreOutcome } from "../../../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { testCharge } from "../../../support/charges.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";

let clock: FakeClock;
let store: FaultyStore;
let events: BatcherEvent[];
let batcher: Batcher;
let counts: DecisionCounters;

beforeEach(() => {
  clock = new FakeClock();
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  events = [];
  counts = new DecisionCounters();
  batcher = new Batcher({
    store,
    clock,
    breaker: new Breaker(),
    storeBudgetMs: 10,
    onEvent: (event) => events.push(event),
    counts,
  });
});

/** Runs the turn to its end and lets the answers through. */
async function endTurn(): Promise<void> {
  clock.runTurns();
  await settlePromises();
}

/** What a request was answered, and its place among those that asked the same. */
interface Asked {
  outcome: BatchOutcome | undefined;
  index: number | undefined;
}

function ask(charges: readonly Charge[], deadlineMs: number, slot?: CoalescingSlot): Asked {
  return askOf(batcher, { charges, deadlineMs, slot });
}

interface Question {
  readonly charges: readonly Charge[];
  readonly deadlineMs: number;
  readonly slot?: CoalescingSlot | undefined;
}

function askOf(asked: Batcher, { charges, deadlineMs, slot }: Question): Asked {
  const answer: Asked = { outcome: undefined, index: undefined };
  const settle = (outcome: BatchOutcome, index: number): void => {
    answer.outcome ??= outcome;
    answer.index ??= index;
  };
  asked.ask(charges, { deadlineMs, settle }, slot);
  return answer;
}

const never = Number.POSITIVE_INFINITY;

/** A store that breaks its contract: it answers for no request. */
class SilentStore extends MemoryLimitStore {
  override async take(): Promise<readonly StoreOutcome[]> {
    return [];
  }
}

describe("Batcher", () => {
  it("asks the store once for all requests of a turn, in the order they came", async () => {
    const first = ask([testCharge({ key: "a" })], never);
    const second = ask([testCharge({ key: "b" }), testCharge({ key: "c" })], never);
    expect(store.batches).toEqual([]);
    await endTurn();
    expect(
      store.batches.map((batch) => batch.map(({ charges }) => charges.map(({ key }) => key))),
    ).toEqual([[["a"], ["b", "c"]]]);
    expect(first.outcome).toMatchObject({ kind: "decided", result: { grantedCount: 1 } });
    expect(second.outcome).toMatchObject({ kind: "decided", result: { results: [{}, {}] } });
  });

  it("asks again for the requests of the next turn", async () => {
    ask([testCharge()], never);
    await endTurn();
    ask([testCharge()], never);
    await endTurn();
    expect(store.batches).toHaveLength(2);
  });

  it("splits a turn into batches of the most charges, never within a request", async () => {
    const charges = Array.from({ length: 200 }, (_, i) => testCharge({ key: `k${i}` }));
    const asked = [1, 2, 3, 4, 5].map(() => ask(charges, never));
    await endTurn();
    expect(store.batches.map((batch) => batch.length)).toEqual([2, 2, 1]);
    expect(asked.every(({ outcome }) => outcome?.kind === "decided")).toBe(true);
  });

  it("answers every request as failed when the store fails, and says so once a batch", async () => {
    store.fault = { kind: "reject", code: "STORE_READ_ONLY" };
    const asked = [ask([testCharge()], never), ask([testCharge()], never)];
    await endTurn();
    const failed = { kind: "failed", code: "STORE_READ_ONLY" };
    expect(asked.map(({ outcome }) => outcome)).toEqual([failed, failed]);
    expect(events).toEqual([{ kind: "batchFailed", code: "STORE_READ_ONLY" }]);
  });

  it("gives the store its budget and no more", async () => {
    store.fault = { kind: "hang" };
    const watched = ask([testCharge()], never);
    await endTurn();
    await clock.advanceAsync(9.9);
    expect(watched.outcome).toBeUndefined();
    await clock.advanceAsync(0.1);
    expect(watched.outcome).toEqual({ kind: "failed", code: "STORE_TIMEOUT" });
  });

  it("answers each request by its own deadline when that comes before the store's", async () => {
    store.fault = { kind: "hang" };
    const startMs = clock.monotonicMs();
    const late = ask([testCharge()], startMs + 7);
    const early = ask([testCharge()], startMs + 3);
    const patient = ask([testCharge()], never);
    await endTurn();
    await clock.advanceAsync(3);
    expect([early.outcome?.kind, late.outcome, patient.outcome]).toEqual([
      "failed",
      undefined,
      undefined,
    ]);
    await clock.advanceAsync(4);
    expect([late.outcome?.kind, patient.outcome]).toEqual(["failed", undefined]);
    await clock.advanceAsync(3);
    expect(patient.outcome?.kind).toBe("failed");
    expect(clock.timerCount).toBe(0);
  });

  it("leaves no timer behind when the store answers", async () => {
    ask([testCharge()], clock.monotonicMs() + 5);
    await endTurn();
    expect(clock.timerCount).toBe(0);
  });

  it("stops asking a store that keeps failing, and asks again with one probe", async () => {
    store.fault = { kind: "hang" };
    for (let i = 0; i < 20; i += 1) {
      ask([testCharge()], never);
      await endTurn();
      await clock.advanceAsync(10);
    }
    expect(events.filter((event) => event.kind === "circuitOpened")).toHaveLength(1);
    const askedCount = store.batches.length;
    const refused = ask([testCharge()], never);
    await endTurn();
    expect(refused.outcome).toEqual({ kind: "failed", code: "STORE_CIRCUIT_OPEN" });
    expect(store.batches.length).toBe(askedCount);

    store.fault = { kind: "none" };
    await clock.advanceAsync(500);
    const probe = ask([testCharge()], never);
    await endTurn();
    expect(probe.outcome?.kind).toBe("decided");
    expect(events.at(-1)).toEqual({ kind: "circuitClosed" });
  });

  it("refuses what would wait beyond the most requests of a turn", async () => {
    const charges = [testCharge()];
    for (let i = 0; i < waitingRequestsMax; i += 1) ask(charges, never);
    const refused = ask(charges, never);
    await settlePromises();
    expect(refused.outcome).toEqual({ kind: "failed", code: "OVERLOADED" });
    expect(store.batches).toEqual([]);
  });

  it("sends nothing for those whose time is over when the turn ends", async () => {
    const nowMs = clock.monotonicMs();
    const slot = createSlot();
    const charges = [testCharge({ key: "shared" })];
    const shared = [nowMs + 5, nowMs + 20, nowMs + 5, never].map((deadlineMs) =>
      ask(charges, deadlineMs, slot),
    );
    const alone = ask([testCharge({ key: "alone" })], nowMs + 5);
    clock.stall(5);
    await endTurn();
    expect(
      store.batches.map((batch) =>
        batch.map(({ charges: [charge], multiplicity }) => [charge?.key, multiplicity]),
      ),
    ).toEqual([[["shared", 2]]]);
    const dropped = { kind: "failed", code: "OVERLOADED" };
    const gone = [shared[0], shared[2], alone].map((one) => one?.outcome);
    expect(gone).toEqual([dropped, dropped, dropped]);
    expect([shared[1], shared[3]]).toMatchObject([
      { index: 0, outcome: { kind: "decided", askedCount: 2 } },
      { index: 1, outcome: { kind: "decided", askedCount: 2 } },
    ]);
    expect(events).toEqual([]);
  });

  it("asks the store nothing when everybody's time is over", async () => {
    const late = ask([testCharge()], clock.monotonicMs() + 5);
    clock.stall(6);
    await endTurn();
    expect(late.outcome).toEqual({ kind: "failed", code: "OVERLOADED" });
    expect([store.batches, clock.timerCount]).toEqual([[], 0]);
  });

  it("counts what it sends, and what it spared the store", async () => {
    const slot = createSlot();
    const charges = [testCharge({ key: "a" }), testCharge({ key: "b" })];
    for (let i = 0; i < 3; i += 1) ask(charges, never, slot);
    ask([testCharge({ key: "c" })], never);
    await endTurn();
    ask(charges, never, slot);
    await endTurn();
    expect(counts).toMatchObject({
      batchCount: 2,
      batchRequestCount: 3,
      batchChargeCount: 5,
      coalescedCount: 2,
    });
  });

  it("fails requests, not the process, when the store breaks its contract", async () => {
    const broken = new Batcher({
      store: new SilentStore({ clock }),
      clock,
      breaker: new Breaker(),
      storeBudgetMs: 10,
      onEvent: (event) => events.push(event),
      counts,
    });
    const watched = askOf(broken, { charges: [testCharge()], deadlineMs: never });
    await endTurn();
    expect(watched.outcome).toEqual({ kind: "failed", code: "INTERNAL" });
  });
});
