import { limitHz } from "../../src/core/quota/quota-ceiling.js";
import { mean } from "../support/station.js";
import { type PoolScenario, type PoolSpan, QuotaRun, type QuotaScenario } from "./quota-run.js";

/** Seconds of a run: of foul weather with a while after it, and of the look at what is given. */
export const quotaSeconds = { before: 90, look: 60 } as const;

/** What one seed showed. */
export interface QuotaLook {
  readonly violations: readonly string[];
  /** What was admitted of what the limit brought, of pools where more was asked for. */
  readonly utilisations: readonly number[];
  /** The same of limits with a burst of a hit or two, where single hits are handed out. */
  readonly tinyUtilisations: readonly number[];
  /** Jain's index among equals that wanted more. */
  readonly fairness: readonly number[];
  /** The worst as parts of the bounds. */
  readonly worst: { readonly envelope: number; readonly total: number };
}

/** Bursts up to here are tiny: a share of them is less than one hit. */
const tinyBurst = 2;

/** Fewer hits than this say nothing of parts. */
const hitsMin = 50;

/** Runs a seed: foul weather, then fair, and then looks. */
export function lookAtQuotas(scenario: QuotaScenario, seed: number): QuotaLook {
  const run = new QuotaRun(scenario, seed);
  run.span(quotaSeconds.before);
  const spans = run.span(quotaSeconds.look);
  const utilisations: number[] = [];
  const tinyUtilisations: number[] = [];
  const fairness: number[] = [];
  spans.forEach((span, i) => {
    const pool = scenario.pools[i];
    if (pool === undefined || !isSteadyAndFull(pool)) return;
    const isTiny = pool.limit.burst <= tinyBurst;
    (isTiny ? tinyUtilisations : utilisations).push(utilisation(pool, span));
    if (!isTiny) fairness.push(...fairnessOf(pool, span));
  });
  const { violations, worst } = run;
  return { violations, utilisations, tinyUtilisations, fairness, worst };
}

/** Jain's index: 1 where all have the same, 1/n where one has everything. */
export function jainIndex(values: readonly number[]): number {
  const sum = values.reduce((all, value) => all + value, 0);
  const squares = values.reduce((all, value) => all + value * value, 0);
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares);
}

/** What was admitted of what the limit brought in the look. */
export function utilisation({ limit }: PoolScenario, { allowed }: PoolSpan): number {
  const hits = allowed.reduce((sum, count) => sum + count, 0);
  return hits / (limitHz(limit) * quotaSeconds.look);
}

/** More is asked for than there is, by quotas alone, all the time, and by nobody rarely. */
function isSteadyAndFull(pool: PoolScenario): boolean {
  const isSteady = pool.shape === "even" || pool.shape === "skewed";
  const hz = pool.weights.map((_, place) => pool.demandHz(place, 0));
  const sum = hz.reduce((all, value) => all + value, 0);
  const rate = limitHz(pool.limit);
  const isFull = sum > 1.2 * rate && rate * quotaSeconds.look >= hitsMin;
  return isSteady && isFull && pool.callsHz === 0 && hz.every((value) => value >= 1 / 30);
}

/** Of each weight those that were denied and asked for the same. */
function fairnessOf(pool: PoolScenario, { allowed, denied }: PoolSpan): readonly number[] {
  const groups = new Map<string, number[]>();
  pool.weights.forEach((weight, place) => {
    const hits = allowed[place] ?? 0;
    const asked = hits + (denied[place] ?? 0);
    if ((denied[place] ?? 0) <= 0.1 * asked) return;
    const name = `${weight} ${pool.demandHz(place, 0)}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [hits]);
    else group.push(hits);
  });
  return [...groups.values()]
    .filter((group) => group.length > 1 && mean(group) >= hitsMin / 5)
    .map(jainIndex);
}
