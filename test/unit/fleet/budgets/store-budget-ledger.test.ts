import { beforeEach, describe, expect, it } from "vitest";
import { formatTimestamp } from "../../../../src/core/base/timestamp.js";
import type {
  AccountLaw,
  ReservedEntry,
  SettleResult,
} from "../../../../src/core/budgets/account.js";
import { accountKey } from "../../../../src/core/budgets/account-key.js";
import type { ReservationId, ReserveAnswer } from "../../../../src/core/budgets/budget-ledger.js";
import {
  earlyMsMax,
  earlySettlementsMax,
} from "../../../../src/fleet/budgets/early-settlements.js";
import { LedgerKeyCounts } from "../../../../src/fleet/budgets/ledger-key-counts.js";
import { queuedSettlementsMax } from "../../../../src/fleet/budgets/repeated-operations.js";
import {
  type BudgetLedgerEvent,
  budgetBatchesInFlightMax,
  StoreBudgetLedger,
} from "../../../../src/fleet/budgets/store-budget-ledger.js";
import {
  type BudgetBatch,
  budgetOperationsMax,
} from "../../../../src/store/coordination/budget-store.js";
import { MemoryBudgets } from "../../../../src/store/coordination/memory-budgets.js";
import { BudgetLink } from "../../../support/budget-link.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";

/** A replica's ledger, over a store that its test can cut off. */
class Rig {
  readonly clock = new FakeClock();
  readonly store = new MemoryBudgets(this.clock);
  readonly batches: BudgetBatch[] = [];
  readonly events: BudgetLedgerEvent[] = [];
  readonly weather = { delayMs: 0, lostRatio: 0, isOut: false };
  readonly ledger = this.open(1);

  open(seed: number): StoreBudgetLedger {
    const { clock, weather } = this;
    const watcher = { applied: (batch: BudgetBatch) => void this.batches.push(batch) };
    const random = new FakeRandom(seed);
    const link = new BudgetLink({ inner: this.store, clock, random, weather, watcher });
    return new StoreBudgetLedger({
      store: link,
      clock,
      random,
      replicaCount: () => 2,
      onEvent: (event) => this.events.push(event),
    });
  }

  /** Reserves, and answers what the ledger does within the time that the store has. */
  async reserve(...entries: readonly ReservedEntry[]): Promise<ReserveAnswer> {
    const answers = await this.reserveMany([entries]);
    const [answer] = answers;
    if (answer === undefined) throw new Error("the ledger has not answered");
    return answer;
  }

  async reserveMany(calls: readonly (readonly ReservedEntry[])[]): Promise<ReserveAnswer[]> {
    const answers: ReserveAnswer[] = [];
    for (const entries of calls) {
      this.ledger.reserve(entries, Number.POSITIVE_INFINITY, (answer) => answers.push(answer));
    }
    await this.pass(20);
    return answers;
  }

  settle(id: ReservationId, ...costs: readonly number[]): SettleResult[] {
    const results: SettleResult[] = [];
    this.ledger.settle({ id, costs }, (result) => results.push(result));
    return results;
  }

  async pass(byMs: number): Promise<void> {
    // Steps are shorter than the time of a call, so that answers come before their deadlines.
    await this.clock.advanceAsync(byMs, Math.min(byMs, 4));
    await settlePromises();
  }

  async state(entry: ReservedEntry): Promise<{ spent: number; reserved: number }> {
    const [row] = await this.store.read([entry]);
    return { spent: row?.spent ?? 0, reserved: row?.reserved ?? 0 };
  }
}

const month: AccountLaw = {
  kind: "window",
  windows: { startUs: 0, endUs: 2 ** 51, nextEndUs: 2 ** 51 + 2 ** 40 },
};

function entry(fields: Partial<ReservedEntry> = {}): ReservedEntry {
  return {
    account: accountKey("team", ["research"], String),
    law: month,
    capacity: 100,
    estimate: 10,
    isEnforced: true,
    whenLost: "release",
    onStoreFailure: "local",
    ...fields,
  };
}

function idOf(answer: ReserveAnswer): ReservationId {
  if (answer.id === undefined) throw new Error("the call was refused");
  return answer.id;
}

