import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bucket, type Charge, levelAt, unitsPerHit } from "../../src/core/limits/bucket.js";
import { decideRequest, multiplicityMax } from "../../src/core/limits/gcra.js";
import { hitsMax, type LimitKey } from "../../src/core/limits/limit.js";
import {
  batchChargesMax,
  type LimitStore,
  type StoreOutcome,
  type StoreRequest,
} from "../../src/store/limit-store.js";
import { once, takeOne, testCharge, testKey } from "../support/charges.js";
import { expectPaced, type Leaving } from "../support/leavings.js";
import { type Case, cases, oddKeys } from "./limit-store-cases.js";

/** Where stores are that the suite may use up. */
export interface StorePlace {
  /** Opens one more. */
  readonly open: () => Promise<LimitStore>;
  /** A deadline that a busy machine keeps, by the store's own clock. */
  readonly soon: () => number;
  /**
   * Several stores hold a part of the keys each, at times of their own; requests of one batch that
   * need several of them are decided after those that need one.
   */
  readonly isSplit?: boolean;
  /** Ends what the stores are on, when they are closed. */
  readonly stop: () => Promise<void>;
}

type StoreUnderTest = Omit<StorePlace, "stop"> & { readonly store: LimitStore };

/** What every `LimitStore` does, whatever it is made of. */
export function describeLimitStore(name: string, start: () => Promise<StorePlace>): void {
  describe(name, () => {
    let place: StorePlace;
    let tested: StoreUnderTest;

    beforeAll(async () => {
      place = await start();
      tested = { ...place, store: await place.open() };
    });

    afterAll(async () => {
      await tested?.store.close();
      await place?.stop();
    });

    it.each(cases)("$name", (testCase) => runCase(tested, testCase));

    describeBatches(() => tested);
    describeMultiplicity(() => tested);
    describeDelays(() => tested);
    describeUpkeep(() => tested);
    describeClose(() => tested);
  });
}

function describeBatches(tested: () => StoreUnderTest): void {
  describe("take()", () => {
    it("decides the requests of a batch in turn, on shared keys too", async () => {
      const { store, soon } = tested();
      const ask = (cost: number): Charge => yearly("shared", { cost });
      const batch = [6, 5, 4, 1].map((cost) => once(ask(cost)));
      const outcomes = await store.take(batch, soon());
      expect(outcomes.map(isDenied)).toEqual([false, true, false, true]);
    });

    it("decides as many charges at once as a batch may hold", async () => {
      const { store, soon } = tested();
      const batch = Array.from({ length: batchChargesMax }, (_, i) =>
        once(yearly(`many ${i % 500}`)),
      );
      const outcomes = await store.take(batch, soon());
      expect(outcomes.map(isDenied)).toEqual(batch.map(() => false));
      expect(await usedHits(tested(), testKey("many 7"))).toBe(2);
      expect(await usedHits(tested(), testKey("many 400"))).toBe(1);
    });

    it("answers an empty batch", async () => {
      expect(await tested().store.take([], tested().soon())).toEqual([]);
    });

    it("keeps odd keys apart and whole", async () => {
      const { store, soon } = tested();
      const costOf = (i: number): number => (i % 9) + 1;
      const batch = oddKeys.map(([, key], i) => once(yearly(key, { cost: costOf(i) })));
      await store.take(batch, soon());
      for (const [i, [, key]] of oddKeys.entries()) {
        expect(await usedHits(tested(), testKey(key))).toBe(costOf(i));
      }
    });

    it("refuses a batch that breaks the contract, and charges none of it", async () => {
      const { store, soon } = tested();
      const batch = [once(yearly("contract")), once(yearly("contract", { cost: 0.5 }))];
      await expect(store.take(batch, soon())).rejects.toThrow("assertion failed");
      expect(await store.peek(testKey("contract"), soon())).toBeUndefined();
    });
  });
}

