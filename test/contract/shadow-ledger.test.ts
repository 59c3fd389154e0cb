import { describe, expect, it } from "vitest";
import { systemRandom } from "../../src/app/base/clock.js";
import {
  InProcessLedger,
  type LedgerEntry,
  ledgerKeptSeconds,
  ledgerNamesMax,
  RedisLedger,
  type ShadowLedger,
} from "../../src/fleet/claims/shadow-ledger.js";
import { FakeClock } from "../support/fake-clock.js";
import { realClock } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";

function entry(counts: Readonly<Record<string, number>>, fields: Partial<LedgerEntry> = {}) {
  const own = new Map(Object.entries(counts));
  return { run: "r1", counts: own, begins: false, isLookedAt: false, ...fields };
}

async function sums(ledger: ShadowLedger, one: LedgerEntry) {
  const found = await ledger.add(one);
  return found === undefined ? undefined : Object.fromEntries(found);
}

function describeLedger(open: () => ShadowLedger): void {
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
}

describe("InProcessLedger", () => {
  describeLedger(() => new InProcessLedger(realClock));

  it("ends a run that nobody has looked at for an hour", async () => {
    const clock = new FakeClock();
    const ledger = new InProcessLedger(clock);
    await ledger.add(entry({ a: 1 }, { begins: true }));
    clock.advance(1_000 * (ledgerKeptSeconds - 1));
    expect(await sums(ledger, entry({}, { isLookedAt: true }))).toEqual({ a: 1 });
    clock.advance(1_000 * (ledgerKeptSeconds - 1));
    expect(await sums(ledger, entry({ a: 1 }))).toEqual({ a: 2 });
    clock.advance(1_000);
    expect(await sums(ledger, entry({ a: 1 }))).toBeUndefined();
  });
});

describe("RedisLedger", () => {
  const shared = shareTestStore("redis");
  let prefixes = 0;

  function opener() {
    prefixes += 1;
    const keyPrefix = `ledger${prefixes}:`;
    const open = (): ShadowLedger => {
      const { background: connection } = shared.opened.connections;
      return new RedisLedger({ connection, clock: realClock, random: systemRandom, keyPrefix });
    };
    return { open, registries: `${keyPrefix}{fleet}:shadow:r1` };
  }

  describeLedger(() => opener().open());

  it("adds up what several replicas count", async () => {
    const { open } = opener();
    const [one, other] = [open(), open()];
    await one.add(entry({ a: 1 }, { begins: true }));
    await other.add(entry({ a: 10 }));
    expect(await sums(one, entry({ a: 100 }))).toEqual({ a: 111 });
  });

  it("keeps the registries for an hour from the last time that somebody has looked", async () => {
    const { open, registries } = opener();
    const ledger = open();
    await ledger.add(entry({ a: 1 }, { begins: true }));
    await shared.control.expire(registries, 10);
    await ledger.add(entry({ a: 1 }));
    expect(await shared.control.ttl(registries)).toBeLessThanOrEqual(10);
    await ledger.add(entry({ a: 1 }, { isLookedAt: true }));
    expect(await shared.control.ttl(registries)).toBeGreaterThan(ledgerKeptSeconds - 60);
    await shared.control.del(registries);
    expect(await sums(ledger, entry({ a: 1 }))).toBeUndefined();
  });
});
