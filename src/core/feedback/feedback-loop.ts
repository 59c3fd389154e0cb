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

/** What a `FleetLoop` is made of. */
export interface FleetLoopParts {
  /** Of this term; higher than that of any snapshot before it. */
  readonly term: number;
  readonly leaderId: string;
  readonly services: readonly ServiceLoopSettings[];
  /** The last snapshot that anybody wrote: its limits and shares are begun with. */
  readonly from?: ShareSnapshot;
  /** Now, on the monotonic clock of all times that are handed in. */
  readonly nowMs: number;
  readonly times?: LoopTimes;
  readonly pace?: LimitPace;
}

/** A reading for the law `signal`. */
interface ServiceReading {
  readonly reading: SignalReading;
  readonly nowMs: number;
}

/**
 * What is worth knowing of a snapshot that nobody has renewed for so long that Envoys go by their
 * configured defaults: limits and latencies. Shares and gates are of another time.
 */
export function lapsedSnapshot(snapshot: ShareSnapshot): ShareSnapshot {
  const services = new Map<string, ServiceShares>();
  for (const [name, known] of snapshot.services) {
    services.set(name, { ...known, shares: new Map(), rejectRatio: 0, gate: "open" });
  }
  return { ...snapshot, services };
}

/**
 * What a fleet of Envoys reports, made into one limit for each service and a share of it for each
 * Envoy: pure arithmetic, for whoever leads. It is asked once a second.
 *
 * - **Limit.** Reports of all Envoys are added up to windows, and the service's law learns from
 *   them. The limit follows the law within bounds, at a pace, and not for noise (`pacedLimit`).
 *   When the law takes a step, as into a probe that measures the latency without queueing, windows
 *   pause until all Envoys have taken it: else it would take the old latency for the new one's.
 * - **Shares.** By demand (`shareTargets`), and growing only into room that others have given up
 *   (`ShareLedger`). They add up to no more than the larger of the limit and the number of Envoys,
 *   but for identities that have more Envoys than their part of the limit.
 * - **Silence.** An Envoy whose numbers stop is not added up any more; it keeps its share until its
 * lease is over. A service without Envoys is left out of the snapshot, so that configured defaults
 *   hold.
 * - **Many Envoys.** Each has one permit at least. Where a limit is less than about 2.5 permits an
 *   Envoy, a probe cannot be told to them, and the latency without queueing is not measured anew.
 * - **A new leader** begins with the last snapshot: the same limits, the same shares, and no room
 * to
 *   grow before Envoys have told what they hold. Of a snapshot that holds no more it has the limits
 *   (`lapsedSnapshot`).
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

  /** Reports that were left aside: of services that nobody asks for, or of no sense. */
  get strayCount(): number {
    return this.#strayCount;
  }

  /** Reports of Envoys for which there was no place. */
  get crowdedOutCount(): number {
    let count = 0;
    for (const service of this.#services.values()) count += service.crowdedOutCount;
    return count;
  }

  /** Services above `loopServicesMax`, which have no shares. */
  get leftOutCount(): number {
    return this.#leftOutCount;
  }

  /** Another policy: a service whose settings are the same goes on, any other one begins anew. */
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

  /** A service's signal was read; see `ServiceLoop.read`. */
  read(service: string, { reading, nowMs }: ServiceReading): void {
    this.#services.get(service)?.read(reading, nowMs);
  }

  /** Requests that wait before a service in all replicas, as far as somebody knows; each second. */
  noteQueue(service: string, queue: ServiceQueue, nowMs: number): void {
    this.#services.get(service)?.noteQueue(queue, nowMs);
  }

  /** The most that Envoys may let into work for a service now, all together. */
  mayHold(service: string, nowMs: number): number {
    return this.#services.get(service)?.mayHold(nowMs) ?? 0;
  }

  /**
   * Takes a report in. Those of one Envoy come in the order of their times, as far as it is known:
   * one that comes after a newer one teaches nothing.
   */
  take(report: NodeReport, nowMs: number): void {
    const service = this.#services.get(report.service);
    if (service === undefined || !isSound(report)) this.#strayCount += 1;
    else service.take(report, nowMs);
  }

  /** Takes in what Envoys of one service measured together; after their reports. */
  takeSamples(samples: ServiceSamples): void {
    const service = this.#services.get(samples.service);
    if (service === undefined || !areSound(samples)) this.#strayCount += 1;
    else service.takeSamples(samples);
  }

  /** Takes in what was rounded off the numbers of a service's Envoys. */
  takeRemainder(remainder: ServiceRemainder): void {
    const { service, atMs, inFlight, rps } = remainder;
    const known = this.#services.get(service);
    const isSoundOne = Number.isFinite(atMs) && Number.isFinite(inFlight) && Number.isFinite(rps);
    if (known === undefined || !isSoundOne) this.#strayCount += 1;
    else known.takeRemainder(remainder);
  }

  /**
   * Decides by what has been taken in, in turns: nothing else is called before it ends.
   *
   * @param nowMs not before that of the last time, nor of any report
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

/** Numbers come over a network, from processes of other versions. */
function isSound(report: NodeReport): boolean {
  const { atMs, heldAtMs = atMs, inFlight, highInFlight = 0, rps, latency, held } = report;
  const { errorCount, dropCount, overflowCount, demand = 0 } = report;
  // One by one: a list of them was a tenth of all that an update takes.
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

/** Settings are plain data, made in one place in one order of fields. */
function isSame(one: ServiceLoopSettings, other: ServiceLoopSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
