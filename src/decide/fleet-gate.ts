import type { Gate, GateState } from "../core/gate.js";

/** A gate as the fleet has it. */
export interface FleetGate {
  /** The share of the fleet's requests that the expected wait would refuse, 0 to 1. */
  readonly rejectRatio: number;
  readonly state: GateState;
}

/** A service's gate as the fleet has it; undefined: a process goes by what it sees itself. */
export type ReadFleetGate = (service: string) => FleetGate | undefined;

/**
 * Moves a gate for another second: to where the fleet has it, and by what is seen here where nobody
 * says that.
 *
 * @param ownRatio the share of requests that the expected wait would refuse here
 */
export function moveGate(gate: Gate, told: FleetGate | undefined, ownRatio: number): void {
  if (told === undefined) gate.update(ownRatio);
  else gate.follow(told.rejectRatio, told.state);
}
