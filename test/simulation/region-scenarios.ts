import type { Limit } from "../../src/core/limits/limit.js";
import type { Dice } from "./dice.js";

export const regionCount = 5;

/** Phases, in each of which demand stays the same. */
export const phaseMs = 4_000;
export const phaseCount = 4;
export const endMs = phaseCount * phaseMs;

/** Faults begin after this time; all are over at the end of the last phase but one. */
const faultsBeginMs = 500;
const faultsEndMs = (phaseCount - 1) * phaseMs;

export const faultKinds = [
  "pairCut",
  "oneWayCut",
  "isolation",
  "storeStopped",
  "storeKilled",
  "loss",
  "restart",
] as const;

export interface RegionFault {
  readonly kind: (typeof faultKinds)[number];
  readonly atMs: number;
  readonly forMs: number;
  readonly region: number;
  readonly other: number;
}

export interface RegionScenario {
  readonly limit: Limit;
  readonly keyCount: number;
  readonly replicaCounts: readonly number[];
  readonly latencyMs: number;
  /** By region: how far its clocks are off. */
  readonly skewsUs: readonly number[];
  readonly faults: readonly RegionFault[];
  /** Hits per second by phase, key and region. */
  readonly demandHz: readonly (readonly (readonly number[])[])[];
  /** By phase and key: the part of the time in which all of the demand comes. */
  readonly dutyRatios: readonly (readonly number[])[];
}

/** Draws one scenario. */
export function drawRegions(dice: Dice): RegionScenario {
  const hz = 10 ** dice.between(1, 3.3);
  const isWindowed = dice.chance(0.25);
  const limit = isWindowed ? windowedLimit(dice, hz) : drainingLimit(dice, hz);
  const keyCount = dice.pick([1, 1, 2]);
  const keys = Array.from({ length: keyCount }, (_, i) => i);
  const phases = Array.from({ length: phaseCount }, (_, i) => i);
  return {
    limit,
    keyCount,
    replicaCounts: perRegion(() => dice.pick([1, 1, 2, 3])),
    latencyMs: dice.between(2, 80),
    skewsUs: drawSkews(dice, isWindowed),
    faults: dice.chance(0.35) ? [] : drawFaults(dice),
    demandHz: phases.map(() => keys.map(() => drawDemand(dice, hz))),
    dutyRatios: phases.map(() => keys.map(() => dice.pick([1, 1, 1, 0.2]))),
  };
}

function drainingLimit(dice: Dice, hz: number): Limit {
  const hits = Math.ceil(hz);
  const burst = Math.max(1, Math.round(hits * dice.pick([0.05, 0.3, 1, 2, 5, 20])));
  return { ...baseLimit, hits, periodUs: 1_000_000, burst };
}

function windowedLimit(dice: Dice, hz: number): Limit {
  const seconds = dice.pick([1, 2, 4, 8]);
  const hits = Math.ceil(hz) * seconds;
  const algorithm = { kind: "fixed_window" } as const;
  return { ...baseLimit, hits, burst: hits, periodUs: seconds * 1_000_000, algorithm };
}

const baseLimit = {
  unit: "second",
  unitMultiplier: 1,
  role: "enforce",
  peek: "debt",
  onStoreFailure: "local",
  spread: "global",
} as const;

/** Hours apart; windows meet only where clocks are nearly the same. */
function drawSkews(dice: Dice, isWindowed: boolean): readonly number[] {
  const isClose = isWindowed && dice.chance(0.7);
  return perRegion(() => Math.floor(dice.between(0, isClose ? 30_000 : 4 * 3_600_000_000)));
}

function drawFaults(dice: Dice): readonly RegionFault[] {
  const count = 1 + dice.below(6);
  return Array.from({ length: count }, () => {
    const atMs = dice.between(faultsBeginMs, faultsEndMs - 100);
    const region = dice.below(regionCount);
    return {
      kind: dice.pick(faultKinds),
      atMs,
      forMs: Math.min(dice.between(50, 4_000), faultsEndMs - atMs),
      region,
      other: (region + 1 + dice.below(regionCount - 1)) % regionCount,
    };
  });
}

function drawDemand(dice: Dice, hz: number): readonly number[] {
  const wholeHz = hz * dice.pick([0.5, 0.9, 1, 1.3, 3]);
  const only = dice.below(regionCount);
  switch (dice.pick(["one", "one", "even", "weighted", "own", "none"] as const)) {
    case "one":
      return perRegion((region) => (region === only ? wholeHz : 0));
    case "even":
      return perRegion(() => wholeHz / regionCount);
    case "weighted": {
      const weights = perRegion(() => dice.between(0, 1) ** 3);
      const sum = weights.reduce((total, one) => total + one, 0.001);
      return weights.map((weight) => (weight / sum) * wholeHz);
    }
    // One region takes what it can get, and the others ask for less than their share.
    case "own":
      return perRegion((region) => (region === only ? 3 * hz : (0.8 * hz) / regionCount));
    case "none":
      return perRegion(() => 0);
  }
}

function perRegion<T>(make: (region: number) => T): readonly T[] {
  return Array.from({ length: regionCount }, (_, region) => make(region));
}
