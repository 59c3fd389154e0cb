import { describe, expect, it } from "vitest";
import {
  type QuotaAssignment,
  type QuotaHolder,
  type QuotaPoolSettings,
  type QuotaUsage,
  unlimitedQuotaTtlMs,
} from "../../../../src/core/quota/quota.js";
import { QuotaHolders } from "../../../../src/core/quota/quota-holders.js";
import { QuotaPool, quotaIdleMs } from "../../../../src/core/quota/quota-pool.js";

const hz = 1_000_000;
const limited: QuotaPoolSettings = {
  mode: "limited",
  limits: [{ hits: 100, periodUs: 1_000_000, burst: 100 }],
  ttlMs: 10_000,
  callsShare: 0,
};

/** A pool on a replica that leases 100 hits a second, for as long as a test lasts. */
function poolOf(settings = limited): QuotaPool {
  const pool = new QuotaPool({ settings, holders: new QuotaHolders(), nowMs: -1_000 });
  pool.lease({ rateMicroHz: 100 * hz, untilMs: 1_000_000, elsewhere: [] }, -1_000);
  return pool;
}

function joined(
  pool: QuotaPool,
  nowMs: number,
  { weight = 1, identity = "fleet" } = {},
): QuotaHolder {
  const holder = pool.join({ weight, identity }, nowMs);
  if (holder === undefined) throw new Error("no room");
  return holder;
}

function used(allowedHits: number, deniedHits = 0, elapsedMs = 5_000): QuotaUsage {
  return { allowedHits, deniedHits, elapsedMs };
}

function rateOf(assignment: QuotaAssignment | undefined): number {
  return assignment?.kind === "bucket" ? assignment.rateMicroHz / hz : 0;
}

