import type { NodeReport, ShareSheet } from "../../core/feedback/feedback.js";
import type { GateSettings } from "../../core/settings/admission-settings.js";
import {
  addPressures,
  FleetGates,
  type FleetPressure,
  type GateVerdict,
  type SheetQueue,
} from "./fleet-gates.js";
import type { ServicePressure } from "./report-codec.js";
import type { FleetSheet } from "./sheet-codec.js";

/** What decides limits and shares; see `FleetLoop` of the core. */
export interface SheetMaker {
  /** Requests that wait before a service now. */
  noteQueue(service: string, queue: SheetQueue, nowMs: number): void;
  /**
   * Once a second.
   *
   * @param reports of the nodes that have told something since the last call
   * @returns a sheet of the reign, with a version above that of the one before
   */
  update(reports: readonly NodeReport[], nowMs: number): ShareSheet;
}

/** What one who begins to lead begins with. */
export interface ReignStart {
  /** From 1. */
  readonly epoch: number;
  /** Lower-case hexadecimal. */
  readonly leaderId: string;
  readonly nowMs: number;
  /** What the last leader decided; limits alone where it holds no more. */
  readonly lastSheet: ShareSheet | undefined;
}

/** What a `Reign` is made of. */
export interface ReignParts extends Omit<ReignStart, "lastSheet"> {
  readonly createMaker: (start: ReignStart) => SheetMaker;
  /** Of services that have a gate, by name. */
  readonly gateSettings: () => ReadonlyMap<string, GateSettings>;
  /** What the last leader decided; limits alone where it holds no more. */
  readonly last: FleetSheet | undefined;
}

/** All that is decided while one replica leads without a break. */
export class Reign {
  readonly epoch: number;
  readonly #maker: SheetMaker;
  readonly #gates: FleetGates;
  readonly #gateSettings: ReignParts["gateSettings"];

  constructor({ epoch, leaderId, nowMs, createMaker, gateSettings, last }: ReignParts) {
    this.epoch = epoch;
    this.#maker = createMaker({ epoch, leaderId, nowMs, lastSheet: last?.sheet });
    this.#gates = new FleetGates(last?.verdicts);
    this.#gateSettings = gateSettings;
  }

  /**
   * Once a second.
   *
   * @param pressures of all replicas, as each told them last
   */
  decide(
    reports: readonly NodeReport[],
    pressures: readonly ServicePressure[],
    nowMs: number,
  ): FleetSheet {
    const fleet = addPressures(pressures);
    for (const [service, queue] of fleet) this.#maker.noteQueue(service, queue, nowMs);
    const sheet = this.#maker.update(reports, nowMs);
    return { sheet, verdicts: this.#verdicts(sheet, fleet) };
  }

  /** Where the loop decides for a service, whose Envoys it hears, its word on the gate holds. */
  #verdicts(
    { services }: ShareSheet,
    fleet: ReadonlyMap<string, FleetPressure>,
  ): ReadonlyMap<string, GateVerdict> {
    const settings = this.#gateSettings();
    const verdicts = new Map(this.#gates.update(fleet, settings));
    for (const service of settings.keys()) {
      const known = services.get(service);
      if (known === undefined) continue;
      verdicts.set(service, { rejectRatio: known.rejectRatio, state: known.gate });
    }
    return verdicts;
  }
}
