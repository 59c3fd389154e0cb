import { expect, it } from "vitest";
import { ShadowLedger } from "../../src/fleet/claims/shadow-ledger.js";
import {
  type LedgerEntry,
  type LedgerStore,
  ledgerNamesMax,
} from "../../src/store/coordination/ledger-store.js";
import { realRandom } from "../support/real-clock.js";

/** An entry of the run that tests are about. */
export function entry(counts: Readonly<Record<string, number>>, fields: Partial<LedgerEntry> = {}) {
  const own = new Map(Object.entries(counts));
  return { run: "r1", counts: own, begins: false, isLookedAt: false, ...fields };
}

/** What a replica is answered, as an object. */
export async function sums(ledger: ShadowLedger, one: LedgerEntry) {
  const found = await ledger.add(one);
  return found === undefined ? undefined : Object.fromEntries(found);
}

/** What ledgers promise to replicas, in any store. */
export function describeLedger(openStore: () => LedgerStore): void {
  const join = (store: LedgerStore) => new ShadowLedger({ store, random: realRandom });
  const open = (): ShadowLedger => join(openStore());

  it("adds up what is counted, from the beginning of a run on", async () => {
    const ledger = open();
    expect(await sums(ledger, entry({ a: 1 }))).toBeUndefined();
    expect(await sums(ledger, entry({}, { begins: true }))).toEqual({});
    expect(await sums(ledger, entry({ '["shop","ä"]': 1, b: 2 }))).toEqual({
      '["shop","ä"]': 1,
      b: 2,
    });
    expect(await sums(ledger, entry({ b: 3 }))).toEqual({ '["shop","ä"]': 1, b: 5 });
  });

  it("counts an entry once that is added again", async () => {
    const ledger = open();
    const one = entry({ a: 1 }, { begins: true });
    await ledger.add(one);
    expect(await sums(ledger, one)).toEqual({ a: 1 });
    expect(await sums(ledger, entry({ a: 1 }))).toEqual({ a: 2 });
  });

  it("leaves out what comes under more names than there may be", async () => {
    const ledger = open();
    const names = Array.from({ length: ledgerNamesMax + 1 }, (_, i) => [`n${i}`, 1] as const);
    const found = await ledger.add(entry(Object.fromEntries(names), { begins: true }));
    expect(found?.size).toBeLessThanOrEqual(ledgerNamesMax);
    expect(found?.size).toBeGreaterThan(ledgerNamesMax - 10);
    expect((await sums(ledger, entry({ n0: 1, n4096: 1 })))?.["n0"]).toBe(2);
  });

  it("adds up what several replicas count", async () => {
    const store = openStore();
    const [one, other] = [join(store), join(store)];
    await one.add(entry({ a: 1 }, { begins: true }));
    await other.add(entry({ a: 10 }));
    expect(await sums(one, entry({ a: 100 }))).toEqual({ a: 111 });
  });
}
