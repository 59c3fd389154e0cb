import type { SignalReading } from "../concurrency/concurrency-limit.js";
import type {
  NodeReport,
  ServiceRemainder,
  ServiceSamples,
  ServiceShares,
  ShareSnapshot,
} from "./feedback.js";
import type { ServiceQueue } from "./feedback-pressure.js";
import { ServiceLoop } from "./feedback-service.js";
import {
  defaultLimitPace,
  defaultLoopTimes,
  type LimitPace,
  type LoopTimes,
  loopServicesMax,
  type ServiceLoopSettings,
} from "./feedback-settings.js";
import { turnNodes } from "./feedback-shares.js";

/** The parts of a `FleetLoop`. */
export interface FleetLoopParts {
  /** The number of this term, higher than that of any earlier leader. */
  readonly term: number;
  readonly leaderId: string;
  readonly services: readonly ServiceLoopSettings[];
  /** The last snapshot that was written. The loop begins with its limits and shares. */
  readonly from?: ShareSnapshot;
  /** Now, on the monotonic clock of all times that are passed in. */
  readonly nowMs: number;
  readonly times?: LoopTimes;
  readonly pace?: LimitPace;
}

/** A reading for the algorithm `signal`. */
interface ServiceReading {
  readonly reading: SignalReading;
  readonly nowMs: number;
}

/**
 * Returns what is still valid in a snapshot that was not renewed for so long that Envoys use their
 * configured defaults: limits and latencies. Shares and gates are outdated.
 */
export function lapsedSnapshot(snapshot: ShareSnapshot): ShareSnapshot {
  const services = new Map<string, ServiceShares>();
  for (const [name, known] of snapshot.services) {
    services.set(name, { ...known, shares: new Map(), rejectRatio: 0, gate: "open" });
  }
  return { ...snapshot, services };
}

/**
 * Computes one limit for each service, and a share of it for each Envoy, from the reports of a
 * fleet: pure arithmetic, for the leader. It runs once a second.
 *
 * - **Limit.** Reports of all Envoys are combined into windows, from which the service's algorithm
 *   learns. The limit follows the algorithm within bounds, at a pace, and not for noise
 *   (`pacedLimit`). If the algorithm takes a step, for example into a limit probe, windows pause
 *   until all Envoys obey it. Otherwise it would take the old latency for that of the new limit.
 * - **Shares.** They follow demand (`shareTargets`), and grow only into room that others have given
 *   up (`ShareLedger`). Their sum is at most the larger of the limit and the number of Envoys,
 *   except for identities that have more Envoys than their part of the limit.
 * - **Silence.** An Envoy that stops reporting is no longer added up, but keeps its share until its
 *   lease is over. A service without Envoys is left out of the snapshot, so that configured
 *   defaults apply.
 * - **Many Envoys.** Each has at least one permit, and each with requests keeps one in a probe. If
 *   no more permits are in use, no probe measures the latency without queueing.
 * - **A new leader** begins with the last snapshot: the same limits, the same shares, and no room
 *   to grow until Envoys have reported what they hold. From an expired snapshot it takes only the
 *   limits (`lapsedSnapshot`).
 */
export class FleetLoop {
  readonly #parts: FleetLoopParts;
  #services = new Map<string, ServiceLoop>();
  #version: number;
  #strayCount = 0;
  #leftOutCount = 0;

  constructor(parts: FleetLoopParts) {
    this.#parts = parts;
    const { from, term, services, nowMs } = parts;
    this.#version = from?.term === term ? from.version : 0;
    this.configure(services, nowMs);
  }

  /** Number of reports that were ignored: of unknown services, or with invalid numbers. */
  get strayCount(): number {
    return this.#strayCount;
  }

