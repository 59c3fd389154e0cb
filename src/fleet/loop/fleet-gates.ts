import { fadingInput, Gate, type GateSettings, type GateState } from "../../core/admission/gate.js";
import type { ServiceQueue } from "../../core/feedback/feedback-pressure.js";
import type { ServicePressure } from "./report-format.js";

/** State of the gate of a service, for the whole fleet. */
export interface GateVerdict {
  /** Ratio of the fleet's requests that the expected wait would refuse now, 0 to 1. */
  readonly rejectRatio: number;
  readonly state: GateState;
}

/**
 * The gates of all services, which the leader updates once a second. The whole fleet has one input
 * and one memory, while gates of single replicas would each be in a different state.
 *
 * The input is the mean of the replicas' reject probabilities, weighted by the permits that each
 * may have in use. Permits are divided by need, so they represent how many requests each receives.
 *
 * Example: 0.9 at a replica with 30 permits and 0.1 at one with 10 make 0.7.
 */
export class FleetGates {
  #gates = new Map<string, Gate>();

  /** @param before verdicts of the last leader, from which the gates continue */
  constructor(before: ReadonlyMap<string, GateVerdict> = new Map()) {
    for (const [service, { rejectRatio, state }] of before) {
      const gate = new Gate();
      gate.follow(rejectRatio, state);
      this.#gates.set(service, gate);
    }
  }

  /**
   * Updates the gates after one second. A service without any report has no verdict.
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

/** Combined reports of all replicas about one service. */
export interface FleetPressure extends ServiceQueue {
  /** See `FleetGates`. */
  readonly rejectRatio: number;
}

/**
 * Combines the reports of replicas by service: the sum of waiting requests, and the weighted means
 * of the reject probability and of the service time.
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

/** Averages the known values. A replica without permits weighs as much as one with a single one. */
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