function describeMultiplicity(tested: () => StoreUnderTest): void {
  describe("take() of identical requests", () => {
    it("grants as many as fit, and goes on with the batch", async () => {
      const { store, soon } = tested();
      const wide = yearly("repeated wide", { burst: 100 });
      const charges = [wide, yearly("repeated tight")];
      const batch: readonly StoreRequest[] = [
        { charges, multiplicity: 4 },
        { charges, multiplicity: multiplicityMax },
        { charges, multiplicity: 2 },
        { charges: [{ ...wide, cost: 30 }], multiplicity: 5 },
      ];
      const isSplit = tested().isSplit ?? false;
      const outcomes: StoreOutcome[] = [];
      for (const some of isSplit ? batch.map((one) => [one]) : [batch]) {
        outcomes.push(...(await store.take(some, soon())));
      }
      const answers = outcomes.map((outcome) => {
        if (outcome.kind !== "decided") throw new Error("not decided");
        const { grantedCount, results } = outcome.result;
        const usedHits = results.map(({ bucket }) => bucket.level / unitsPerHit);
        return { grantedCount, isOver: results.map((result) => result.isOver), usedHits };
      });
      expect(answers).toEqual([
        { grantedCount: 4, isOver: [false, false], usedHits: [4, 4] },
        { grantedCount: 6, isOver: [false, true], usedHits: [10, 10] },
        { grantedCount: 0, isOver: [false, true], usedHits: [10, 10] },
        { grantedCount: 3, isOver: [true], usedHits: [100] },
      ]);
      expect(await usedHits(tested(), testKey("repeated wide"))).toBe(100);
      expect(await usedHits(tested(), testKey("repeated tight"))).toBe(10);
    });

    it("grants the whole of the largest burst at once", async () => {
      const { store, soon } = tested();
      const most = yearly("repeated most", { hits: hitsMax, burst: hitsMax });
      const batch = [1, 2].map(() => ({ charges: [most], multiplicity: multiplicityMax }));
      const outcomes = await store.take(batch, soon());
      expect(outcomes.map(grantedCount)).toEqual([hitsMax, 0]);
    });
  });
}

function describeDelays(tested: () => StoreUnderTest): void {
  describe("take() of requests that may be held", () => {
    it("lets them leave at the limit's rate, and refuses those held too long", async () => {
      const { store, soon } = tested();
      const charge = testCharge({ key: "held", hits: 5, burst: 3, delayUs: 36_000_000 });
      const left: Leaving[] = [];
      let before: Bucket = { level: 0, tUs: 0 };
      for (const count of [1, 4, 1, 3, 8]) {
        const batch = Array.from({ length: count }, () => once(charge));
        for (const outcome of await store.take(batch, soon())) {
          if (outcome.kind !== "decided") throw new Error("not decided");
          const { nowUs, grantedCount, results } = outcome.result;
          const after = results[0]?.bucket ?? before;
          left.push({ charge, nowUs, before, after, isDenied: grantedCount === 0 });
          before = after;
        }
      }
      expectPaced(left);
      expect(left.filter(({ isDenied }) => !isDenied).length).toBeGreaterThanOrEqual(6);
      expect(left.at(-1)?.isDenied).toBe(true);
    });

    it("holds identical requests one after the other", async () => {
      const { store, soon } = tested();
      const charge = testCharge({ key: "held alike", hits: 5, burst: 3, delayUs: 36_000_000 });
      const [outcome] = await store.take([{ charges: [charge], multiplicity: 50 }], soon());
      if (outcome?.kind !== "decided") throw new Error("not decided");
      expect(outcome.result.grantedCount).toBe(6);
      expect(outcome.result.results[0]?.bucket.level).toBe(6 * unitsPerHit);
    });

    it("charges no limit of a request that would be held too long by one", async () => {
      const { store, soon } = tested();
      const loose = yearly("held loose", { delayUs: 60_000_000 });
      const tight = testCharge({ key: "held tight", hits: 5, burst: 1, delayUs: 1_000_000 });
      await takeOne(store, [tight], soon());
      const { isDenied, results } = await takeOne(store, [loose, tight], soon());
      expect([isDenied, results.map(({ isOver }) => isOver)]).toEqual([true, [false, true]]);
      expect(await usedHits(tested(), testKey("held loose"))).toBe(0);
    });
  });
}

