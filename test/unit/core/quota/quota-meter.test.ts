import { describe, expect, it } from "vitest";
import type {
  QuotaHolder,
  QuotaPoolSettings,
  QuotaUsage,
} from "../../../../src/core/quota/quota.js";
import { QuotaHolders } from "../../../../src/core/quota/quota-holders.js";
import { QuotaPool } from "../../../../src/core/quota/quota-pool.js";

const hz = 1_000_000;
const million = 1_000_000;

/** What is charged at most is what was assigned, and a few hits more. */
const limited: QuotaPoolSettings = {
  mode: "limited",
  limits: [{ hits: 100, periodUs: 1_000_000, burst: 100 }],
  ttlMs: 10_000,
  callsShare: 0,
};

/** What a single identity may say that it let pass before it was told anything. */
const openHitsMax = 700;

function poolOf(): QuotaPool {
  const pool = new QuotaPool({ settings: limited, holders: new QuotaHolders(), nowMs: -1_000 });
  pool.lease({ rateMicroHz: 100 * hz, untilMs: 10_000_000, elsewhere: [] }, -1_000);
  return pool;
}

function joined(pool: QuotaPool, nowMs: number, identity = "fleet"): QuotaHolder {
  const holder = pool.join({ weight: 1, identity }, nowMs);
  if (holder === undefined) throw new Error("no room");
  return holder;
}

function used(allowedHits: number, elapsedMs = 5_000): QuotaUsage {
  return { allowedHits, deniedHits: 0, elapsedMs };
}

/** One that has been told its share, and has reported since that it used nothing. */
function assigned(pool: QuotaPool): QuotaHolder {
  const holder = joined(pool, 0);
  pool.report(holder, used(0, 0), 0);
  pool.answer(holder, 0);
  pool.report(holder, used(0), 5_000);
  pool.answer(holder, 5_000);
  return holder;
}

