import type { Incident } from "../support/simulated-link.js";
import { checkAfterwards } from "./afterwards.js";
import type { AnswerSource } from "./ask.js";
import { type FaultKind, faultKinds, faults } from "./faults.js";
import { Fleet } from "./fleet.js";
import type { Shape } from "./stores.js";

/** Faults begin after this time and before `faultsEndMs`, by which all of them are over. */
const faultsBeginMs = 300;
const faultsEndMs = 3_400;

/** Short stalls, and outages in which the breaker waits its longest. */
const faultMsMaxes = [50, 700, 700, 3_000];

/** The time in which the store must decide again once all faults are over. */
const recoveryMsMax = 1_000;

/** When callers stop asking, and when the last of them must have been answered. */
const callersEndMs = 4_900;
const endMs = callersEndMs + 100;

/** How long callers wait in milliseconds: mostly as Envoy does by default. */
const patiencesMs = [20, 20, 20, 20, 20, Number.POSITIVE_INFINITY, 3, 12, 0];

/** What a run was made of, to see over many that everything was met. */
export interface RunReport {
  readonly seed: number;
  /** What may not happen and did; empty when all is well. */
  readonly violations: readonly string[];
  readonly faults: readonly FaultKind[];
  readonly shape: Shape;
  /** What calls met on their way, and how often. */
  readonly incidents: ReadonlyMap<Incident, number>;
  readonly answersBySource: Readonly<Record<AnswerSource, number>>;
  /** Answers of calls that were asked of the store together with identical ones. */
  readonly togetherCount: number;
}

/** Runs one seed from its beginning to its end; the same seed is the same run. */
export async function runSeed(seed: number): Promise<RunReport> {
  const fleet = new Fleet(seed);
  const struck = scheduleFaults(fleet);
  scheduleCallers(fleet);
  await fleet.time.runUntil(endMs);
  checkAfterwards(fleet, { faults: struck, recoveredMs: faultsEndMs + recoveryMsMax });
  const answersBySource = { store: 0, memory: 0, fallback: 0, nobody: 0 };
  for (const { source } of fleet.answers) answersBySource[source] += 1;
  return {
    seed,
    violations: fleet.violations,
    faults: struck,
    shape: fleet.stores.shape,
    incidents: fleet.incidents,
    answersBySource,
    togetherCount: fleet.answers.filter(({ isMany }) => isMany).length,
  };
}

/** Some kinds of faults, each once or several times; one run in ten has none, one only moves. */
function scheduleFaults(fleet: Fleet): readonly FaultKind[] {
  const { dice, time } = fleet;
  if (dice.chance(0.1)) return [];
  const isMoving = dice.chance(0.1);
  const met = faultKinds.filter((kind) => {
    return isMoving ? kind === "slotsMove" : dice.chance(0.3);
  });
  const struck: FaultKind[] = [];
  for (const kind of met) {
    const count = 1 + dice.below(4);
    for (let i = 0; i < count; i += 1) {
      const atMs = dice.between(faultsBeginMs, faultsEndMs);
      const forMs = Math.min(dice.between(0, dice.pick(faultMsMaxes)), faultsEndMs - atMs);
      time.after(atMs, () => faults[kind](fleet, forMs));
      struck.push(kind);
    }
  }
  return struck;
}

/** Callers ask in bunches, as the calls of one read from a socket come. */
function scheduleCallers(fleet: Fleet): void {
  const { dice, time, queries } = fleet;
  const next = (): void => {
    if (time.nowMs >= callersEndMs) return;
    const live = fleet.liveReplicas();
    const replica = dice.pick(live);
    const queryCount = dice.pick([1, 1, 2, 3]);
    for (let i = 0; i < queryCount; i += 1) {
      const query = dice.chance(0.3) ? dice.pick(queries.slice(0, 1)) : dice.pick(queries);
      const askCount = dice.pick([1, 1, 1, 2, 5, 12]);
      for (let j = 0; j < askCount; j += 1) {
        const isLate = time.nowMs > faultsEndMs;
        replica.ask(query, isLate ? 20 : dice.pick(patiencesMs));
        // A proxy that tries twice asks another replica the same.
        if (dice.chance(0.05)) dice.pick(live).ask(query, 20);
      }
    }
    time.after(dice.between(0.5, 14), next);
  };
  time.after(0, next);
}
