import fc from "fast-check";
import { type Charge, costHitsMax } from "../../src/core/limits/bucket.js";
import { drainTimeUsMax, hitsMax, type Role } from "../../src/core/limits/limit.js";
import { testKey } from "./charges.js";

/** One key's limit in a random history. */
export type HistoryLimit = Pick<Charge, "hits" | "periodUs" | "burst" | "role" | "peekExhausted">;

/** A cost in words, so that it fits whatever limit and level it meets. */
export type CostWish =
  | { readonly kind: "hits"; readonly hits: number }
  /** A part of the burst, rounded up. */
  | { readonly kind: "burst"; readonly ratio: number; readonly off: number }
  /** What is left at that moment, and `off` more. */
  | { readonly kind: "remaining"; readonly off: number };

/** One charge of a step, on one of the history's limits. */
export interface ChargeWish {
  readonly limit: number;
  readonly cost: CostWish;
  readonly isRefund: boolean;
}

/** Time that passes before a step. */
export type GapWish =
  | { readonly kind: "us"; readonly us: number }
  /** The time in which `hits` hits of a limit drain, rounded up, and `off` us more. */
  | { readonly kind: "drain"; readonly limit: number; readonly hits: number; readonly off: number }
  /** A part of the time in which a full bucket of a limit drains, rounded up. */
  | { readonly kind: "burst"; readonly limit: number; readonly ratio: number };

/** One request of a history. */
export interface Step {
  readonly gap: GapWish;
  readonly charges: readonly ChargeWish[];
}

/** Limits, and what is asked of them in turn. */
export interface History {
  readonly limits: readonly HistoryLimit[];
  readonly steps: readonly Step[];
}

/** The limits of a history at most: few, so that keys meet again. */
export const historyLimitsMax = 3;

const dayUs = 86_400_000_000;
const yearUs = 31_536_000_000_000;

/** Rates at the ends of what a policy may say, rates that no double holds, and everyday ones. */
const rates: fc.Arbitrary<Pick<Charge, "hits" | "periodUs">> = fc.oneof(
  fc.constantFrom(
    { hits: 1, periodUs: yearUs },
    { hits: 1, periodUs: drainTimeUsMax },
    { hits: 7, periodUs: dayUs },
    { hits: 3, periodUs: 10_000 },
    { hits: 10, periodUs: 60_000_000 },
    { hits: 1_000, periodUs: 1_000_000 },
    { hits: hitsMax, periodUs: 1_000_000 },
    { hits: hitsMax, periodUs: 1 },
    { hits: hitsMax, periodUs: drainTimeUsMax },
    { hits: 0, periodUs: 1_000_000 },
  ),
  fc.record({
    hits: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: hitsMax })),
    periodUs: fc.oneof(
      fc.integer({ min: 1, max: 100 }).map((seconds) => seconds * 1_000_000),
      fc.integer({ min: 1, max: drainTimeUsMax }),
    ),
  }),
);

const roles: fc.Arbitrary<Role> = fc.constantFrom(
  "enforce",
  "enforce",
  "shadow",
  "quota",
  "settle",
  "shadowSettle",
  "quotaSettle",
);

/** Bursts from one hit to what drains in ten years; none where nothing drains. */
function burstFor({ hits, periodUs }: Pick<Charge, "hits" | "periodUs">): fc.Arbitrary<number> {
  if (hits === 0) return fc.constant(0);
  const most = (BigInt(drainTimeUsMax) * BigInt(hits)) / BigInt(periodUs);
  const burstMax = Number(most < BigInt(hitsMax) ? most : BigInt(hitsMax));
  const fitting = [1, 2, 5, hits, 3 * hits, Math.ceil(hits / 7), burstMax];
  return fc.oneof(
    fc.constantFrom(...fitting.map((burst) => Math.min(burst, burstMax))),
    fc.integer({ min: 1, max: Math.min(20, burstMax) }),
    fc.integer({ min: 0, max: burstMax }),
  );
}

