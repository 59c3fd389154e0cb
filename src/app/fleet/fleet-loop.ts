import type { Clock } from "../../core/base/clock.js";
import type { SignalReading } from "../../core/concurrency/concurrency-limit.js";
import {
  type NodeReport,
  reservedHighOf,
  type ServiceShares,
  type ShareSnapshot,
} from "../../core/feedback/feedback.js";
import { loopTimesFor } from "../../core/feedback/feedback-settings.js";
import type { Admission } from "../../decide/admission/admission.js";
import type { ServiceAdmission } from "../../decide/admission/service-admission.js";
import type { GateVerdict } from "../../fleet/loop/fleet-gates.js";
import type { ServicePressure } from "../../fleet/loop/report-format.js";
import { type LoopCounts, type LoopEvent, SharedLoop } from "../../fleet/loop/shared-loop.js";
import type { HeldSnapshot } from "../../fleet/loop/snapshot-holder.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import type { PolicyFeed } from "../policy/active-policy.js";
import type { OpenStore } from "../store/open-store.js";
import { remedyOf } from "../store/store-remedies.js";
import {
  type ChangedGates,
  gateSettings,
  type KnownReading,
  needsLoop,
  PolicyMaker,
} from "./fleet-maker.js";

interface FleetLoopAppParts {
  readonly config: Pick<Config, "layerTtlMs" | "timings">;
  readonly clock: Clock;
  /** Identifier of this replica, also as the leader. */
  readonly replica: string;
  readonly logger: Logger;
  readonly policies: Pick<PolicyFeed, "current" | "onLoaded">;
  readonly opened: Pick<OpenStore, "coordination">;
  /** Changes of gates by operators. Absent: there are never any. */
  readonly gates?: ChangedGates;
  readonly onBug: (thrown: unknown) => void;
}

/** Current state of the loop, for metrics and people. */
export interface FleetLoopStatus {
  readonly isLeading: boolean;
  /** Undefined: none is valid. */
  readonly snapshot: ShareSnapshot | undefined;
  /** Age of the newest snapshot, valid or not. */
  readonly ageMs: number | undefined;
  readonly counts: LoopCounts;
}

/**
 * This process's part in the fleet's loop. It takes part from the first policy on that has limits
 * for Envoys or a gate: a process that only decides rate limits needs no leader.
 */
export class FleetLoopApp {
  readonly #parts: FleetLoopAppParts;
  readonly #journal: FleetJournal;
  readonly #listeners = new Set<() => void>();
  readonly #readings = new Map<string, KnownReading>();
  readonly #stopFollowing: () => void;
  #admission: Pick<Admission, "services"> | undefined;
  #loop: SharedLoop | undefined;

  constructor(parts: FleetLoopAppParts) {
    this.#parts = parts;
    this.#journal = new FleetJournal(parts.logger);
    this.#follow();
    this.#stopFollowing = parts.policies.onLoaded(() => this.#follow());
  }

  get status(): FleetLoopStatus | undefined {
    const loop = this.#loop;
    if (loop === undefined) return undefined;
    const { isLeading, board, counts } = loop;
    return { isLeading, snapshot: board.current(), ageMs: board.ageMs, counts };
  }

  /** Reads the state of this process's services from `admission` from now on. */
  watch(admission: Pick<Admission, "services">): void {
    this.#admission = admission;
  }

  /** The valid snapshot. Undefined: there is none, or it was not renewed for too long. */
  held(): HeldSnapshot | undefined {
    return this.#loop?.board.held();
  }

