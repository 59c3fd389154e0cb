import { fadingInput, Gate, type GateSettings, type GateState } from "../../core/admission/gate.js";
import type { ServiceQueue } from "../../core/feedback/feedback-pressure.js";
import type { ServicePressure } from "./report-format.js";

/** What holds for the gate of a service, over the fleet. */
export interface GateVerdict {
  /** The share of the fleet's requests that the expected wait would refuse now, 0 to 1. */
  readonly rejectRatio: number;
  readonly state: GateState;
}

/**
 * The gates of all services, as the leader moves them once a second: with one input and one memory
 * for the whole fleet, where gates of single replicas would each stand elsewhere.
 *
 * The input is the mean of the replicas' reject probabilities, weighted by the permits that each
 * may have in use: those are divided by need, so that they stand for how many requests each meets.
 *
 * Example: 0.9 at a replica with 30 permits and 0.1 at one with 10 make 0.7.
 */
export class FleetGates {
  #gates = new Map<string, Gate>();

  /** @param before what the last leader decided: a gate goes on from there */
  constructor(before: ReadonlyMap<string, GateVerdict> = new Map()) {
    for (const [service, { rejectRatio, state }] of before) {
      const gate = new Gate();
      gate.follow(rejectRatio, state);
      this.#gates.set(service, gate);
    }
  }

  /**
   * One second has passed. A service of which nobody told anything has no verdict.
   *
   * @param settings of services that have a gate
   */
  update(
    pressures: ReadonlyMap<string, FleetPressure>,
    settings: ReadonlyMap<string, GateSettings>,
  ): ReadonlyMap<string, GateVerdict> {
    const gates = new Map<string, Gate>();
    const verdicts = new Map<string, GateVerdict>();
    for (const [service, { rejectRatio: now }] of pressures) {
      const wanted = settings.get(service);
      if (wanted === undefined) continue;
      const gate = this.#gates.get(service) ?? new Gate(wanted);
      gate.change(wanted);
      const rejectRatio = fadingInput(gate, now);
      gate.update(rejectRatio);
      gates.set(service, gate);
      verdicts.set(service, { rejectRatio, state: gate.state });
    }
    this.#gates = gates;
    return verdicts;
  }
}

/** What the replicas tell of one service, together. */
export interface FleetPressure extends ServiceQueue {
  /** See `FleetGates`. */
  readonly rejectRatio: number;
}

/**
 * Adds up what replicas tell, by service: who waits, and the means by weight of the reject
 * probability and of how long a request is in work.
 */
export function addPressures(
  pressures: Iterable<ServicePressure>,
): ReadonlyMap<string, FleetPressure> {
  const byService = new Map<string, ServicePressure[]>();
  for (const pressure of pressures) {
    const known = byService.get(pressure.service);
    if (known === undefined) byService.set(pressure.service, [pressure]);
    else known.push(pressure);
  }
  const sums = new Map<string, FleetPressure>();
  for (const [service, reported] of byService) {
    sums.set(service, {
      waitingCount: reported.reduce((sum, { waitingCount }) => sum + waitingCount, 0),
      rejectRatio: meanByWeight(reported, ({ rejectRatio }) => rejectRatio) ?? 0,
      serviceMs: meanByWeight(reported, ({ serviceMs }) => serviceMs),
    });
  }
  return sums;
}

/** Of those that know it. Who holds no permits counts like one with a single one. */
function meanByWeight(
  reported: readonly ServicePressure[],
  of: (pressure: ServicePressure) => number | undefined,
): number | undefined {
  let sum = 0;
  let weights = 0;
  for (const pressure of reported) {
    const value = of(pressure);
    if (value === undefined) continue;
    const weight = Math.max(1, pressure.weight);
    sum += weight * value;
    weights += weight;
  }
  return weights === 0 ? undefined : sum / weights;
}