let rig: Rig;

beforeEach(() => {
  rig = new Rig();
});

describe("StoreBudgetLedger", () => {
  it("sends the operations of a turn in batches of bounded size", async () => {
    const calls = Array.from({ length: budgetOperationsMax + 5 }, () => [entry({ estimate: 1 })]);
    const answers = await rig.reserveMany(calls);
    expect(rig.batches.map(({ operations }) => operations.length)).toEqual([128, 5]);
    expect(answers.filter(({ id }) => id !== undefined)).toHaveLength(100);
    expect(rig.ledger.counts).toMatchObject({
      reservedCount: 100,
      refusedCount: 33,
      batchCount: 2,
    });
    expect(rig.ledger.openCount).toBe(100);
    for (const { id } of answers) if (id !== undefined) rig.settle(id, 1);
    await rig.pass(20);
    expect(rig.ledger.counts).toMatchObject({ settledCount: 100 });
    expect(rig.ledger.openCount).toBe(0);
    expect(await rig.state(entry())).toEqual({ spent: 100, reserved: 0 });
  });

  it("answers what the store has found, and never before reserve returns", async () => {
    let answer: ReserveAnswer | undefined;
    rig.ledger.reserve([entry()], Number.POSITIVE_INFINITY, (given) => {
      answer = given;
    });
    expect(answer).toBeUndefined();
    await rig.pass(20);
    const found = { spent: 0, reserved: 0, isOver: false };
    expect(answer).toMatchObject({ kind: "decided", result: { entries: [found] } });
    const refused = await rig.reserve(entry({ estimate: 91 }));
    expect(refused).toMatchObject({ kind: "decided", id: undefined });
    expect(refused.result.entries[0]).toMatchObject({ reserved: 10, isOver: true });
  });

  it("answers at a call's deadline, and releases what the store reserves later", async () => {
    rig.weather.delayMs = 1;
    const answers: ReserveAnswer[] = [];
    const denied = entry({ onStoreFailure: "deny" });
    rig.ledger.reserve([denied], rig.clock.monotonicMs() + 0.001, (given) => answers.push(given));
    rig.clock.runTurns();
    rig.clock.advance(0.001);
    expect(answers).toMatchObject([{ kind: "failed", code: "STORE_TIMEOUT", id: undefined }]);
    await rig.pass(200);
    const kinds = rig.batches.flatMap(({ operations }) => operations.map(({ kind }) => kind));
    expect(kinds.toSorted()).toEqual(["reserve", "settle"]);
    expect(await rig.state(denied)).toEqual({ spent: 0, reserved: 0 });
    expect(answers).toHaveLength(1);
  });

  it("does not send what is too late at the end of its turn", async () => {
    const answers: ReserveAnswer[] = [];
    rig.ledger.reserve([entry()], rig.clock.monotonicMs(), (given) => answers.push(given));
    await rig.pass(20);
    expect(answers).toMatchObject([{ kind: "failed", code: "OVERLOADED" }]);
  });

  it("fails at once while the store is known to be away, and says so once", async () => {
    rig.weather.isOut = true;
    for (let i = 0; i < 20; i += 1) await rig.reserve(entry({ onStoreFailure: "deny" }));
    expect(rig.ledger.isAway).toBe(true);
    expect(rig.events).toEqual([{ kind: "budgetStoreLost", code: "STORE_TIMEOUT" }]);
    const answers: ReserveAnswer[] = [];
    rig.ledger.reserve([entry({ onStoreFailure: "deny" })], Number.POSITIVE_INFINITY, (given) =>
      answers.push(given),
    );
    rig.clock.runTurns();
    expect(answers).toMatchObject([{ kind: "failed", code: "STORE_CIRCUIT_OPEN" }]);
    rig.weather.isOut = false;
    await rig.pass(6_000);
    await rig.reserve(entry());
    expect(rig.events.at(-1)).toEqual({ kind: "budgetStoreFound" });
    expect((await rig.reserve(entry())).kind).toBe("decided");
  });

  it("bounds the calls to the store that are in flight", async () => {
    rig.weather.isOut = true;
    const count = budgetBatchesInFlightMax * budgetOperationsMax;
    const calls = Array.from({ length: count + 1 }, () => [entry({ onStoreFailure: "deny" })]);
    const answers: ReserveAnswer[] = [];
    for (const entries of calls) {
      rig.ledger.reserve(entries, Number.POSITIVE_INFINITY, (answer) => answers.push(answer));
    }
    rig.clock.runTurns();
    expect(answers).toMatchObject([{ kind: "failed", code: "OVERLOADED" }]);
  });

  it("repeats settlements until the store has them, and charges them once", async () => {
    const id = idOf(await rig.reserve(entry()));
    rig.weather.isOut = true;
    const results = rig.settle(id, 7);
    await rig.pass(60_000);
    expect(results).toEqual([]);
    expect(rig.ledger.queuedCount).toBe(1);
    rig.weather.isOut = false;
    await rig.pass(10_000);
    expect(results).toEqual(["settled"]);
    expect(rig.ledger.queuedCount).toBe(0);
    expect(rig.settle(id, 7)).toEqual([]);
    await rig.pass(20);
    expect(await rig.state(entry())).toEqual({ spent: 7, reserved: 0 });
    expect(rig.ledger.counts).toMatchObject({ settledCount: 1, unknownCount: 1 });
  });

  it("settles late what was released while it was away for longer than its lease", async () => {
    const id = idOf(await rig.reserve(entry()));
    rig.weather.isOut = true;
    await rig.pass(31_000);
    await rig.store.renew("another", 30_000);
    expect(await rig.state(entry())).toEqual({ spent: 0, reserved: 0 });
    const results = rig.settle(id, 7);
    rig.weather.isOut = false;
    await rig.pass(10_000);
    expect(results).toEqual(["late"]);
    expect(await rig.state(entry())).toEqual({ spent: 7, reserved: 0 });
  });

  it("keeps its lease while it only holds", async () => {
    await rig.reserve(entry());
    await rig.pass(120_000);
    await rig.store.renew("another", 30_000);
    expect(await rig.state(entry())).toEqual({ spent: 0, reserved: 10 });
  });

  it("drops the oldest settlements beyond its bound, and says so once", async () => {
    rig.weather.isOut = true;
    const ids = Array.from(
      { length: queuedSettlementsMax + 3 },
      (_, i) => `other.${i}` as ReservationId,
    );
    const first = rig.settle(ids[0] ?? idOf(await rig.reserve(entry())), 1);
    for (const id of ids.slice(1)) rig.ledger.settle({ id, costs: [1] });
    await rig.pass(3_000);
    expect(rig.ledger.queuedCount).toBeLessThanOrEqual(queuedSettlementsMax);
    expect(rig.ledger.counts.droppedCount).toBe(3);
    expect(rig.events.filter(({ kind }) => kind === "settlementsDropped")).toHaveLength(1);
    expect(first).toEqual([]);
  });

  it("repeats the settlement of another's call until that one has reserved it", async () => {
    rig.weather.isOut = true;
    const id = idOf(await rig.reserve(entry()));
    const observer = rig.open(2);
    const results: SettleResult[] = [];
    rig.weather.isOut = false;
    observer.settle({ id, costs: [7] }, (result) => results.push(result));
    await rig.pass(20);
    expect(await rig.state(entry())).toEqual({ spent: 0, reserved: 0 });
    expect(observer.queuedCount).toBe(1);
    // Its own replica reserves it, and is lost before it settles.
    await rig.pass(2_000);
    expect(results).toEqual(["settled"]);
    expect(await rig.state(entry())).toEqual({ spent: 7, reserved: 0 });
    expect(observer.queuedCount).toBe(0);
    expect(observer.counts).toMatchObject({ settledCount: 1, unknownCount: 0 });
  });

  it("gives up settlements of calls that nobody reserves, and bounds what waits", async () => {
    const results: SettleResult[] = [];
    for (let i = 0; i < earlySettlementsMax + 3; i += 1) {
      const id = `other.${i}` as ReservationId;
      rig.ledger.settle({ id, costs: [1] }, (result) => results.push(result));
    }
    await rig.pass(900);
    expect(results).toEqual(["unknown", "unknown", "unknown"]);
    expect(rig.ledger.queuedCount).toBe(earlySettlementsMax);
    await rig.pass(earlyMsMax + 2_000);
    expect(results).toHaveLength(earlySettlementsMax + 3);
    expect(rig.ledger.queuedCount).toBe(0);
    expect(rig.ledger.counts.unknownCount).toBe(earlySettlementsMax + 3);
  });

  it("does not wait for reservations of others when it closes", async () => {
    const results: SettleResult[] = [];
    rig.ledger.settle({ id: "other.1" as ReservationId, costs: [1] }, (result) => {
      results.push(result);
    });
    await rig.pass(100);
    const closed = rig.ledger.close();
    await rig.pass(100);
    await closed;
    expect(results).toEqual(["unknown"]);
    expect(rig.clock.timerCount).toBe(0);
  });

  it("refuses a settlement out of range, which would take others along", () => {
    const id = "other.1" as ReservationId;
    expect(() => rig.ledger.settle({ id, costs: [-1] })).toThrow("costs are in range");
    expect(() => rig.ledger.settle({ id, costs: [0.5] })).toThrow("costs are in range");
  });

  it("settles what is left when it closes, and ends its lease", async () => {
    const [kept, settled] = await rig.reserveMany([[entry()], [entry()]]);
    if (kept === undefined || settled === undefined) throw new Error("two calls were let in");
    rig.settle(idOf(settled), 3);
    const closed = rig.ledger.close();
    await rig.pass(100);
    await closed;
    expect(await rig.state(entry())).toEqual({ spent: 3, reserved: 0 });
    expect(rig.clock.timerCount).toBe(0);
  });

  it("closes within a bound where the store is away", async () => {
    const id = idOf(await rig.reserve(entry()));
    rig.weather.isOut = true;
    rig.settle(id, 3);
    let isClosed = false;
    void rig.ledger.close().then(() => {
      isClosed = true;
    });
    await rig.pass(5_000);
    expect(isClosed).toBe(true);
  });
});