  /** Calls back after every new snapshot, until the returned function is called. */
  onSnapshot(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Takes what this replica's Envoys did since the last call. */
  report(reports: readonly NodeReport[]): void {
    this.#loop?.report(reports);
  }

  /** The fleet's verdict on a service's gate. Undefined: this replica uses its own measurements. */
  verdict(service: string): GateVerdict | undefined {
    const loop = this.#loop;
    if (loop === undefined) return undefined;
    // A single process sees its own queues sooner itself; only the loop's verdict adds something.
    const { isShared } = this.#parts.opened.coordination;
    if (!isShared && loop.current()?.services.has(service) !== true) return undefined;
    return loop.board.verdict(service);
  }

  /** Takes a reading of a service's signal. */
  read(service: string, reading: SignalReading): void {
    this.#readings.set(service, { reading });
  }

  /** Leaves the loop, and tells the store if it is reachable. Never rejects. */
  async close(): Promise<void> {
    this.#stopFollowing();
    await this.#loop?.stop();
  }

  #follow(): void {
    const services = this.#parts.policies.current()?.services ?? [];
    for (const name of this.#readings.keys()) {
      if (!services.some((service) => service.name === name)) this.#readings.delete(name);
    }
    if (this.#loop !== undefined || !needsLoop(services)) return;
    this.#loop = this.#open();
    this.#loop.onSnapshot(() => this.#noteSnapshot());
  }

  #open(): SharedLoop {
    const { opened, config, clock, replica, policies, gates, onBug } = this.#parts;
    const changed = gates === undefined ? {} : { gates };
    const times = loopTimesFor(config.layerTtlMs);
    const { isShared, loop: store } = opened.coordination;
    return new SharedLoop({
      store,
      clock,
      id: replica,
      createMaker: (start) =>
        new PolicyMaker({ policies, start, times, readings: this.#readings, ...changed }),
      pressures: () => this.#pressures(),
      gateSettings: () =>
        gateSettings(policies.current()?.services ?? [], (name, own) =>
          gates === undefined ? own : gates.settingsOf(name, own),
        ),
      // As long as Envoys keep the layers that they received.
      ageMsMax: config.layerTtlMs,
      onBug,
      heartbeatMs: config.timings.leaderHeartbeatMs,
      leaseMs: config.timings.leaderLeaseMs,
      // A single process has no other replicas to report to.
      ...(isShared ? { onEvent: (event) => this.#journal.note(event) } : {}),
    });
  }

  #noteSnapshot(): void {
    const snapshot = this.#loop?.current();
    if (snapshot !== undefined && this.#loop?.isLeading === true)
      this.#journal.noteSnapshot(snapshot);
    for (const listener of [...this.#listeners]) listener();
  }

  #pressures(): readonly ServicePressure[] {
    const nowMs = this.#parts.clock.monotonicMs();
    const services = [...(this.#admission?.services() ?? [])];
    return services
      .filter(({ policy }) => policy.admission !== undefined)
      .map((service) => pressureOf(service, nowMs));
  }
}

/** Returns the pressure on a service in this process: that of its pools together. */
export function pressureOf(service: ServiceAdmission, nowMs: number): ServicePressure {
  let weight = 0;
  let waitingCount = 0;
  let served = 0;
  let servedMs = 0;
  for (const { pool } of service.pools.all()) {
    const { waitingCount: waiting, inFlightCount, limit, serviceMs } = pool.state(nowMs);
    // Without a limit no request waits, and all replicas have the same weight.
    weight += limit === Number.POSITIVE_INFINITY ? 1 : limit;
    waitingCount += waiting;
    if (serviceMs === undefined) continue;
    served += Math.max(1, inFlightCount);
    servedMs += Math.max(1, inFlightCount) * serviceMs;
  }
  const serviceMs = served === 0 ? undefined : servedMs / served;
  const { name, policy } = service;
  const rejectRatio = policy.admission === undefined ? 0 : service.rejectRatio(nowMs);
  return { service: name, rejectRatio, weight, waitingCount, serviceMs };
}

/** Minimum relative change of a limit that is logged again. */
const reportedChangeRatio = 0.2;

/** Consecutive snapshots without refusals after which Envoys' breakers admit all requests again. */
const calmSnapshots = 10;

/** Logs changes in the loop of the fleet. Names of Envoys are not logged. */
export class FleetJournal {
  readonly #logger: Logger;
  /** What was last logged, by service. */
  #reported = new Map<string, Pick<ServiceShares, "limit" | "gate">>();
  /** For each service whose breakers refuse requests: snapshots since the last refusal. */
  readonly #overflowing = new Map<string, number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Logs changes of the leader, and whether a snapshot is valid. */
  note(event: LoopEvent): void {
    const { kind, ...facts } = event;
    const line = { event: kind, ...facts };
    switch (event.kind) {
      case "leadingBegan":
        this.#logger.info(line, "This replica is now the leader.");
        break;
      case "leadingEnded":
        this.#logger.info(line, "This replica is no longer the leader.");
        break;
      case "leaderChanged":
        this.#logger.info(line, "The snapshots of another leader are active.");
        break;
      case "leaseLost":
        this.#logger.warn(
          { ...line, remedy: remedyOf(event.code) },
          "The store does not answer who leads. Envoys will fall back to their " +
            "configured limits.",
        );
        break;
      case "leaseFound":
        this.#logger.info(line, "The store answers who leads again.");
        break;
      case "snapshotLost":
        this.#logger.warn(
          line,
          "Lost the fleet snapshot: Envoys fall back to their configured limits.",
        );
        break;
      case "fleetUnreadable":
        this.#logger.warn(
          line,
          "A report or snapshot has another version; it and all further ones are ignored.",
        );
        break;
      case "snapshotFound":
        this.#logger.info(line, "The fleet snapshot is valid again.");
        break;
    }
  }

  /** Takes a new snapshot that this replica has made. */
  noteSnapshot({ services }: ShareSnapshot): void {
    const reported = new Map<string, Pick<ServiceShares, "limit" | "gate">>();
    for (const service of this.#overflowing.keys()) {
      if (!services.has(service)) this.#overflowing.delete(service);
    }
    for (const [service, shares] of services) {
      const { limit, gate, facts } = shares;
      this.#noteOverflow(service, shares);
      const before = this.#reported.get(service);
      const isNew = before === undefined || isMove(before.limit, limit) || before.gate !== gate;
      reported.set(service, isNew ? { limit, gate } : before);
      if (!isNew) continue;
      const from = before === undefined ? {} : { before: before.limit };
      const line = { event: "fleetLimitChanged", service, limit, ...from, gate, ...facts };
      this.#logger.info(line, "The fleet's limit of a service has changed.");
    }
    this.#reported = reported;
  }

  #noteOverflow(service: string, shares: ServiceShares): void {
    const { limit, facts } = shares;
    const calm = this.#overflowing.get(service);
    const line = { service, limit, reservedHigh: reservedHighOf(shares), ...facts };
    if (facts.overflowPerSecond > 0) {
      this.#overflowing.set(service, 0);
      if (calm !== undefined) return;
      const sentence =
        "Circuit breakers of Envoys refuse requests of a service: its limit is reached.";
      this.#logger.warn({ event: "overflowBegan", ...line }, sentence);
    } else if (calm !== undefined && calm + 1 < calmSnapshots) {
      this.#overflowing.set(service, calm + 1);
    } else if (calm !== undefined) {
      this.#overflowing.delete(service);
      const sentence = "Circuit breakers of Envoys no longer refuse requests of a service.";
      this.#logger.info({ event: "overflowEnded", ...line }, sentence);
    }
  }
}

function isMove(before: number, limit: number): boolean {
  return Math.abs(limit - before) >= reportedChangeRatio * before;
}
