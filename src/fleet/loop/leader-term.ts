import type { GateSettings } from "../../core/admission/gate.js";
import type {
  NodeReport,
  ServiceRemainder,
  ServiceSamples,
  ShareSnapshot,
} from "../../core/feedback/feedback.js";
import type { ServiceQueue } from "../../core/feedback/feedback-pressure.js";
import { addPressures, FleetGates, type FleetPressure, type GateVerdict } from "./fleet-gates.js";
import type { ServicePressure } from "./report-format.js";
import { eachRow, type ReadReport } from "./report-reader.js";
import { ReportScale } from "./report-scale.js";
import type { FleetSnapshot } from "./snapshot-codec.js";

/** Decides limits and shares; see `FleetLoop` of the core. */
export interface Allocator {
  /** Notes the requests that wait for a service now. */
  noteQueue(service: string, queue: ServiceQueue, nowMs: number): void;
  /**
   * Takes the report of a node. Reports of one node come in order, as far as it is known. The
   * caller may change the report afterwards.
   */
  take(report: NodeReport, nowMs: number): void;
  /** Takes what nodes of one service measured together, after their reports. */
  takeSamples(samples: ServiceSamples): void;
  /** Takes what was rounded off the numbers of a service's nodes. */
  takeRemainder(remainder: ServiceRemainder): void;
  /**
   * Decides once a second, in turns. Nothing else is called before it ends.
   *
   * @returns a snapshot of the term, with a version above that of the previous one
   */
  update(nowMs: number): Generator<undefined, ShareSnapshot>;
}

/** Initial state of a new leader. */
export interface TermStart {
  /** From 1. */
  readonly term: number;
  /** Lower-case hexadecimal. */
  readonly leaderId: string;
  readonly nowMs: number;
  /** Decisions of the last leader. Only its limits if the rest is no longer valid. */
  readonly lastSnapshot: ShareSnapshot | undefined;
}

/** Parameters of a `LeaderTerm`. */
export interface LeaderTermParts extends Omit<TermStart, "lastSnapshot"> {
  readonly createMaker: (start: TermStart) => Allocator;
  /** Settings of services that have a gate, by name of the service. */
  readonly gateSettings: () => ReadonlyMap<string, GateSettings>;
  /** Decisions of the last leader. Only its limits if the rest is no longer valid. */
  readonly last: FleetSnapshot | undefined;
}

/** All decisions while one replica leads without interruption. */
export class LeaderTerm {
  readonly term: number;
  readonly #maker: Allocator;
  readonly #gates: FleetGates;
  readonly #gateSettings: LeaderTermParts["gateSettings"];
  readonly #scale = new ReportScale();

  constructor({ term, leaderId, nowMs, createMaker, gateSettings, last }: LeaderTermParts) {
    this.term = term;
    this.#maker = createMaker({ term, leaderId, nowMs, lastSnapshot: last?.snapshot });
    this.#gates = new FleetGates(last?.verdicts);
    this.#gateSettings = gateSettings;
  }

  /** Takes the reports of a replica's nodes, in turns. @param source the replica */
  *take(report: ReadReport, source: string, nowMs: number): Generator<undefined, void> {
    const maker = this.#maker;
    yield* eachRow(report, this.#scale, (row) => maker.take(row, nowMs));
    for (const samples of report.samples) maker.takeSamples(samples);
    const { atMs } = report;
    for (const remainder of report.remainders) maker.takeRemainder({ ...remainder, source, atMs });
  }

  /**
   * Decides once a second, in turns.
   *
   * @param pressures of all replicas, the latest of each
   */
  *decide(
    pressures: readonly ServicePressure[],
    nowMs: number,
  ): Generator<undefined, FleetSnapshot> {
    const fleet = addPressures(pressures);
    for (const [service, queue] of fleet) this.#maker.noteQueue(service, queue, nowMs);
    const snapshot = yield* this.#maker.update(nowMs);
    return { snapshot, verdicts: this.#verdicts(snapshot, fleet) };
  }

  /** If Envoys report for a service, the loop decides for it, and its gate state applies. */
  #verdicts(
    { services }: ShareSnapshot,
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