describe("QuotaMeter", () => {
  it.each([
    { what: "the time that it is", elapsedMs: 5_000 },
    { what: "an hour", elapsedMs: 3_600_000 },
    { what: "no time", elapsedMs: 0 },
  ])("takes no more in many reports than was assigned, where they tell of $what", (one) => {
    const pool = poolOf();
    const holder = assigned(pool);
    const before = pool.dueHits(10_000);
    for (let i = 0; i < 1_000; i += 1) pool.report(holder, used(million, one.elapsedMs), 10_000);
    // Ten seconds of 100 a second, the bucket, and what the bank may lend once.
    expect(pool.dueHits(10_000) + before).toBeLessThan(1_000 * 1.1 + 200);
  });

  it("takes what an honest Envoy used, also where its reports come late and together", () => {
    const pool = poolOf();
    const holder = assigned(pool);
    const verdicts = [1, 2].map(() => pool.report(holder, used(500), 15_000));
    expect(verdicts).toEqual(["plausible", "plausible"]);
    expect(pool.dueHits(15_000)).toBeGreaterThanOrEqual(1_000);
  });

  it("takes of streams without an assignment what their identity's part brings, once", () => {
    const pool = poolOf();
    for (let i = 0; i < 20; i += 1) {
      expect(pool.report(joined(pool, 0), used(million, 0), 0)).toBe("unassigned");
    }
    const first = pool.dueHits(0);
    expect(first).toBeGreaterThan(600);
    expect(first).toBeLessThan(openHitsMax);
    const other = joined(pool, 0, "other");
    expect(pool.report(other, used(100, 0), 0)).toBe("plausible");
    expect(pool.dueHits(0)).toBe(100);
    // A minute later as much again may be told, for its part of what are two now.
    pool.report(joined(pool, 60_000), used(million, 0), 60_000);
    const again = pool.dueHits(60_000);
    expect(again).toBeGreaterThan(250);
    expect(again).toBeLessThan(openHitsMax / 1.5);
  });

  it("does not forget what an identity told by its leaving", () => {
    const pool = poolOf();
    joined(pool, 0, "other");
    const tell = (nowMs: number): number => {
      const holder = joined(pool, nowMs);
      pool.report(holder, used(million, 0), nowMs);
      pool.leave(holder, nowMs);
      return pool.dueHits(nowMs);
    };
    tell(0);
    pool.rebalance(20_000);
    expect(tell(20_000)).toBeLessThan(openHitsMax / 4);
  });

  it("takes no more of an identity at once, whenever it told that", () => {
    const pool = poolOf();
    const tell = (): number => {
      pool.report(joined(pool, 60_000), used(million, 0), 60_000);
      return pool.dueHits(60_000);
    };
    expect(tell()).toBeGreaterThan(600);
    expect(tell()).toBe(0);
  });

  it.each([
    { title: "a fifth of what may be chance", before: 36, hits: 43, wantedHz: 7.48 },
    { title: "all of what is more than that", before: 36, hits: 50, wantedHz: 10 },
    { title: "a part of few hits", before: 0, hits: 4, wantedHz: 0.32 },
    { title: "all of many hits", before: 0, hits: 10, wantedHz: 2 },
  ])("counts $title: $hits after $before", ({ before, hits, wantedHz }) => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    pool.report(holder, used(before), 5_000);
    pool.report(holder, used(hits), 10_000);
    expect(pool.demandMicroHz / hz).toBeCloseTo(wantedHz, 4);
  });

  it("takes who is denied nothing more to have what it asks for", () => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    const claimed = (): number => pool.claim(10_000).metMicroHz / pool.demandMicroHz;
    pool.report(holder, { allowedHits: 30, deniedHits: 30, elapsedMs: 5_000 }, 5_000);
    expect(claimed()).toBeCloseTo(1.1, 4);
    // Few enough to be chance, and so no other demand.
    pool.report(holder, used(55), 10_000);
    expect(claimed()).toBeCloseTo(1.02, 4);
  });

  it.each([
    { hits: 250, isDue: false },
    { hits: 400, isDue: true },
  ])("has its pool divided soon after another demand: $hits hits, $isDue", ({ hits, isDue }) => {
    const pool = poolOf();
    const holder = assigned(pool);
    for (const nowMs of [10_000, 15_000, 20_000]) {
      pool.report(holder, used(250), nowMs);
      pool.answer(holder, nowMs);
      for (let ms = 250; ms <= 1_000; ms += 250) pool.rebalance(nowMs + ms);
    }
    pool.rebalance(24_900);
    pool.report(holder, used(hits), 25_000);
    expect(pool.isDue(25_200)).toBe(isDue);
  });

  it.each([
    { elapsedMs: 5_000, due: 0 },
    { elapsedMs: -1, due: 30 },
  ])("credits what was not used by a report of $elapsedMs ms: then $due", ({ elapsedMs, due }) => {
    const pool = poolOf();
    const holder = assigned(pool);
    pool.report(holder, used(500), 10_000);
    pool.charged({ hits: pool.dueHits(15_000), levels: [100] }, 15_000);
    pool.report(holder, used(0, elapsedMs), 15_000);
    pool.report(holder, used(30), 15_000);
    expect(pool.dueHits(15_000)).toBe(due);
  });

  it("claims an even share for each of those who have not told what they ask for", () => {
    const pool = poolOf();
    for (const identity of ["one", "other", "third"]) joined(pool, 0, identity);
    const { metMicroHz, hungryMicroHz, ceilingMicroHz } = pool.claim(0);
    expect((metMicroHz + hungryMicroHz) / ceilingMicroHz).toBeCloseTo(1, 5);
  });

  it("takes what an Envoy let pass after its assignment was over", () => {
    const pool = poolOf();
    const holder = assigned(pool);
    pool.rebalance(30_000);
    // All that its assignment could bring, and a little of what was limited by nobody.
    expect(pool.report(holder, used(3_900, 25_000), 30_000)).toBe("plausible");
    expect(pool.report(holder, used(3_900, 0), 30_000)).toBe("too_much");
  });

  it("counts no demand beyond all of the limit when it claims and divides", () => {
    const pool = poolOf();
    const holder = assigned(pool);
    const usage = { allowedHits: 500, deniedHits: Number.MAX_SAFE_INTEGER, elapsedMs: 5_000 };
    pool.report(holder, usage, 10_000);
    const { metMicroHz, hungryMicroHz } = pool.claim(10_000);
    expect(metMicroHz + hungryMicroHz).toBeLessThan(120 * hz);
  });
});