describe("QuotaPool", () => {
  it("answers a first report at once, with all that is free where nobody else is", () => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    expect(pool.report(holder, used(1, 0, 0), 0)).toBe("plausible");
    expect(rateOf(pool.answer(holder, 0))).toBe(100);
  });

  it("tells the first holder a share with its first lease", () => {
    const pool = new QuotaPool({ settings: limited, holders: new QuotaHolders(), nowMs: 0 });
    const holder = joined(pool, 0);
    pool.report(holder, used(1, 0, 0), 0);
    expect(pool.answer(holder, 0)).toBeUndefined();
    pool.lease({ rateMicroHz: 100 * hz, untilMs: 1_000_000, elsewhere: [] }, 10);
    const assigned = pool
      .rebalance(10)
      .flatMap((one) => (one.kind === "assign" ? one.assignment : []));
    expect(assigned.map(rateOf)).toEqual([100]);
  });

  /** The first holder has all there is, and then the second one comes. */
  function lent(): { pool: QuotaPool; first: QuotaHolder; second: QuotaHolder } {
    const pool = poolOf();
    const first = joined(pool, 0);
    pool.report(first, used(1, 0, 0), 0);
    expect(rateOf(pool.answer(first, 0))).toBe(100);
    const second = joined(pool, 1_000, { identity: "other" });
    pool.report(second, used(1, 0, 0), 1_000);
    expect(pool.answer(second, 1_000)).toBeUndefined();
    return { pool, first, second };
  }

  const assignedOf = (pool: QuotaPool, nowMs: number) =>
    pool.states(nowMs).map(({ assignment }) => assignment);

  const denied = { kind: "blanket", rule: "deny", ttlMs: 10_000 };

  it("tells a newcomer nothing before something fit is given back, while there is room", () => {
    const { pool, first } = lent();
    pool.rebalance(1_250);
    const [kept, none] = assignedOf(pool, 1_250);
    expect(rateOf(kept)).toBeLessThan(60);
    expect(none).toBeUndefined();
    pool.report(first, used(50), 5_000);
    pool.rebalance(5_250);
    expect(rateOf(assignedOf(pool, 5_250)[1])).toBeGreaterThan(40);
  });

  it("denies a newcomer where others ask for all there is", () => {
    const { pool, first, second } = lent();
    pool.report(first, used(450), 4_900);
    pool.report(second, used(60, 0, 1_000), 2_000);
    pool.rebalance(5_000);
    expect(assignedOf(pool, 5_000)[1]).toEqual(denied);
  });

  it("tells a newcomer whatever there is when it has waited for two reports", () => {
    const { pool } = lent();
    pool.lease({ rateMicroHz: 1, untilMs: 1_000_000, elsewhere: [] }, 1_100);
    pool.rebalance(12_900);
    expect(assignedOf(pool, 12_900)[1]).toBeUndefined();
    pool.rebalance(13_100);
    expect(assignedOf(pool, 13_100)[1]).toMatchObject({ kind: "bucket", tokensMax: 1 });
  });

  it("leaves a holder its first share until it has told what it asks for", () => {
    const pool = poolOf();
    const first = joined(pool, 0);
    pool.report(first, used(1, 0, 0), 0);
    pool.answer(first, 0);
    const greedy = joined(pool, 1_000, { identity: "other" });
    pool.report(greedy, used(9_000, 9_000, 1_000), 1_000);
    pool.rebalance(1_250);
    expect(rateOf(assignedOf(pool, 1_250)[0])).toBeGreaterThan(35);
  });

  it("takes a share from who does not use it, and gives it when a report shows that", () => {
    const pool = poolOf();
    const [idle, busy] = [joined(pool, 0), joined(pool, 0)];
    for (const holder of [idle, busy]) pool.answer(holder, 0);
    pool.rebalance(250);
    pool.report(idle, used(0), 5_000);
    pool.report(busy, used(50, 900), 5_000);
    pool.rebalance(5_250);
    const assigned = (): readonly number[] =>
      [idle, busy].map((one) => rateOf(pool.answer(one, 5_300)));
    const [first = 0, second = 0] = assigned();
    expect(first).toBeLessThan(10);
    expect(first + second).toBeLessThan(100);
    expect(pool.rates(5_300).heldMicroHz).toBeLessThanOrEqual(100 * hz);
    pool.report(idle, used(0), 10_000);
    pool.report(busy, used(250, 900), 10_000);
    pool.rebalance(10_250);
    expect(assigned()[1]).toBeGreaterThan(80);
  });

  it("does not take a report for an answer that was on its way too long", () => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    pool.answer(holder, 0);
    pool.report(holder, used(0), 5_000);
    pool.lease({ rateMicroHz: 10 * hz, untilMs: 1_000_000, elsewhere: [] }, 9_000);
    pool.rebalance(9_000);
    // It left Envoy before 9 s, as its own time says, and comes four seconds later.
    pool.report(holder, used(0, 0, 3_500), 12_900);
    expect(pool.rates(12_900).heldMicroHz).toBe(100 * hz);
    pool.report(holder, used(0), 14_000);
    expect(pool.rates(14_000).heldMicroHz).toBeLessThanOrEqual(10 * hz);
  });

  it("keeps the share of a closed stream until its time is over, and knows who is back", () => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    pool.answer(holder, 0);
    expect(pool.leave(holder, 2_000)).toBe(11_000);
    pool.rebalance(10_999);
    expect([pool.holderCount, pool.rates(10_999).heldMicroHz]).toEqual([0, 100 * hz]);
    pool.rejoin(holder, 10_999);
    expect(rateOf(pool.answer(holder, 10_999))).toBe(100);
    pool.leave(holder, 11_000);
    pool.rebalance(30_000);
    expect([pool.countedCount, pool.rates(30_000).heldMicroHz]).toEqual([0, 0]);
  });

  it("counts all that count, and what they want", () => {
    const pool = poolOf();
    const [left, here] = [joined(pool, 0), joined(pool, 0)];
    for (const [holder, hits] of [
      [left, 100],
      [here, 50],
    ] as const) {
      pool.answer(holder, 0);
      pool.report(holder, used(hits), 5_000);
    }
    pool.leave(left, 5_000);
    const wanted = pool.states(5_000).map(({ demandMicroHz }) => demandMicroHz);
    expect([pool.holderCount, pool.countedCount, wanted.length]).toEqual([1, 2, 2]);
    expect(Math.min(...wanted)).toBeGreaterThan(0);
    expect(pool.demandMicroHz).toBe((wanted[0] ?? 0) + (wanted[1] ?? 0));
  });

  it("pays once more for the bucket of an Envoy that has lost it, while the bank lends", () => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    const given = pool.answer(holder, 0);
    const tokens = given?.kind === "bucket" ? given.tokensMax : 0;
    const before = pool.rates(2_000).bankHits;
    pool.leave(holder, 2_000);
    pool.rejoin(holder, 2_000);
    pool.report(holder, used(1, 0, 0), 2_000);
    expect(tokens).toBeGreaterThan(10);
    expect(pool.rates(2_000).bankHits).toBe(before - tokens);
    for (let i = 0; i < 20; i += 1) pool.report(holder, used(1, 0, 0), 2_000);
    expect(pool.rates(2_000).bankHits).toBe(-50);
  });

  it("abandons who was not seen in use for a minute", () => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    for (let nowMs = 0; nowMs < quotaIdleMs; nowMs += 5_000) {
      pool.report(holder, used(0), nowMs);
      pool.answer(holder, nowMs);
      expect(pool.rebalance(nowMs).filter(({ kind }) => kind === "abandon")).toEqual([]);
    }
    expect(pool.rebalance(quotaIdleMs)).toEqual([{ kind: "abandon", holder }]);
  });

  it.each([
    { mode: "denied", rule: "deny" },
    { mode: "unlimited", rule: "allow" },
    { mode: "counted", rule: "allow" },
  ] as const)("tells everybody in a round that it is $mode", ({ mode, rule }) => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    pool.answer(holder, 0);
    pool.configure({ ...limited, mode }, 1_000);
    expect(pool.isDue(1_000)).toBe(true);
    const assignment = { kind: "blanket", rule, ttlMs: unlimitedQuotaTtlMs };
    expect(pool.rebalance(1_000)).toEqual([{ kind: "assign", holder, assignment }]);
    expect(pool.rebalance(1_250)).toEqual([]);
    pool.configure(limited, 2_000);
    expect(pool.rebalance(2_000)[0]).toMatchObject({ kind: "assign" });
  });

  it("counts what passes where everything does", () => {
    const pool = poolOf({ ...limited, mode: "counted" });
    const holder = joined(pool, 0);
    pool.report(holder, used(1, 0, 0), 0);
    pool.answer(holder, 0);
    pool.report(holder, used(5_000), 5_000);
    expect(pool.dueHits(5_000)).toBe(5_001);
  });

  it("says nothing without a lease", () => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    pool.lease({ rateMicroHz: 100 * hz, untilMs: 2_500, elsewhere: [] }, 0);
    expect(pool.answer(holder, 0)).toBeUndefined();
    expect(pool.rebalance(250)).toEqual([]);
  });

  it.each([
    { usage: used(5_000), verdict: "too_much", hits: 1_129 },
    { usage: used(5_000, 0, 3_600_000), verdict: "too_much", hits: 1_129 },
    { usage: used(10, 0, -1), verdict: "elapsed", hits: 10 },
    { usage: used(10, 0, 3_600_001), verdict: "elapsed", hits: 10 },
    { usage: used(500), verdict: "plausible", hits: 500 },
  ])("finds $usage $verdict", ({ usage, verdict, hits }) => {
    const pool = poolOf();
    const holder = joined(pool, 0);
    pool.answer(holder, 0);
    pool.report(holder, used(0), 5_000);
    expect(pool.report(holder, usage, 10_000)).toBe(verdict);
    const due = pool.dueHits(10_000);
    expect(due).toBeGreaterThanOrEqual(hits);
    expect(due).toBeLessThan(hits + 40);
  });

  it("divides by weight", () => {
    const pool = poolOf();
    const gold = joined(pool, 0, { weight: 3 });
    const free = joined(pool, 0);
    for (let nowMs = 0; nowMs <= 40_000; nowMs += 5_000) {
      for (const holder of [gold, free]) {
        pool.report(holder, used(0, 1_000), nowMs);
        pool.answer(holder, nowMs);
      }
      for (let ms = 250; ms <= 1_000; ms += 250) pool.rebalance(nowMs + ms);
    }
    const [three, one] = [gold, free].map((holder) => rateOf(pool.answer(holder, 42_000)));
    expect((three ?? 0) / (one ?? 1)).toBeGreaterThan(2.7);
    expect((three ?? 0) / (one ?? 1)).toBeLessThan(3.3);
  });

  it("gives twenty streams of one identity what one would have", () => {
    const pool = poolOf();
    const alone = joined(pool, 0, { identity: "alone" });
    const many = Array.from({ length: 20 }, () => joined(pool, 0));
    const assigned = new Map<QuotaHolder, number>();
    for (let nowMs = 0; nowMs <= 40_000; nowMs += 5_000) {
      for (const holder of [alone, ...many]) {
        const hits = Math.floor(5 * (assigned.get(holder) ?? 0));
        pool.report(holder, used(hits, holder === alone ? 1_000 : 1_000_000), nowMs);
        assigned.set(holder, rateOf(pool.answer(holder, nowMs)));
      }
      for (let ms = 250; ms <= 1_000; ms += 250) pool.rebalance(nowMs + ms);
    }
    expect(rateOf(pool.answer(alone, 42_000))).toBeGreaterThan(40);
    expect(pool.rates(42_000).heldMicroHz).toBeLessThanOrEqual(100 * hz);
  });

  it("weighs the classes of an identity as those of several", () => {
    const rates = (identities: readonly string[]): readonly number[] => {
      const pool = poolOf();
      const members = identities.map((identity, i) =>
        joined(pool, 0, { identity, weight: i === 0 ? 3 : 1 }),
      );
      for (const holder of members) pool.report(holder, used(0, 1_000, 0), 0);
      return members.map((holder) => rateOf(pool.answer(holder, 0)));
    };
    expect(rates(["one", "one", "third"])).toEqual(rates(["one", "other", "third"]));
  });

  it("hands out hits one by one where a share is less than one a second", () => {
    const limits = [{ hits: 10, periodUs: 60 * hz, burst: 10 }];
    const pool = new QuotaPool({
      settings: { ...limited, limits },
      holders: new QuotaHolders(),
      nowMs: 0,
    });
    pool.lease({ rateMicroHz: hz / 6, untilMs: 1_000_000, elsewhere: [] }, 0);
    const members = Array.from({ length: 20 }, () => joined(pool, 0));
    const hits = new Map<QuotaHolder, number>();
    let given = 0;
    for (let nowMs = 5_000; nowMs <= 605_000; nowMs += 5_000) {
      for (const holder of members) {
        pool.report(holder, used(hits.get(holder) ?? 0, 5), nowMs);
        hits.delete(holder);
        pool.answer(holder, nowMs);
      }
      for (const change of pool.rebalance(nowMs + 250)) {
        if (change.kind !== "assign" || change.assignment.kind !== "bucket") continue;
        hits.set(change.holder, change.assignment.tokensMax);
        given += change.assignment.tokensMax;
      }
    }
    // 100 in ten minutes, but for what is over when everybody has asked.
    expect(given).toBeGreaterThan(85);
    expect(given).toBeLessThanOrEqual(104);
  });

  it("leaves a single hit to who was denied before it came", () => {
    const limits = [{ hits: 10, periodUs: 60 * hz, burst: 10 }];
    const settings = { ...limited, limits };
    const pool = new QuotaPool({ settings, holders: new QuotaHolders(), nowMs: -60_000 });
    pool.lease({ rateMicroHz: hz / 6, untilMs: 1_000_000, elsewhere: [] }, -60_000);
    const holder = joined(pool, 0);
    const isDenied = (nowMs: number): boolean => pool.answer(holder, nowMs)?.kind === "blanket";
    expect(isDenied(0)).toBe(false);
    // Denied until it came, at 0 s; then denied all the time, so that a report is lost.
    pool.report(holder, used(0, 3), 4_000);
    expect(isDenied(4_000)).toBe(false);
    pool.report(holder, used(0, 3), 9_000);
    expect(isDenied(9_000)).toBe(true);
  });

  it("keeps tokens by the smallest burst of several limits", () => {
    const [limit] = limited.limits;
    const limits = [1_000, 10_000].map((burst) => ({ hits: 100, periodUs: hz, ...limit, burst }));
    const pool = poolOf({ ...limited, limits });
    expect(pool.rates(999_999).bankHits).toBeGreaterThan(300);
    expect(pool.rates(999_999).bankHits).toBeLessThanOrEqual(500);
  });

  it("has no room beyond what there may be", () => {
    const holders = new QuotaHolders({ holdersMax: 2 });
    const pool = new QuotaPool({ settings: limited, holders, nowMs: 0 });
    const isRefused = () => pool.join({ weight: 1, identity: "fleet" }, 0) === undefined;
    expect([1, 2, 3].map(isRefused)).toEqual([false, false, true]);
    expect(holders.count).toBe(2);
  });

  it("has no room beyond the bytes that are kept, of all and of one identity", () => {
    const holders = new QuotaHolders({ keptBytesMax: 100, identityPercentMax: 50 });
    const pool = new QuotaPool({ settings: limited, holders, nowMs: 0 });
    const join = (identity: string, bytes: number) => pool.join({ weight: 1, identity, bytes }, 0);
    const first = join("fleet", 40);
    expect([join("fleet", 20), holders.isFullFor("fleet", 20)]).toEqual([undefined, true]);
    expect(join("other", 50)).toBeDefined();
    expect(join("third", 20)).toBeUndefined();
    if (first === undefined) throw new Error("no room");
    const next = join("fleet", 0);
    if (next === undefined) throw new Error("no room");
    holders.handOver(first, next);
    pool.leave(first, 0);
    pool.rebalance(20_000);
    expect(join("third", 20)).toBeUndefined();
    pool.leave(next, 20_000);
    pool.rebalance(40_000);
    expect(join("third", 40)).toBeDefined();
  });

  it("has no room for one identity beyond what that may have, until its own are over", () => {
    const holders = new QuotaHolders({ identityHoldersMax: 2 });
    const pool = new QuotaPool({ settings: limited, holders, nowMs: 0 });
    const join = (identity: string) => pool.join({ weight: 1, identity }, 0);
    const [first] = [join("fleet"), join("fleet")];
    expect([join("fleet"), holders.isFullFor("fleet")]).toEqual([undefined, true]);
    expect(join("other")).toBeDefined();
    if (first === undefined) throw new Error("no room");
    pool.leave(first, 0);
    expect(join("fleet")).toBeUndefined();
    pool.rebalance(20_000);
    expect(join("fleet")).toBeDefined();
  });
});
