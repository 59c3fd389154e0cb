import type { QuotaLimit } from "../../src/core/quota/quota.js";
import { FakeRandom } from "../support/fake-random.js";
import { Dice } from "./dice.js";
import type { DemandShape, PoolScenario, QuotaScenario, QuotaWeather } from "./quota-run.js";

const second = 1_000_000;

/** Limits of all kinds: fast, slow, of a small burst, of one that is all there is. */
export const quotaLimits = {
  fast: { hits: 100, periodUs: second, burst: 100 },
  roomy: { hits: 100, periodUs: second, burst: 1_000 },
  tight: { hits: 100, periodUs: second, burst: 10 },
  vast: { hits: 5_000, periodUs: second, burst: 5_000 },
  minutely: { hits: 10, periodUs: 60 * second, burst: 10 },
  lone: { hits: 1, periodUs: second, burst: 1 },
  daily: { hits: 1_000, periodUs: 86_400 * second, burst: 1_000 },
} as const satisfies Readonly<Record<string, QuotaLimit>>;

/** Nothing goes wrong. */
export const fairWeather: QuotaWeather = {
  untilMs: 0,
  lostRatio: 0,
  lateRatio: 0,
  lateMsMax: 1_000,
  envoyDeaths: 0,
  streamBreaks: 0,
  replicaDeaths: 0,
  outages: 0,
};

/** Everything goes wrong, until `untilMs`. */
export function foulWeather(untilMs: number, envoyCount: number): QuotaWeather {
  return {
    untilMs,
    lostRatio: 0.01,
    lateRatio: 0.05,
    lateMsMax: 3_000,
    envoyDeaths: envoyCount / 500,
    streamBreaks: envoyCount / 200,
    replicaDeaths: 1 / 40,
    outages: 1 / 60,
  };
}

/** Hits a second of each bucket, which come to `hz` over all. */
export function demandOf(
  shape: DemandShape,
  { hz, count }: { readonly hz: number; readonly count: number },
): (place: number, nowMs: number) => number {
  const even = hz / count;
  switch (shape) {
    case "even":
      return () => even;
    case "idle":
      return (place) => (place === 0 ? hz / 20 : 0);
    case "bursts":
      return (_, nowMs) => (Math.floor(nowMs / 12_000) % 2 === 0 ? 2 * even : 0);
    case "skewed":
      return (place) => {
        const isBig = place < Math.ceil(count / 10);
        return isBig ? (0.8 * hz) / Math.ceil(count / 10) : (0.2 * hz) / count;
      };
    case "shifting":
      // Two thirds of the buckets are asked at once, others each half a minute.
      return (place, nowMs) => ((place + Math.floor(nowMs / 30_000)) % 3 === 0 ? 0 : 1.5 * even);
  }
}

/** Pools of all limits and shapes over a fleet, as the dice fall. */
export function quotaPools(dice: Dice, { poolCount, holdersMax }: PoolsOrder): PoolScenario[] {
  const limits = Object.values(quotaLimits);
  const shapes: readonly DemandShape[] = ["even", "skewed", "shifting", "idle", "bursts"];
  return Array.from({ length: poolCount }, (): PoolScenario => {
    const limit = dice.pick(limits);
    const count = 1 + dice.below(holdersMax);
    const hz = ((limit.hits * second) / limit.periodUs) * dice.pick([0.3, 0.8, 1.5, 3]);
    const shape = dice.pick(shapes);
    const hasCalls = dice.chance(0.2);
    const isWeighted = dice.chance(0.2);
    return {
      limit,
      callsShare: hasCalls ? 0.1 : 0,
      callsHz: hasCalls ? hz * dice.pick([0.1, 0.5, 1]) : 0,
      weights: Array.from({ length: count }, () => (isWeighted ? dice.pick([1, 3]) : 1)),
      demandHz: demandOf(shape, { hz, count }),
      shape,
    };
  });
}

interface PoolsOrder {
  readonly poolCount: number;
  readonly holdersMax: number;
}

/** A few Envoys in foul weather for a minute. */
export function smallQuotas(seed: number, foulMs = 60_000): QuotaScenario {
  const dice = new Dice(new FakeRandom(seed ^ 0x51_0a_11));
  const envoyCount = 1 + dice.below(12);
  return {
    envoyCount,
    replicaCount: 1 + dice.below(3),
    pools: quotaPools(dice, { poolCount: 8, holdersMax: envoyCount }),
    weather: foulWeather(foulMs, envoyCount),
  };
}

/** 1,000 Envoys and about 10,000 buckets, in foul weather for a while. */
export function bigQuotas(seed: number, foulMs = 60_000): QuotaScenario {
  const dice = new Dice(new FakeRandom(seed ^ 0x51_0a_12));
  return {
    envoyCount: 1_000,
    replicaCount: 3,
    pools: [
      ...quotaPools(dice, { poolCount: 400, holdersMax: 40 }),
      ...quotaPools(dice, { poolCount: 4, holdersMax: 1_000 }),
    ],
    weather: foulWeather(foulMs, 1_000),
  };
}
