import type { Priority } from "../../src/core/admission-settings.js";
import type { Clock } from "../../src/core/clock.js";
import { Admission } from "../../src/decide/admission.js";
import type { AdmissionCall, AdmissionTicket } from "../../src/decide/admission-call.js";
import { DecisionCounters } from "../../src/decide/counters.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { createPolicyBuilder, type Policy } from "../../src/policy/policy.js";
import { createTestDecider } from "../support/decider.js";
import { FakeRandom } from "../support/fake-random.js";
import {
  EventCalendar,
  exponentialMs,
  quantile,
  Station,
  type StationJob,
  startArrivals,
} from "../support/station.js";

/** A service behind its admission, and who wants something of it. Times in milliseconds. */
export interface AdmissionScenario {
  /** `admission` and `concurrency` of the service, as a policy writes them. */
  readonly blocks: string;
  readonly serverCount: number;
  readonly serviceMs: number;
  /** Requests that come, as a multiple of what the service can serve. */
  readonly loadRatio: number;
  /** The part of them that is critical; the rest is as much high as normal as low. */
  readonly criticalRatio: number;
  /** How long a caller waits; it says so. */
  readonly patienceMs: number;
}

/** What was seen in a span of time. */
export interface AdmissionSpan {
  /** Served within the callers' patience, as a share of what the servers could have done. */
  readonly goodputRatio: number;
  /** Not refused and not given up, as a share of those who asked, by class. */
  readonly servedRatio: Readonly<Record<Priority, number>>;
  /** From asking to the end of the answer. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly refusedCount: number;
  /** Permits at the end. */
  readonly limit: number;
}

const others: readonly Priority[] = ["high", "normal", "low"];

/** A scenario that runs, looked at span by span: whole admission, and a station as the service. */
export class AdmissionRun {
  readonly #scenario: AdmissionScenario;
  readonly #calendar = new EventCalendar();
  readonly #random: FakeRandom;
  readonly #station: Station;
  readonly #admission: Admission;
  #latenciesMs: number[] = [];
  #asked: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  #lost: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  #refusedCount = 0;

  constructor(scenario: AdmissionScenario, seed: number) {
    const { serverCount, serviceMs, loadRatio, blocks } = scenario;
    this.#scenario = scenario;
    this.#random = new FakeRandom(seed);
    this.#station = new Station(
      this.#calendar,
      serverCount,
      exponentialMs(this.#random, serviceMs),
    );
    const clock = clockOf(this.#calendar);
    const policy = policyOf(blocks);
    const policies = { current: () => policy };
    this.#admission = new Admission({
      policies,
      clock,
      random: this.#random,
      decider: createTestDecider({ clock, policies, counters: new DecisionCounters() }),
      shares: undefined,
      digest: (text) => text,
      permitLeaseMsMax: 300_000,
      isOverloaded: () => false,
      onEvent: () => {},
    });
    const gapMs = exponentialMs(this.#random, serviceMs / serverCount / loadRatio);
    const untilMs = Number.POSITIVE_INFINITY;
    startArrivals(this.#calendar, { gapMs, untilMs }, () => this.#arrive());
  }

  /** Lives on for that long. */
  span(spanMs: number): AdmissionSpan {
    this.#latenciesMs = [];
    this.#asked = { critical: 0, high: 0, normal: 0, low: 0 };
    this.#lost = { critical: 0, high: 0, normal: 0, low: 0 };
    this.#refusedCount = 0;
    this.#calendar.runUntil(this.#calendar.nowMs + spanMs);
    const { serverCount, serviceMs } = this.#scenario;
    const share = (priority: Priority): number => 1 - this.#lost[priority] / this.#asked[priority];
    const [service] = this.#admission.services();
    return {
      goodputRatio: this.#latenciesMs.length / ((serverCount * spanMs) / serviceMs),
      servedRatio: {
        critical: share("critical"),
        high: share("high"),
        normal: share("normal"),
        low: share("low"),
      },
      p50Ms: quantile(this.#latenciesMs, 0.5),
      p99Ms: quantile(this.#latenciesMs, 0.99),
      refusedCount: this.#refusedCount,
      limit: service?.pools.whole.limit(this.#calendar.nowMs) ?? Number.NaN,
    };
  }

  #arrive(): void {
    const { criticalRatio, patienceMs } = this.#scenario;
    const draw = this.#random.next();
    const other = others[Math.floor(this.#random.next() * others.length)] ?? "normal";
    const priority = draw < criticalRatio ? "critical" : other;
    const askedMs = this.#calendar.nowMs;
    this.#asked[priority] += 1;
    const request = { priority, user: `user-${Math.floor(this.#random.next() * 500)}` };
    let ticket: AdmissionTicket | undefined;
    let job: StationJob | undefined;
    let isOver = false;
    const end = (how: "completed" | "left"): void => {
      isOver = true;
      cancelPatience();
      ticket?.end(how);
    };
    const cancelPatience = this.#calendar.after(patienceMs, () => {
      if (isOver) return;
      this.#lost[priority] += 1;
      job?.leave();
      end("left");
    });
    const call: AdmissionCall = {
      admitted: () => {
        job = this.#station.enter({
          ended: () => {
            if (isOver) return;
            this.#latenciesMs.push(this.#calendar.nowMs - askedMs);
            ticket?.responded(served);
            end("completed");
          },
        });
      },
      refused: () => {
        this.#refusedCount += 1;
        this.#lost[priority] += 1;
        isOver = true;
        cancelPatience();
      },
      waiting: () => {},
    };
    ticket = this.#admission.begin(requestOf(request, patienceMs), call);
  }
}

const served = {
  status: 200,
  grpcStatus: undefined,
  isOverloaded: false,
  loadMetrics: undefined,
};

function requestOf(
  { priority, user }: { readonly priority: Priority; readonly user: string },
  patienceMs: number,
) {
  return {
    serviceName: "orders",
    peer: "envoy",
    headers: new Map([
      ["x-request-priority", priority],
      ["x-user", user],
      ["x-envoy-expected-rq-timeout-ms", String(patienceMs)],
    ]),
    attributes: new Map(),
    isObserved: false,
  };
}

function policyOf(blocks: string): Policy {
  const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - {name: orders, priority: {from: {trust: {anyone: true}}}, ${blocks}}
`;
  const parsed = parsePolicy([{ file: "policy.yaml", text }]);
  if (parsed.kind === "problems") {
    throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  }
  const builder = createPolicyBuilder("v1");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  return builder.finish();
}

function clockOf(calendar: EventCalendar): Clock {
  return {
    monotonicMs: () => calendar.nowMs,
    epochUs: () => Math.floor(calendar.nowMs * 1_000),
    schedule: (delayMs, callback) => calendar.after(delayMs, callback),
    scheduleTurn: (callback) => calendar.after(0, callback),
  };
}
