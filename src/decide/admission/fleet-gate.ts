import type { Gate, GateSettings, GateState } from "../../core/admission/gate.js";

/** A gate as the fleet has it. */
interface FleetGate {
  /** The share of the fleet's requests that the expected wait would refuse, 0 to 1. */
  readonly rejectRatio: number;
  readonly state: GateState;
}

/** A service's gate as the fleet has it; undefined: a process goes by what it sees itself. */
export type ReadFleetGate = (service: string) => FleetGate | undefined;

/** What holds for a service's gate, where an operator has changed it; `own` is the policy's. */
export type ReadGateSettings = (service: string, own: GateSettings) => GateSettings;

/** Gives a gate other thresholds where they are others. */
export function setGate(gate: Gate, settings: GateSettings): void {
  const { openBelowRatio, closeAboveRatio, passAtCloseRatio } = gate.settings;
  if (
    settings.openBelowRatio === openBelowRatio &&
    settings.closeAboveRatio === closeAboveRatio &&
    settings.passAtCloseRatio === passAtCloseRatio
  ) {
    return;
  }
  // Whoever made them has refused what the gate would.
  gate.change(settings);
}

/**
 * Moves a gate for another second: to where the fleet has it, and by what is seen here where nobody
 * says that.
 *
 * @param ownRatio the share of requests that the expected wait would refuse here
 */
export function moveGate(gate: Gate, reported: FleetGate | undefined, ownRatio: number): void {
  if (reported === undefined) gate.update(ownRatio);
  else gate.follow(reported.rejectRatio, reported.state);
}
