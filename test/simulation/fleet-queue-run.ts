import type { ConcurrencySettings } from "../../src/core/concurrency/concurrency-laws.js";
import type { NodeReport } from "../../src/core/feedback/feedback.js";
import { FleetLoop } from "../../src/core/feedback/feedback-loop.js";
import { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { exponentialMs } from "../../src/simulate/engine/distributions.js";
import { Station } from "../../src/simulate/engine/station.js";
import { FakeRandom } from "../support/fake-random.js";
import { decideOf } from "../support/node-reports.js";
import {
  type FleetDelays,
  type NodeTraffic,
  type SimulatedEnvoy,
  SimulatedFleet,
  tickMs,
} from "../support/simulated-fleet.js";
import { startArrivals } from "../support/station.js";
import { fairReports } from "./fleet-loop-scenarios.js";

/** Envoys before one queue, request by request. Times in milliseconds. */
export interface QueueFleetScenario {
  readonly law: ConcurrencySettings;
  readonly envoyCount: number;
  /** The part of the traffic that each Envoy has. Default: the same for all */
  readonly trafficRatios?: readonly number[];
  readonly workerCount: number;
  /** What a request takes in the mean without a queue; exponential. */
  readonly serviceMs: number;
  /** Requests that come. */
  readonly perSecond: number;
  /** How long clients wait; the upstream works on for those who have left. */
  readonly patienceMs: number;
  /** What an Envoy lets in without a share. */
  readonly configuredShare: number;
}

/** What was seen of one second. */
export interface QueueSecond {
  readonly limit: number;
  /** Requests in work at the upstream, queue included, in the mean. */
  readonly inFlight: number;
  /** Answered in time, as a share of what was possible: all that came, or all that was served. */
  readonly goodputRatio: number;
  /** What those took in the mean; NaN without any. */
  readonly rttMs: number;
  readonly minRttMs: number | undefined;
  /** Refused by Envoys. */
  readonly refusedCount: number;
}

/** Delays of a sound network: replicas look each 250 ms, layers take no time to speak of. */
const soundDelays: FleetDelays = {
  snapshotReadMsMax: 250,
  snapshotSeenMsMax: 20,
  reportEveryMs: 1_000,
  pushMsMax: 20,
};

const serviceName = "upstream";

/** A fleet before a queue of which each request is there, second by second, from a seed. */
export class QueueFleetRun {
  readonly #scenario: QueueFleetScenario;
  readonly #calendar = new EventCalendar();
  readonly #random: FakeRandom;
  readonly #fleet: SimulatedFleet;
  readonly #station: Station;
  readonly #loop: FleetLoop;
  readonly #inWork = new Map<SimulatedEnvoy, number>();
  /** Of each Envoy, what ended in the ticks of the last second, and in the present one. */
  readonly #ended = new Map<SimulatedEnvoy, EndedCounts>();
  #perSecond: number;
  #serviceMs: number;
  #nextUpdateMs: number;
  #pending: NodeReport[] = [];
  #limit = 0;
  #minRttMs: number | undefined;
  #inTimeCount = 0;
  #rttSumMs = 0;
  #refusedCount = 0;
  #inFlightSum = 0;

  constructor(scenario: QueueFleetScenario, seed: number) {
    this.#scenario = scenario;
    const { envoyCount, workerCount, serviceMs, configuredShare, law } = scenario;
    const random = new FakeRandom(seed);
    this.#random = random;
    this.#perSecond = scenario.perSecond;
    this.#serviceMs = serviceMs;
    this.#nextUpdateMs = random.next() * 1_000;
    const unit = exponentialMs(random, 1);
    this.#station = new Station(this.#calendar, workerCount, () => unit() * this.#serviceMs);
    this.#fleet = new SimulatedFleet({
      random,
      nodeCount: envoyCount,
      replicaCount: 2,
      services: [serviceName],
      configuredShare,
      weather: fairReports,
      delays: soundDelays,
    });
    this.#loop = new FleetLoop({
      term: 1,
      leaderId: "leader",
      services: [
        {
          service: serviceName,
          law,
          maxInFlight: undefined,
          configuredShare,
          highRatio: undefined,
          sigmoid: undefined,
          gate: undefined,
        },
      ],
      nowMs: 0,
    });
    const gapMs = (): number => exponentialMs(random, 1_000 / this.#perSecond)();
    const untilMs = Number.POSITIVE_INFINITY;
    startArrivals(this.#calendar, { gapMs, untilMs }, () => this.#arrive());
  }

  /** Another capacity or load from now on. */
  change(to: Partial<Pick<QueueFleetScenario, "workerCount" | "serviceMs" | "perSecond">>): void {
    if (to.workerCount !== undefined) this.#station.serverCount = to.workerCount;
    this.#serviceMs = to.serviceMs ?? this.#serviceMs;
    this.#perSecond = to.perSecond ?? this.#perSecond;
  }

  /** Lives on for that long. */
  span(seconds: number): readonly QueueSecond[] {
    return Array.from({ length: seconds }, () => this.#second());
  }

  #second(): QueueSecond {
    this.#inTimeCount = 0;
    this.#rttSumMs = 0;
    this.#refusedCount = 0;
    this.#inFlightSum = 0;
    for (let ms = 0; ms < 1_000; ms += tickMs) this.#tick();
    const served = (this.#station.serverCount * 1_000) / this.#serviceMs;
    return {
      limit: this.#limit,
      inFlight: (this.#inFlightSum * tickMs) / 1_000,
      goodputRatio: this.#inTimeCount / Math.min(this.#perSecond, served),
      rttMs: this.#rttSumMs / this.#inTimeCount,
      minRttMs: this.#minRttMs,
      refusedCount: this.#refusedCount,
    };
  }

  #tick(): void {
    this.#calendar.runUntil(this.#calendar.nowMs + tickMs);
    this.#inFlightSum += this.#station.busyCount + this.#station.queueCount;
    for (const envoy of this.#fleet.envoys) {
      const traffic = trafficOf(envoy);
      traffic.inFlight = this.#inWork.get(envoy) ?? 0;
      const { before, endedCount } = this.#ended.get(envoy) ?? { before: [], endedCount: 0 };
      const counts = [...before, endedCount].slice(-1_000 / tickMs);
      this.#ended.set(envoy, { before: counts, endedCount: 0 });
      traffic.rps = counts.reduce((sum, count) => sum + count, 0);
    }
    for (const nodes of this.#fleet.tick().values()) this.#pending.push(...nodes);
    const { nowMs } = this.#fleet;
    if (nowMs < this.#nextUpdateMs) return;
    this.#nextUpdateMs += 1_000;
    const snapshot = decideOf(this.#loop, this.#pending, nowMs);
    this.#pending = [];
    this.#fleet.write(snapshot);
    const shares = snapshot.services.get(serviceName);
    this.#limit = shares?.limit ?? 0;
    this.#minRttMs = shares?.facts.minRttMs;
  }

  #drawEnvoy(): SimulatedEnvoy | undefined {
    const { envoys } = this.#fleet;
    const { trafficRatios } = this.#scenario;
    let draw = this.#random.next();
    if (trafficRatios === undefined) return envoys[Math.floor(draw * envoys.length)];
    return envoys.find(({ place }) => {
      draw -= trafficRatios[place] ?? 0;
      return draw < 0;
    });
  }

  #arrive(): void {
    const envoy = this.#drawEnvoy();
    if (envoy === undefined) return;
    const inWork = this.#inWork.get(envoy) ?? 0;
    const traffic = trafficOf(envoy);
    if (inWork >= this.#fleet.enforced(envoy, serviceName)) {
      traffic.refusedCount += 1;
      this.#refusedCount += 1;
      return;
    }
    this.#inWork.set(envoy, inWork + 1);
    const startMs = this.#calendar.nowMs;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      this.#inWork.set(envoy, (this.#inWork.get(envoy) ?? 1) - 1);
    };
    const cancel = this.#calendar.after(this.#scenario.patienceMs, end);
    const ended = (): void => {
      if (isOver) return;
      cancel();
      end();
      const rttMs = this.#calendar.nowMs - startMs;
      traffic.servedCount += 1;
      const { before, endedCount } = this.#ended.get(envoy) ?? { before: [], endedCount: 0 };
      this.#ended.set(envoy, { before, endedCount: endedCount + 1 });
      traffic.latencySumMs += rttMs;
      this.#inTimeCount += 1;
      this.#rttSumMs += rttMs;
    };
    this.#station.enter({ ended });
  }
}

interface EndedCounts {
  readonly before: readonly number[];
  readonly endedCount: number;
}

function trafficOf(envoy: SimulatedEnvoy): NodeTraffic {
  const traffic = envoy.traffic.get(serviceName);
  if (traffic === undefined) throw new Error("an Envoy without the service");
  return traffic;
}
