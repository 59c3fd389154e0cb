import type { Gate, GateSettings, GateState } from "../../core/admission/gate.js";

/** State of a gate in the whole fleet. */
interface FleetGate {
  /** Fraction of the fleet's requests that the expected wait would refuse, 0 to 1. */
  readonly rejectRatio: number;
  readonly state: GateState;
}

/** Reads a service's gate in the fleet. Undefined: the process uses its own measurements. */
export type ReadFleetGate = (service: string) => FleetGate | undefined;

/** Returns the settings of a gate with operators' changes; `own`: those of the policy. */
export type ReadGateSettings = (service: string, own: GateSettings) => GateSettings;

/** Changes the thresholds of a gate if they differ. */
export function setGate(gate: Gate, settings: GateSettings): void {
  const { openBelowRatio, closeAboveRatio, passAtCloseRatio } = gate.settings;
  if (
    settings.openBelowRatio === openBelowRatio &&
    settings.closeAboveRatio === closeAboveRatio &&
    settings.passAtCloseRatio === passAtCloseRatio
  ) {
    return;
  }
  // Settings that the gate would reject were rejected where they were made.
  gate.change(settings);
}

/**
 * Updates a gate for another second: to the fleet's state or, if that is unknown, from the requests
 * of this process.
 *
 * @param ownRatio the fraction of requests that the expected wait would refuse in this process
 */
export function moveGate(gate: Gate, reported: FleetGate | undefined, ownRatio: number): void {
  if (reported === undefined) gate.update(ownRatio);
  else gate.follow(reported.rejectRatio, reported.state);
}
