import type { Override } from "../../src/core/limits/override.js";
import { OverrideTable } from "../../src/core/limits/override-table.js";
import { DecisionSampler } from "../../src/decide/inspect/decision-sampler.js";
import { systemClock, systemRandom } from "../../src/host/clock.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import type { UnaryHandler } from "../../src/wire/grpc/service.js";
import { decideMany } from "./calls.js";
import { cpuUsPer, createHandler, createPolicy, type Watched } from "./in-process.js";

/** What it costs a decision that operators see keys and may give them other limits. */
export interface WatchedRow {
  readonly name: string;
  /** CPU of this process for one decision, in microseconds, without and with it. */
  readonly withoutUs: number;
  readonly withUs: number;
}

/**
 * Rounds of each side in turn, of each order: what disturbs the machine disturbs both. Whichever
 * side is filled last has the worse places in memory, up to a tenth with a million keys, so each
 * side is that one once.
 */
const roundCount = 12;

/** Of the keys that are asked about, one in so many has another limit. */
const overriddenOneIn = 20;

/** As many as there may be (`recordsMax`). */
const overrideCount = 100_000;

/** The rows of the bench. */
const keyCounts: readonly number[] = [1, 20_000, 1_000_000];

/** Measures the same decisions with nobody who sees them, and with sketches and overrides. */
export async function measureWatched(
  decisionCount: number,
  only: string,
): Promise<readonly WatchedRow[]> {
  const rows: WatchedRow[] = [];
  for (const keyCount of keyCounts) {
    const name = `${keyCount.toLocaleString("en-US")} ${keyCount === 1 ? "key" : "keys"}`;
    if (!`in process, watched, ${name}`.includes(only)) continue;
    process.stderr.write(`in process, watched, ${name} ...\n`);
    rows.push({ name, ...(await measureOne({ name, keyCount }, decisionCount)) });
  }
  return rows;
}

async function measureOne(
  scenario: Scenario,
  decisionCount: number,
): Promise<Pick<WatchedRow, "withoutUs" | "withUs">> {
  const figures: Figures = { without: [], with: [] };
  await measureOrder({ scenario, decisionCount, figures }, ["without", "with"]);
  await measureOrder({ scenario, decisionCount, figures }, ["with", "without"]);
  return { withoutUs: lowerQuartile(figures.without), withUs: lowerQuartile(figures.with) };
}

interface Scenario {
  readonly name: string;
  readonly keyCount: number;
}

/** CPU of decisions, a round each. */
type Figures = Readonly<Record<"without" | "with", number[]>>;

interface Measurement {
  readonly scenario: Scenario;
  readonly decisionCount: number;
  readonly figures: Figures;
}

async function measureOrder(
  { scenario, decisionCount, figures }: Measurement,
  order: readonly (keyof Figures)[],
): Promise<void> {
  const overrides = createOverrides(scenario.keyCount);
  const seen = new DecisionSampler({ clock: systemClock, random: systemRandom });
  const watched: Readonly<Record<keyof Figures, Watched>> = {
    without: {},
    with: { observers: [seen], overrides: { current: () => overrides } },
  };
  const perRound = Math.ceil(decisionCount / (2 * roundCount));
  const sides = order.map((kind) => ({ kind, ...createSide(watched[kind]) }));
  for (const { handle } of sides) {
    await decideMany(handle, scenario, Math.max(decisionCount / 4, scenario.keyCount));
  }
  for (let round = 0; round < roundCount; round += 1) {
    for (const { kind, handle } of sides) {
      figures[kind].push(await cpuUsPer(perRound, () => decideMany(handle, scenario, perRound)));
    }
  }
  for (const { store } of sides) await store.close();
}

function createSide(watched: Watched): {
  readonly handle: UnaryHandler;
  readonly store: MemoryLimitStore;
} {
  const store = new MemoryLimitStore({ clock: systemClock, keysMax: 4_000_000 });
  return {
    handle: createHandler(createPolicy({ name: "watched", keyCount: 1 }), store, watched),
    store,
  };
}

function createOverrides(keyCount: number): OverrideTable {
  const overrides = Array.from({ length: overrideCount }, (_, i): Override => {
    const user = i * overriddenOneIn < keyCount ? i * overriddenOneIn : 1_000_000 + i;
    return {
      id: `override-${i}`,
      domain: "bench",
      entries: [{ key: "user", value: `user-${String(user).padStart(7, "0")}` }],
      isPrefix: false,
      effect: { kind: "multiplier", by: 0.5 },
      reason: "bench",
      author: "bench",
      createdEpochMs: i,
    };
  });
  return new OverrideTable(overrides, 1, 0);
}

/** The rounds that were disturbed least: the slowest of the best quarter. */
function lowerQuartile(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 4)] ?? 0;
}