  /** Number of reports of Envoys for which there was no place. */
  get crowdedOutCount(): number {
    let count = 0;
    for (const service of this.#services.values()) count += service.crowdedOutCount;
    return count;
  }

  /** Number of services above `loopServicesMax`, which have no shares. */
  get leftOutCount(): number {
    return this.#leftOutCount;
  }

  /** Applies another policy. A service with the same settings continues, any other one restarts. */
  configure(services: readonly ServiceLoopSettings[], nowMs: number): void {
    const next = new Map<string, ServiceLoop>();
    for (const settings of services.slice(0, loopServicesMax)) {
      const known = this.#services.get(settings.service);
      next.set(
        settings.service,
        known !== undefined && isSame(known.settings, settings)
          ? known
          : this.#begin(settings, known, nowMs),
      );
    }
    this.#leftOutCount = Math.max(0, services.length - loopServicesMax);
    this.#services = next;
  }

  /** Takes a reading of a service's signal; see `ServiceLoop.read`. */
  read(service: string, { reading, nowMs }: ServiceReading): void {
    this.#services.get(service)?.read(reading, nowMs);
  }

  /** Takes the requests that wait for a service in all replicas, if known. Call it each second. */
  noteQueue(service: string, queue: ServiceQueue, nowMs: number): void {
    this.#services.get(service)?.noteQueue(queue, nowMs);
  }

  /** Returns the maximum that all Envoys together may admit for a service now. */
  mayHold(service: string, nowMs: number): number {
    return this.#services.get(service)?.mayHold(nowMs) ?? 0;
  }

  /**
   * Takes a report. Reports of one Envoy should come in the order of their times: one that comes
   * after a newer one has no effect.
   */
  take(report: NodeReport, nowMs: number): void {
    const service = this.#services.get(report.service);
    if (service === undefined || !isSound(report)) this.#strayCount += 1;
    else service.take(report, nowMs);
  }

  /** Takes combined measurements of the Envoys of one service. Call it after their reports. */
  takeSamples(samples: ServiceSamples): void {
    const service = this.#services.get(samples.service);
    if (service === undefined || !areSound(samples)) this.#strayCount += 1;
    else service.takeSamples(samples);
  }

  /** Takes the rounding remainder of the numbers of a service's Envoys. */
  takeRemainder(remainder: ServiceRemainder): void {
    const { service, atMs, inFlight, rps } = remainder;
    const known = this.#services.get(service);
    const isSoundOne = Number.isFinite(atMs) && Number.isFinite(inFlight) && Number.isFinite(rps);
    if (known === undefined || !isSoundOne) this.#strayCount += 1;
    else known.takeRemainder(remainder);
  }

  /**
   * Decides from what was taken, and yields in between. Call nothing else before it ends.
   *
   * @param nowMs not before that of the last call, nor the time of any report
   */
  *update(nowMs: number): Generator<undefined, ShareSnapshot> {
    const services = new Map<string, ServiceShares>();
    let nodeCount = 0;
    for (const [name, service] of this.#services) {
      const shares = yield* service.update(nowMs);
      if (shares !== undefined) services.set(name, shares);
      nodeCount += shares?.shares.size ?? 0;
      if (nodeCount < turnNodes) continue;
      nodeCount = 0;
      yield;
    }
    this.#version += 1;
    const { term, leaderId } = this.#parts;
    return { term, leaderId, version: this.#version, services };
  }

  #begin(
    settings: ServiceLoopSettings,
    known: ServiceLoop | undefined,
    nowMs: number,
  ): ServiceLoop {
    const { from, times = defaultLoopTimes, pace = defaultLimitPace } = this.#parts;
    const last = known?.last ?? from?.services.get(settings.service);
    return new ServiceLoop({ settings, times, pace, from: last, nowMs });
  }
}

/** Checks numbers, since they come over a network, from processes of other versions. */
function isSound(report: NodeReport): boolean {
  const { atMs, heldAtMs = atMs, inFlight, highInFlight = 0, rps, latency, held } = report;
  const { errorCount, dropCount, overflowCount, demand = 0 } = report;
  // One by one: a list of them took a tenth of the time of an update.
  return (
    Number.isFinite(atMs) &&
    Number.isFinite(heldAtMs) &&
    isAmount(inFlight) &&
    isAmount(highInFlight) &&
    isAmount(rps) &&
    isMeasured(latency) &&
    isAmount(demand) &&
    isAmount(held) &&
    isAmount(errorCount) &&
    isAmount(dropCount) &&
    isAmount(overflowCount)
  );
}

function areSound({ fromMs, latency, errorCount }: ServiceSamples): boolean {
  return Number.isFinite(fromMs) && isMeasured(latency) && isAmount(errorCount);
}

function isMeasured({ count, sumMs, p50 = 0, minMs = 0 }: NodeReport["latency"]): boolean {
  return isAmount(count) && isAmount(sumMs) && isAmount(p50) && isAmount(minMs);
}

function isAmount(value: number): boolean {
  return value >= 0 && value < Number.POSITIVE_INFINITY;
}

/** Compares as text: settings are plain data, made in one place with one order of fields. */
function isSame(one: ServiceLoopSettings, other: ServiceLoopSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