/** Any limit that a policy may hold. */
export const historyLimits: fc.Arbitrary<HistoryLimit> = rates.chain((rate) =>
  fc.record({
    hits: fc.constant(rate.hits),
    periodUs: fc.constant(rate.periodUs),
    burst: burstFor(rate),
    role: roles,
    peekExhausted: fc.boolean(),
  }),
);

const costs: fc.Arbitrary<CostWish> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<CostWish>({ kind: "hits", hits: 1 }) },
  fc.record({
    kind: fc.constant("hits" as const),
    hits: fc.constantFrom(0, 0, 2, 3, 10, hitsMax, costHitsMax),
  }),
  fc.record({
    kind: fc.constant("burst" as const),
    ratio: fc.constantFrom(0.1, 0.5, 1, 1, 2),
    off: fc.constantFrom(-1, 0, 0, 1),
  }),
  { weight: 3, arbitrary: remainingCosts() },
);

function remainingCosts(): fc.Arbitrary<CostWish> {
  return fc.record({
    kind: fc.constant("remaining" as const),
    off: fc.constantFrom(-1, 0, 0, 1, 1),
  });
}

const limitIndexes = fc.integer({ min: 0, max: historyLimitsMax - 1 });

const gaps: fc.Arbitrary<GapWish> = fc.oneof(
  fc.record({
    kind: fc.constant("us" as const),
    us: fc.constantFrom(0, 0, 1, 3_333, 1_000_000, 10 * yearUs),
  }),
  fc.record({
    kind: fc.constant("drain" as const),
    limit: limitIndexes,
    hits: fc.integer({ min: 1, max: 3 }),
    off: fc.constantFrom(-1, 0, 0, 1),
  }),
  fc.record({
    kind: fc.constant("burst" as const),
    limit: limitIndexes,
    ratio: fc.constantFrom(0.01, 0.3, 1, 2),
  }),
);

/** Histories of up to `stepsMax` requests over up to three keys. */
export function histories(stepsMax: number): fc.Arbitrary<History> {
  const charge = fc.record({
    limit: limitIndexes,
    cost: costs,
    isRefund: fc.constantFrom(false, false, false, false, false, true),
  });
  const charges = fc.oneof(
    fc.array(charge, { minLength: 1, maxLength: 1 }),
    fc.array(charge, { minLength: 1, maxLength: 5 }),
  );
  return fc.record({
    limits: fc.array(historyLimits, { minLength: 1, maxLength: historyLimitsMax }),
    steps: fc.array(fc.record({ gap: gaps, charges }), {
      minLength: 1,
      maxLength: stepsMax,
      size: "max",
    }),
  });
}

/** The limit of an index, which wraps around the limits that a history happens to have. */
export function limitAt(limits: readonly HistoryLimit[], index: number): HistoryLimit {
  const limit = limits[index % limits.length];
  if (limit === undefined) throw new Error("a history has at least one limit");
  return limit;
}

/** The charge on a history's limit; the key is the limit's place. */
export function chargeOn(limits: readonly HistoryLimit[], index: number): Charge {
  const key = testKey(`key ${index % limits.length}`);
  return { ...limitAt(limits, index), key, cost: 1, isRefund: false };
}

/** A wish as hits, 0 to the largest cost. */
export function costHits(wish: CostWish, burst: number, remaining: number): number {
  if (wish.kind === "hits") return wish.hits;
  const wanted =
    wish.kind === "burst" ? Math.ceil(burst * wish.ratio) + wish.off : remaining + wish.off;
  return Math.min(costHitsMax, Math.max(0, wanted));
}

/** A wish as microseconds, never negative, ten years at most. */
export function gapUs(wish: GapWish, limits: readonly HistoryLimit[]): number {
  if (wish.kind === "us") return wish.us;
  const { hits, periodUs, burst } = limitAt(limits, wish.limit);
  if (hits === 0) return 1;
  const drained = wish.kind === "drain" ? wish.hits : Math.ceil(burst * wish.ratio);
  const off = wish.kind === "drain" ? wish.off : 0;
  const us = Math.ceil((drained * periodUs) / hits) + off;
  return Math.min(drainTimeUsMax, Math.max(0, us));
}
