import type { Refusal, ScalarValue } from "../../src/core/admission/exchange-messages.js";
import type { SharesPermits } from "../../src/core/admission/permit-share.js";
import type { Priority } from "../../src/core/admission/priority.js";
import type { SharedKeyCounts } from "../../src/core/admission/shared-key-counts.js";
import { Admission, type AdmissionEvent } from "../../src/decide/admission/admission.js";
import type {
  AdmissionCall,
  AdmissionGrant,
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
} from "../../src/decide/admission/admission-call.js";
import type { ReadGateSettings } from "../../src/decide/admission/fleet-gate.js";
import type { ServiceAdmission } from "../../src/decide/admission/service-admission.js";
import type { BlockParts } from "../../src/decide/admission/service-blocks.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../src/decide/rate-limit/decider.js";
import type { RefusalLog } from "../../src/decide/rate-limit/refusal-log.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import { type AdmissionPolicy, permitsAlone } from "../../src/policy/services/service-admission.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import { defaultBlocks } from "../../src/policy/upstream/default-upstream.js";
import { createTestDecider } from "./decider.js";
import { FakeClock } from "./fake-clock.js";
import { testPolicy } from "./policies.js";

/** Admission that does nothing but count, but for the fields that a test names. */
export function testAdmission(fields: Partial<AdmissionPolicy> = {}): AdmissionPolicy {
  return {
    ...permitsAlone,
    reject: { retryAfterSecondsMin: 1, retryAfterJitterRatio: 0, statusByCause: {} },
    caller: { kind: "header", header: "x-user" },
    ...fields,
  };
}

/** The service "orders", whose class anybody may state, but for the fields that a test names. */
export function testService(
  admission: Partial<AdmissionPolicy> | undefined,
  fields: Partial<ServicePolicy> = {},
): ServicePolicy {
  return {
    name: "orders",
    namespace: undefined,
    hosts: ["orders.example"],
    upstream: undefined,
    rateLimit: undefined,
    priority: {
      header: "x-request-priority",
      default: "normal",
      rules: [],
      bypassPaths: ["/healthz"],
      authPaths: [],
      trust: { anyone: true, sources: [], principals: [] },
    },
    admission: admission && testAdmission(admission),
    concurrency: undefined,
    usage: undefined,
    workloadLabels: { app: "orders" },
    ...defaultBlocks,
    direction: "inbound",
    clusters: [],
    healthChecks: undefined,
    retries: undefined,
    localRateLimit: undefined,
    adaptiveConcurrency: undefined,
    admissionControl: undefined,
    ...fields,
  };
}

/** A policy of services and, where a test gives one, the rules of another policy. */
export function servicesPolicy(
  services: readonly ServicePolicy[],
  { rules }: Pick<Policy, "rules"> = testPolicy([]),
): Policy {
  const builder = new PolicyBuilder("v1");
  builder.addDomains(["shop"]);
  builder.add(rules);
  builder.addServices(services);
  return builder.finish();
}

/** What a test says of a request; everything else is left out. */
export interface TestRequest {
  readonly priority?: Priority;
  readonly user?: string;
  readonly service?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly attributes?: Readonly<Record<string, ScalarValue>>;
  readonly isObserved?: boolean;
  /** Default the same for all. */
  readonly peer?: string;
}

/** A request that has asked, and what it was told. */
export class AskingRequest implements AdmissionCall {
  readonly terms: AdmissionGrant[] = [];
  readonly refusals: Refusal[] = [];
  readonly waits: number[] = [];
  ticket: AdmissionTicket | undefined;
  /** Whether `begin` has returned: nothing is told before. */
  isBegun = false;
  /** What a test does as soon as the request is told something. */
  onReported: ((visit: AskingRequest) => void) | undefined;

  decided(verdict: AdmissionVerdict): void {
    if (!this.isBegun) throw new Error("called back before begin() has returned");
    if (verdict.kind === "admitted") this.terms.push(verdict.terms);
    else if (verdict.kind === "refused") this.refusals.push(verdict.refusal);
    else this.waits.push(verdict.timeoutMs);
    this.onReported?.(this);
  }