describe("StoreBudgetLedger while the store is away", () => {
  it("divides what was left by the replicas, and charges it once the store is back", async () => {
    await rig.reserve(entry({ estimate: 40 }));
    rig.weather.isOut = true;
    const answers = await rig.reserveMany(Array.from({ length: 5 }, () => [entry()]));
    // Of the 60 that were left, this one of two replicas has 30.
    const ids = answers.flatMap(({ id }) => id ?? []);
    expect(answers.every(({ kind }) => kind === "failed")).toBe(true);
    expect(ids).toHaveLength(3);
    expect(rig.ledger.counts).toMatchObject({ failureAdmittedCount: 3, failureRefusedCount: 2 });
    for (const id of ids.slice(1)) rig.settle(id, 12);
    await rig.pass(1_000);
    expect((await rig.reserve(entry({ estimate: 1 }))).id).toBeUndefined();
    rig.weather.isOut = false;
    await rig.pass(10_000);
    // The call that still runs is reserved now.
    expect(await rig.state(entry())).toEqual({ spent: 24, reserved: 50 });
    rig.settle(ids[0] ?? idOf(await rig.reserve(entry())), 11);
    await rig.pass(20);
    expect(await rig.state(entry())).toEqual({ spent: 35, reserved: 40 });
  });

  it("sends one settlement of a call of its own, which brings the entries", async () => {
    // A second one without them arrived first, so the store took the first for a new call's.
    rig.weather.isOut = true;
    const id = idOf(await rig.reserve(entry()));
    rig.settle(id, 7);
    const again = rig.settle(id, 7);
    await rig.pass(20);
    expect(again).toEqual(["unknown"]);
    rig.weather.isOut = false;
    await rig.pass(10_000);
    const sent = rig.batches.flatMap(({ operations }) => operations);
    expect(sent.filter(({ kind }) => kind === "settle")).toMatchObject([
      { id, costs: [7], unreserved: [entry()] },
    ]);
    expect(await rig.state(entry())).toEqual({ spent: 7, reserved: 0 });
  });

  it("does as onStoreFailure says, and refuses where one of a call's budgets does", async () => {
    const other = accountKey("other", [], String);
    rig.weather.isOut = true;
    const allow = entry({ onStoreFailure: "allow", estimate: 1_000 });
    const deny = entry({ account: other, onStoreFailure: "deny" });
    expect((await rig.reserve(allow)).id).toBeDefined();
    expect((await rig.reserve(deny)).id).toBeUndefined();
    expect((await rig.reserve(allow, deny)).id).toBeUndefined();
    expect((await rig.reserve({ ...deny, isEnforced: false })).id).toBeDefined();
  });

  it("has at least one call in flight of each key", async () => {
    rig.weather.isOut = true;
    const counts = new LedgerKeyCounts(rig.ledger, String);
    const answers: boolean[] = [];
    for (let i = 0; i < 3; i += 1) {
      const key = { service: "llm", key: "ann", max: 1, isEnforced: true };
      counts.take(key, Number.POSITIVE_INFINITY, ({ giveBack }) =>
        answers.push(giveBack !== undefined),
      );
    }
    await rig.pass(20);
    expect(answers).toEqual([true, false, false]);
  });
});

