import type { ConcurrencySettings } from "../../src/core/concurrency/concurrency-laws.js";
import type { ReportWeather } from "../support/simulated-fleet.js";
import type { FleetScenario, SimulatedService } from "./fleet-loop-run.js";
import { lawOf } from "./law-scenarios.js";

/** Nothing is lost. */
export const fairReports: ReportWeather = {
  lostRatio: 0,
  lateRatio: 0,
  lateMsMax: 0,
  doubledRatio: 0,
};

/** One report in ten is lost, one comes late and after newer ones, and some come twice. */
export const foulReports: ReportWeather = {
  lostRatio: 0.1,
  lateRatio: 0.1,
  lateMsMax: 4_000,
  doubledRatio: 0.1,
};

/** A limit that jumps anywhere: the ledger's worst weather. */
const jumpyLaw: ConcurrencySettings = {
  law: "signal",
  limits: { initial: 20, min: 1, max: 60 },
  target: 0.2,
  critical: 0.9,
  smoothingRatio: 1,
  pid: undefined,
};

/**
 * Two to six Envoys and more that join, die, come back, are cut off or change replicas, one mishap
 * in three seconds; leaders that die; two services, one of them with a limit that jumps.
 */
export function smallFleet(seed: number): FleetScenario {
  const high = seed % 2 === 0 ? {} : { highRatio: 0.2 };
  const loadRatio = pick(seed, [0.5, 1, 3]);
  return {
    nodeCount: 2 + (seed % 5),
    replicaCount: 1 + (seed % 3),
    configuredShare: pick(seed, [3, 8, 20]),
    services: [
      { ...service(jumpyLaw, 20), loadRatio, jumpsPerSecond: 0.1, ...high },
      service(lawOf("gradient", { initial: 20, max: 100 }), 10),
    ],
    weather: seed % 4 === 0 ? fairReports : foulReports,
    hasRecords: seed % 4 === 1,
    mishapsPerSecond: 0.3,
    leaderDeathsPerSecond: 0.01,
  };
}

/**
 * 200 Envoys and services of many sizes, in foul weather, with a mishap every two seconds.
 *
 * @param serviceCount how many; there are 15 kinds of them
 */
export function bigFleet(serviceCount = 50): FleetScenario {
  // With fewer permits an Envoy a probe would go below one each, and measure nothing.
  const sizes = [450, 600, 900, 1_500, 3_000];
  return {
    nodeCount: 200,
    replicaCount: 3,
    configuredShare: 20,
    services: Array.from({ length: serviceCount }, (_, i) => ({
      ...service(lawOf("gradient", { initial: 200, max: 8_000 }), pick(i, sizes)),
      serviceMs: pick(i, [20, 50, 120]),
    })),
    weather: foulReports,
    hasRecords: true,
    mishapsPerSecond: 0.5,
    leaderDeathsPerSecond: 0,
  };
}

/** Some Envoys before one service of 60 servers, at two and a half times what it can serve. */
export function oneService(change: Partial<FleetScenario> = {}): FleetScenario {
  return {
    nodeCount: 4,
    replicaCount: 2,
    configuredShare: 1_024,
    services: [service(lawOf("gradient"), 60)],
    weather: foulReports,
    hasRecords: false,
    mishapsPerSecond: 0,
    leaderDeathsPerSecond: 0,
    ...change,
  };
}

/** An upstream of 50 ms a request. */
export function service(law: ConcurrencySettings, serverCount: number): SimulatedService {
  return { law, serverCount, serviceMs: 50, loadRatio: 2.5 };
}

function pick(seed: number, of: readonly number[]): number {
  return of[seed % of.length] ?? 0;
}
