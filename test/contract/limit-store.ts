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