describe("LedgerKeyCounts", () => {
  it("counts a key over replicas, and others apart", async () => {
    const replicas = [rig.ledger, rig.open(2)].map((ledger) => new LedgerKeyCounts(ledger, String));
    const taken: ((() => void) | undefined)[] = [];
    const take = async (i: number, key: string, isEnforced = true): Promise<void> => {
      const shared = { service: "llm", key, max: 2, isEnforced };
      replicas[i]?.take(shared, Number.POSITIVE_INFINITY, (a) => taken.push(a.giveBack));
      await rig.pass(20);
    };
    await take(0, "ann");
    await take(1, "ann");
    await take(0, "ann");
    await take(1, "bob");
    await take(1, "ann", false);
    expect(taken.map((giveBack) => giveBack !== undefined)).toEqual([
      true,
      true,
      false,
      true,
      true,
    ]);
    taken[0]?.();
    taken[4]?.();
    await rig.pass(20);
    await take(1, "ann");
    expect(taken.at(-1)).toBeDefined();
  });
});

describe("the usage report of a ledger", () => {
  const used = { service: "llm", model: "gpt-4o", usage: { outputTokens: 5 }, cost: 3 };

  it("is written every five seconds, once, by account and model", async () => {
    rig.ledger.record({ ...used, accounts: ["research", "ann"] });
    rig.ledger.record({ ...used, accounts: ["research"], usage: { inputTokens: 2 } });
    rig.weather.isOut = true;
    await rig.pass(20_000);
    expect(rig.ledger.usageRowCount).toBe(2);
    rig.weather.isOut = false;
    await rig.pass(10_000);
    expect(rig.ledger.usageRowCount).toBe(0);
    const day = formatTimestamp(rig.clock.epochUs()).slice(0, 10);
    const { rows } = await rig.store.usage({ day, cursor: "" });
    const row = { service: "llm", model: "gpt-4o" };
    expect(rows.toSorted((a, b) => a.callCount - b.callCount)).toEqual([
      { ...row, account: "ann", callCount: 1, counts: { outputTokens: 5 }, cost: 3 },
      {
        ...row,
        account: "research",
        callCount: 2,
        counts: { inputTokens: 2, outputTokens: 5 },
        cost: 6,
      },
    ]);
  });

  it("sums what is beyond its bound in a row without names", async () => {
    rig.weather.isOut = true;
    for (let i = 0; i < 10_007; i += 1) {
      rig.ledger.record({ ...used, accounts: [], model: `m${i}` });
    }
    expect(rig.ledger.usageRowCount).toBe(10_001);
    rig.weather.isOut = false;
    await rig.pass(20_000);
    expect(rig.ledger.usageRowCount).toBe(0);
  });

  it("cuts names that the store would not take", async () => {
    rig.ledger.record({ ...used, accounts: ["x".repeat(5_000)], model: "y".repeat(5_000) });
    await rig.pass(6_000);
    expect(rig.ledger.usageRowCount).toBe(0);
  });
});
