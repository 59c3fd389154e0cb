import { describe, expect, it } from "vitest";
import { QuotaAccount } from "../../../../src/core/quota/quota-account.js";
import { QuotaStore } from "../../../simulation/quota-store.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { seedsFrom } from "../../../support/seeds.js";

const limit = { hits: 100, periodUs: 1_000_000, burst: 100 };
const settings = { limits: [limit], ttlMs: 10_000, callsShare: 0 };
const hz = 1_000_000;

/** One that leases all that there is, and knows a level. */
function accountOf(level: number, callsShare = 0): QuotaAccount {
  const account = new QuotaAccount({ ...settings, callsShare }, 0);
  account.lease(account.rateMicroHzMax, 0);
  account.charged({ hits: 0, levels: [level] }, 0);
  return account;
}

describe("QuotaAccount", () => {
  it("charges use as it goes on, in whole hits", () => {
    const account = accountOf(0);
    account.estimate(2.5 * hz, 0);
    expect([account.take(1_000), account.take(1_000), account.take(2_000)]).toEqual([2, 0, 3]);
  });

  it("charges at once what was used beyond it", () => {
    const account = accountOf(0);
    account.owe(7.25);
    expect(account.take(0)).toBe(7);
  });

  it("pays from what is prepaid first, whoever uses it", () => {
    const account = accountOf(100);
    account.prepay(30, 0);
    account.estimate(50 * hz, 0);
    expect([500, 600, 700].map((nowMs) => account.take(nowMs))).toEqual([0, 0, 5]);
  });

  it("gives up what is prepaid beyond what is still in the level", () => {
    const account = accountOf(20);
    account.prepay(50, 0);
    account.owe(50);
    account.accrue(0);
    expect(account.take(0)).toBe(30);
    const late = accountOf(20);
    late.prepay(20, 0);
    late.accrue(150);
    late.owe(20);
    expect(late.take(150)).toBe(15);
  });

  it("credits nothing before it knows a level", () => {
    const account = new QuotaAccount(settings, 0);
    account.lease(account.rateMicroHzMax, 0);
    account.prepay(50, 0);
    account.owe(10);
    expect(account.take(0)).toBe(10);
  });

  it("keeps what the store has no room for, where callers use the limit too", () => {
    const account = accountOf(150, 0.1);
    account.owe(500);
    expect(account.take(0)).toBe(50);
    account.charged({ hits: 50, levels: [200] }, 0);
    expect(account.take(0)).toBe(0);
    expect(account.take(1_000)).toBe(100);
  });

  it("lets it go where nobody else does", () => {
    const account = accountOf(150);
    account.owe(500);
    expect(account.take(0)).toBe(500);
  });

  it("charges again what the store missed, but for what would have drained meanwhile", () => {
    const account = accountOf(0);
    account.owe(500);
    const hits = account.take(0);
    account.missed(hits, 0);
    expect(account.take(2_000)).toBe(300);
  });

  it("lets only its own part of that go where others lease the rest", () => {
    const account = accountOf(0);
    account.lease(account.rateMicroHzMax / 4, 0);
    account.owe(500);
    account.missed(account.take(0), 0);
    expect(account.take(2_000)).toBe(450);
  });

  it("hands out the rate before it knows a level, and less for what waits to be charged", () => {
    const account = new QuotaAccount(settings, 0);
    expect(account.ceilingMicroHz(0)).toBeCloseTo(100 * hz, -6);
    account.charged({ hits: 0, levels: [0] }, 0);
    const empty = account.ceilingMicroHz(0);
    account.owe(50);
    expect(account.ceilingMicroHz(0)).toBeLessThan(empty - 3 * hz);
  });

  it("wants to know the level each second while hits are used, else each five", () => {
    const account = accountOf(0);
    expect([account.wantsLevel(4_999), account.wantsLevel(5_000)]).toEqual([false, true]);
    account.estimate(hz, 0);
    expect([account.wantsLevel(999), account.wantsLevel(1_000)]).toEqual([false, true]);
  });

  it.each(seedsFrom(1, 50))(
    "lets no interval have more than its rate, the level and what is unknown (seed %i)",
    (seed) => expect(excessOf(seed)).toBeLessThan(0.01),
  );
});

/**
 * Holders whose use is anything from nothing to twice its estimate, reported now and then: by how
 * much what was admitted passes `rate * t + level + V + A`, with V what was admitted and is not
 * charged, and A the most that was ever charged ahead of a report.
 */
function excessOf(seed: number): number {
  const random = new FakeRandom(seed);
  const store = new QuotaStore(limit);
  // What the store lets go above two bursts is another bound's business.
  const account = new QuotaAccount({ ...settings, callsShare: 0.1 }, 0);
  account.lease(account.rateMicroHzMax, 0);
  let ideal = 0;
  let admitted = 0;
  let unreported = 0;
  let estimate = 0;
  let charged = 0;
  let ahead = 0;
  let worst = Number.NEGATIVE_INFINITY;
  for (let nowMs = 100; nowMs < 120_000; nowMs += 100) {
    const used = (random.next() * 2 * estimate + (random.next() < 0.1 ? 40 : 0)) / 10;
    unreported += used;
    admitted += used;
    ideal = Math.max(0, ideal - 10) + used;
    charged += estimate / 10;
    ahead = Math.max(ahead, charged - unreported);
    if (random.next() < 0.05) {
      account.accrue(nowMs);
      if (unreported > charged) account.owe(unreported - charged);
      else account.prepay(charged - unreported, nowMs);
      const next = random.next() < 0.3 ? 0 : random.next() * 120;
      account.estimate((next - estimate) * hz, nowMs);
      estimate = next;
      unreported = 0;
      charged = 0;
    }
    const hits = account.take(nowMs);
    account.charged({ hits, levels: [store.settle(hits, nowMs)] }, nowMs);
    const [known = 0] = account.levels(nowMs) ?? [];
    const open = Math.max(0, unreported - charged);
    worst = Math.max(worst, ideal - known - open - ahead - 1);
  }
  expect(admitted).toBeGreaterThan(100);
  return worst;
}
