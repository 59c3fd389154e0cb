import { describe, expect, it } from "vitest";
import {
  type LedgerEntry,
  ledgerKeptSeconds,
} from "../../../../src/store/coordination/ledger-store.js";
import { MemoryLedger } from "../../../../src/store/coordination/memory-coordination.js";
import { FakeClock } from "../../../support/fake-clock.js";

const entry: LedgerEntry = {
  run: "r1",
  counts: new Map([["a", 1]]),
  begins: false,
  isLookedAt: false,
};

function createLedger() {
  const clock = new FakeClock();
  const ledger = new MemoryLedger(clock);
  let number = 0;
  const add = async (fields: Partial<LedgerEntry> = {}) => {
    number += 1;
    const sums = await ledger.add({ ...entry, ...fields }, { replicaId: "one", number });
    return sums?.get("a");
  };
  return { clock, add };
}

describe("MemoryLedger", () => {
  it("ends a run that nobody has looked at for an hour", async () => {
    const { clock, add } = createLedger();
    await add({ begins: true });
    clock.advance(1_000 * (ledgerKeptSeconds - 1));
    expect(await add({ counts: new Map(), isLookedAt: true })).toBe(1);
    clock.advance(1_000 * (ledgerKeptSeconds - 1));
    expect(await add()).toBe(2);
    clock.advance(1_000);
    expect(await add()).toBeUndefined();
  });

  it("keeps so many runs, and the newest", async () => {
    const { add } = createLedger();
    for (let i = 1; i <= 17; i += 1) await add({ run: `r${i}`, begins: true });
    expect(await add({ run: "r1" })).toBeUndefined();
    expect(await add({ run: "r2" })).toBe(2);
    expect(await add({ run: "r17" })).toBe(2);
  });
});
