import { defaultShedThresholds } from "../../src/core/admission/priority.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type { AdmissionCall, AdmissionRequest } from "../../src/decide/admission/admission-call.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { systemClock, systemRandom } from "../../src/host/clock.js";
import type { AdmissionPolicy } from "../../src/policy/services/service-admission.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import { servicesPolicy, testService } from "../support/admission.js";
import { createTestDecider } from "../support/decider.js";

/** One row: what admission of a request and its end cost, without codec and transport. */
export interface AdmissionRow {
  readonly name: string;
  /** CPU of this process for one request, in microseconds. */
  readonly cpuUsPerRequest: number;
}

/** What a row measures. */
export interface AdmissionScenario {
  readonly name: string;
  readonly admission: Partial<AdmissionPolicy> | undefined;
  readonly concurrency?: ServicePolicy["concurrency"];
  readonly headers?: Readonly<Record<string, string>>;
  /** Requests that hold a permit throughout. */
  readonly heldCount?: number;
}

const vegas: ServicePolicy["concurrency"] = {
  settings: {
    law: "vegas",
    limits: { initial: 500, min: 10, max: 1_000 },
    smoothingRatio: 1,
    statistic: { kind: "mean" },
  },
  per: undefined,
  signal: undefined,
  sources: ["extProc"],
  feedback: [],
};

const everyBlock: Partial<AdmissionPolicy> = {
  maxInFlight: 500,
  maxInFlightPer: {
    per: { kind: "header", header: "x-user" },
    max: 100,
    keysMax: 10_000,
    scope: "fleet",
  },
  shedAt: defaultShedThresholds,
  deadline: { minRemainingMs: 5, marginMs: 10, header: undefined },
  queue: { sizeMax: 100, waitMsMax: 2_000, order: "priority", codel: undefined },
  estimatedWait: {
    max: { kind: "serviceTimes", multiple: 100 },
    sigmoid: { midpoint: { kind: "duration", ms: 28_000 }, slopePerSecond: 0.23 },
  },
  gate: { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 },
  throttle: { k: 2, per: "caller", memoryMs: 30_000 },
  load: {
    orcaCpuRatio: 0.85,
    orcaMemoryRatio: 0.9,
    latencyMultiple: undefined,
    errorRatio: undefined,
    queueWaitMs: undefined,
    combine: "max",
  },
};

/** The rows of the bench. */
export const admissionScenarios: readonly AdmissionScenario[] = [
  { name: "off", admission: undefined },
  { name: "permits", admission: { maxInFlight: 500 } },
  {
    name: "permits, classes, deadline",
    admission: {
      maxInFlight: 500,
      shedAt: defaultShedThresholds,
      deadline: { minRemainingMs: 5, marginMs: 10, header: undefined },
    },
    headers: { "grpc-timeout": "1S", "content-type": "application/grpc" },
  },
  { name: "every block, vegas", admission: everyBlock, concurrency: vegas },
  { name: "refused: permits", admission: { maxInFlight: 1 }, heldCount: 1 },
];

const nobody: AdmissionCall = { decided: () => {} };

/** Measures one scenario: each request is admitted, answered and over at once. */
export function measureAdmission(scenario: AdmissionScenario, requestCount: number): AdmissionRow {
  const { name, admission: blocks, concurrency, headers = {}, heldCount = 0 } = scenario;
  const policy = servicesPolicy([testService(blocks, { concurrency })]);
  const policies = { current: () => policy };
  const admission = new Admission({
    policies,
    clock: systemClock,
    random: systemRandom,
    decider: createTestDecider({
      clock: systemClock,
      policies,
      counters: new DecisionCounters(),
    }),
    shares: undefined,
    digest: (text) => text,
    permitLeaseMsMax: 300_000,
    isOverloaded: () => false,
    onEvent: () => {},
  });
  const requests = Array.from({ length: 1_000 }, (_, i) => requestOf(headers, i));
  const [first] = requests;
  for (let i = 0; i < heldCount && first !== undefined; i += 1) admission.begin(first, nobody);
  runMany(admission, requests, requestCount / 4);
  const before = process.cpuUsage();
  runMany(admission, requests, requestCount);
  const { user, system } = process.cpuUsage(before);
  admission.close();
  return { name, cpuUsPerRequest: (user + system) / requestCount };
}

function runMany(admission: Admission, requests: readonly AdmissionRequest[], count: number): void {
  const response = {
    status: 200,
    grpcStatus: undefined,
    isOverloaded: false,
    loadMetrics: undefined,
  };
  for (let i = 0; i < count; i += 1) {
    const request = requests[i % requests.length];
    if (request === undefined) return;
    const answer = admission.begin(request, nobody);
    if (answer.kind === "refused" || answer.ticket === undefined) continue;
    answer.ticket.responded(response);
    answer.ticket.end("completed");
  }
}

function requestOf(headers: Readonly<Record<string, string>>, i: number): AdmissionRequest {
  return {
    serviceName: "orders",
    peer: "envoy",
    headers: new Map([
      [":method", "GET"],
      [":path", "/cart"],
      [":authority", "orders.example"],
      ["x-user", `user-${i}`],
      ...Object.entries(headers),
    ]),
    attributes: new Map([["source.address", "10.0.0.1:5000"]]),
    isObserved: false,
  };
}