  /** In a word: `admitted`, `waiting`, `asking`, or the cause of the refusal. */
  get verdict(): string {
    const [refusal] = this.refusals;
    if (refusal !== undefined) return refusal.details.replace("headgate_", "");
    if (this.terms.length > 0) return "admitted";
    return this.waits.length > 0 ? "waiting" : "asking";
  }

  /** The response came, and all of it went through. */
  complete(status = 200): void {
    this.respond(status);
    this.ticket?.end("completed");
  }

  respond(status: number, fields: { grpcStatus?: number; loadMetrics?: string } = {}): void {
    const { grpcStatus, loadMetrics } = fields;
    this.ticket?.responded({ status, grpcStatus, loadMetrics, isOverloaded: false });
  }

  leave(): void {
    this.ticket?.end("left");
  }
}

/** What a test may give of an `AdmissionRig`. */
export interface RigParts {
  readonly shares?: SharesPermits;
  readonly decider?: Decider;
  readonly clock?: FakeClock;
  readonly gateSettings?: ReadGateSettings;
  readonly budgetsOf?: BlockParts["budgetsOf"];
  readonly permitsPeerPercentMax?: number;
  readonly sharedKeys?: SharedKeyCounts;
  readonly refusalLog?: RefusalLog;
}

/** Admission in a test's hand: its time, its draws, its policy. */
export class AdmissionRig {
  readonly clock: FakeClock;
  readonly events: AdmissionEvent[] = [];
  readonly admission: Admission;
  policy: Policy;
  /** What chance says. */
  draw = 0.5;
  isOverloaded = false;
  /** Whether the process hears of things late. */
  isLate = false;

  constructor(policy: Policy | readonly ServicePolicy[], parts: RigParts = {}) {
    this.policy = "version" in policy ? policy : servicesPolicy(policy);
    const clock = parts.clock ?? new FakeClock();
    const policies = { current: () => this.policy };
    this.clock = clock;
    this.admission = new Admission({
      policies,
      clock,
      random: { next: () => this.draw, id: () => "r1" },
      decider:
        parts.decider ?? createTestDecider({ clock, policies, counters: new DecisionCounters() }),
      shares: parts.shares,
      ...(parts.gateSettings === undefined ? {} : { gateSettings: parts.gateSettings }),
      ...(parts.budgetsOf === undefined ? {} : { budgetsOf: parts.budgetsOf }),
      ...(parts.sharedKeys === undefined ? {} : { sharedKeys: parts.sharedKeys }),
      refusalLog: parts.refusalLog,
      digest: (text) => `digest-of-${text}`,
      permitLeaseMsMax: 300_000,
      permitsPeerPercentMax: parts.permitsPeerPercentMax ?? 100,
      isOverloaded: () => this.isOverloaded,
      isLate: () => this.isLate,
      onEvent: (event) => this.events.push(event),
    });
  }

  /** The service "orders", or another one. */
  service(name = "orders"): ServiceAdmission {
    const found = [...this.admission.services()].find((service) => service.name === name);
    if (found === undefined) throw new Error(`no service ${name}`);
    return found;
  }

  ask(request: TestRequest = {}): AskingRequest {
    const visit = new AskingRequest();
    const answer = this.admission.begin(requestOf(request), visit);
    visit.isBegun = true;
    if (answer.kind !== "refused") visit.ticket = answer.ticket;
    if (answer.kind !== "asking") visit.decided(answer);
    return visit;
  }

  /** Several of the same, one after the other. */
  askMany(count: number, request: TestRequest = {}): readonly AskingRequest[] {
    return Array.from({ length: count }, () => this.ask(request));
  }
}

export function requestOf(request: TestRequest): AdmissionRequest {
  const { peer = "envoy", priority, user, headers, attributes, isObserved = false } = request;
  const service = "service" in request ? request.service : "orders";
  return {
    serviceName: service,
    peer,
    headers: new Map([
      [":method", "GET"],
      [":path", "/"],
      ...(priority === undefined ? [] : [["x-request-priority", priority] as const]),
      ...(user === undefined ? [] : [["x-user", user] as const]),
      ...Object.entries(headers ?? {}),
    ]),
    attributes: new Map(Object.entries(attributes ?? {})),
    isObserved,
  };
}
