import { systemClock, systemRandom } from "../../src/host/clock.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { type CallShape, decideMany } from "./calls.js";
import {
  cpuUsPer,
  createHandler,
  createPolicy,
  createThrottle,
  type InProcessRow,
  type InProcessScenario,
  measureParts,
} from "./in-process.js";
import type { Comparison } from "./targets.js";
import { throttleMany } from "./throttle-calls.js";

/** Rows that took turns, and what they are to each other. */
export interface InTurn {
  readonly rows: readonly InProcessRow[];
  readonly comparisons: readonly Comparison[];
}

/** Rounds of all rows in turn: what disturbs the machine disturbs all of them. */
const roundCount = 15;

/** The fewest decisions of a turn: what other rows left in the caches is forgotten by then. */
const turnDecisionsMin = 20_000;

/**
 * Measures decisions with the embedded store, each row with a store of its own. A row says the
 * median of its turns; a comparison the median of what two rows were to each other in each round.
 */
export async function measureInTurn(
  scenarios: readonly InProcessScenario[],
  decisionCount: number,
): Promise<InTurn> {
  const perTurn = Math.max(turnDecisionsMin, Math.ceil(decisionCount / roundCount));
  const sides = scenarios.map((scenario) => new Side(scenario));
  // Every key once, so that the rows are about keys in use and not about new ones.
  for (const side of sides) await side.decide(Math.max(decisionCount / 4, side.scenario.keyCount));
  for (let round = 0; round < roundCount; round += 1) {
    for (const side of sides) side.turnsUs.push(await side.decide(perTurn));
  }
  const rows: InProcessRow[] = [];
  for (const { scenario, turnsUs } of sides) {
    const wholeUs = median(turnsUs);
    const row = { name: scenario.name, cpuUsPerDecision: wholeUs };
    const hasParts = scenario.hasParts === true;
    rows.push(
      hasParts ? { ...row, parts: await measureParts(scenario, { decisionCount, wholeUs }) } : row,
    );
  }
  return { rows, comparisons: compare(sides) };
}

/** A scenario with its own service and store, going on with the next keys at each turn. */
class Side {
  readonly scenario: InProcessScenario;
  readonly turnsUs: number[] = [];
  readonly #ask: (shape: CallShape, count: number) => Promise<void>;
  #first = 0;

  constructor(scenario: InProcessScenario) {
    this.scenario = scenario;
    const parts = { clock: systemClock, random: systemRandom, keysMax: 4_000_000 };
    const store = new MemoryLimitStore(parts);
    if (scenario.isThrottle === true) {
      const answer = createThrottle(store);
      this.#ask = (shape, count) => throttleMany(answer, shape, count);
    } else {
      const handle = createHandler(createPolicy(scenario), store);
      this.#ask = (shape, count) => decideMany(handle, shape, count);
    }
  }

  /** CPU of one of so many decisions, in microseconds. */
  async decide(count: number): Promise<number> {
    const shape = { ...this.scenario, first: this.#first };
    this.#first += count;
    return cpuUsPer(count, () => this.#ask(shape, count));
  }
}

/**
 * One key stands apart: all of its calls in flight are asked of the store once, so it is cheap
 * because it is one, and not because keys cost.
 */
const comparedRows = [
  ["200 keys", "20,000 keys", "20,000 distinct keys, of 200", "at most 1.3"],
  ["200 keys", "1,000,000 keys", "1,000,000 distinct keys, of 200", "at most 1.3"],
  ["20,000 keys", "1,000,000 keys", "1,000,000 distinct keys, of 20,000", "at most 1.3"],
  ["20,000 keys", "20,000 keys, 10,000 rules", "10,000 rules, of one", "at most 1.3"],
  ["20,000 keys", "20,000 keys, two limits", "two limits on a request, of one", "at most 1.7"],
  ["20,000 keys", "20,000 keys, CL.THROTTLE", "a CL.THROTTLE, of a rate limit", "at most 1"],
  ["200 keys", "1 key", "one hot key, of 200 keys", "below 1"],
] as const;

function compare(sides: readonly Side[]): readonly Comparison[] {
  return comparedRows.flatMap(([baseName, name, what, target]) => {
    const base = sides.find(({ scenario }) => scenario.name === baseName);
    const side = sides.find(({ scenario }) => scenario.name === name);
    if (base === undefined || side === undefined) return [];
    const ratios = side.turnsUs.map((us, round) => us / (base.turnsUs[round] ?? 1));
    return [{ what: `in process: ${what}`, target, measured: median(ratios).toFixed(2) }];
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