function describeUpkeep(tested: () => StoreUnderTest): void {
  describe("peek(), forget(), ping()", () => {
    it("peeks at a bucket as it is, and at nothing where there is none", async () => {
      const { store, soon } = tested();
      const { results, nowUs } = await takeOne(store, [yearly("peeked", { cost: 3 })], soon());
      const peeked = await store.peek(testKey("peeked"), soon());
      expect(peeked?.bucket).toEqual(results[0]?.bucket);
      expect(peeked?.nowUs).toBeGreaterThanOrEqual(nowUs);
      expect(await store.peek(testKey("never used"), soon())).toBeUndefined();
    });

    it("forgets keys and says how many there were", async () => {
      const { store, soon } = tested();
      const keys = Array.from({ length: 700 }, (_, i) => testKey(`forgotten ${i}`));
      for (const some of [keys.slice(0, 350), keys.slice(350)]) {
        await store.take(
          some.map((key) => once(yearly(key))),
          soon(),
        );
      }
      expect(await store.forget([...keys, testKey("never used")], soon())).toBe(700);
      expect(await store.peek(testKey("forgotten 0"), soon())).toBeUndefined();
      expect(await store.forget(keys, soon())).toBe(0);
      expect(await store.forget([], soon())).toBe(0);
    });

    it("pings", async () => {
      await tested().store.ping(tested().soon());
    });
  });
}

function describeClose(tested: () => StoreUnderTest): void {
  describe("close()", () => {
    it("makes every call reject with STORE_CLOSED, and may be called twice", async () => {
      const { open, soon } = tested();
      const store = await open();
      await store.close();
      await store.close();
      const calls = [
        store.take([once(yearly("closed"))], soon()),
        store.peek(testKey("closed"), soon()),
        store.forget([testKey("closed")], soon()),
        store.ping(soon()),
      ];
      for (const call of calls) await expect(call).rejects.toMatchObject({ code: "STORE_CLOSED" });
    });
  });
}

function yearly(key: string, overrides: Omit<Partial<Charge>, "key"> = {}): Charge {
  return testCharge({ key, hits: 10, periodUs: 31_536_000_000_000, burst: 10, ...overrides });
}

function grantedCount(outcome: StoreOutcome): number | undefined {
  return outcome.kind === "decided" ? outcome.result.grantedCount : undefined;
}

function isDenied(outcome: StoreOutcome): boolean {
  return grantedCount(outcome) === 0;
}

/** Runs a case, and beside it the law itself on a table of the test's own, by the store's times. */
async function runCase(tested: StoreUnderTest, { name, steps }: Case): Promise<void> {
  const { store, soon, isSplit = false } = tested;
  const table = new Map<LimitKey, Bucket>();
  const own = (key: string): LimitKey => testKey(`${name}/${key}`);
  for (const step of steps) {
    const ask = step.ask.map((charge): Charge => {
      const { lastKey } = charge;
      const ownLastKey = lastKey === undefined ? {} : { lastKey: own(lastKey) };
      return { ...charge, key: own(charge.key), ...ownLastKey };
    });
    const { nowUs, isDenied, results } = await takeOne(store, ask, soon());
    const expected = decideRequest(ask, table, nowUs);
    if (!isSplit) expect({ isDenied, results }).toEqual(expected);
    expect(isDenied).toBe(step.isDenied);
    expect(results.map((result) => result.isOver)).toEqual(step.isOver);
    for (const [key, hits] of Object.entries(step.used ?? {})) {
      expect(await usedHits({ store, soon }, own(key))).toBe(hits);
    }
  }
}

/** Hits in use by a yearly limit, rounded up: less than one has drained since. */
async function usedHits(
  { store, soon }: Pick<StoreUnderTest, "store" | "soon">,
  key: LimitKey,
): Promise<number> {
  const peeked = await store.peek(key, soon());
  if (peeked === undefined) return 0;
  const drain = { hits: 10, periodUs: 31_536_000_000_000 };
  return Math.ceil(levelAt(drain, peeked.bucket, peeked.nowUs) / unitsPerHit);
}
