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

/** What decides limits and shares; see `FleetLoop` of the core. */
export interface Allocator {
  /** Requests that wait before a service now. */
  noteQueue(service: string, queue: ServiceQueue, nowMs: number): void;
  /**
   * What a node has told; those of one node in their order, as far as it is known. The report may
   * be another one afterwards.
   */
  take(report: NodeReport, nowMs: number): void;
  /** What nodes of one service measured together; after what they have told. */
  takeSamples(samples: ServiceSamples): void;
  /** What was rounded off the numbers of a service's nodes. */
  takeRemainder(remainder: ServiceRemainder): void;
  /**
   * Once a second, in turns: nothing else is called before it ends.
   *
   * @returns a snapshot of the term, with a version above that of the one before
   */
  update(nowMs: number): Generator<undefined, ShareSnapshot>;
}

/** What one who begins to lead begins with. */
export interface TermStart {
  /** From 1. */
  readonly term: number;
  /** Lower-case hexadecimal. */
  readonly leaderId: string;
  readonly nowMs: number;
  /** What the last leader decided; limits alone where it holds no more. */
  readonly lastSnapshot: ShareSnapshot | undefined;
}

/** What a `LeaderTerm` is made of. */
export interface LeaderTermParts extends Omit<TermStart, "lastSnapshot"> {
  readonly createMaker: (start: TermStart) => Allocator;
  /** Of services that have a gate, by name. */
  readonly gateSettings: () => ReadonlyMap<string, GateSettings>;
  /** What the last leader decided; limits alone where it holds no more. */
  readonly last: FleetSnapshot | undefined;
}

/** All that is decided while one replica leads without a break. */
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

  /** What the nodes of a replica have told, in turns. @param source the replica */
  *take(report: ReadReport, source: string, nowMs: number): Generator<undefined, void> {
    const maker = this.#maker;
    yield* eachRow(report, this.#scale, (row) => maker.take(row, nowMs));
    for (const samples of report.samples) maker.takeSamples(samples);
    const { atMs } = report;
    for (const remainder of report.remainders) maker.takeRemainder({ ...remainder, source, atMs });
  }

  /**
   * Once a second, in turns.
   *
   * @param pressures of all replicas, as each told them last
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

  /** Where the loop decides for a service, whose Envoys it hears, its word on the gate holds. */
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
