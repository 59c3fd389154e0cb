import { expectedTimeoutHeader, grpcTimeoutHeader } from "../../core/admission/deadline.js";
import type { BufferedBody } from "../../core/admission/exchange.js";
import type { HostReadings } from "../../core/admission/host-reading.js";
import { orcaHeader } from "../../core/admission/orca.js";
import type { Cancel } from "../../core/base/clock.js";
import type { CallFacts } from "../../core/budgets/usage.js";
import type { SignalUpdate } from "../../core/concurrency/signal-update.js";
import { readCallFacts } from "../../core/usage/call-facts.js";
import { parseCount } from "../../core/usage/usage-fields.js";
import { isBudgeted, readsRequestBody } from "../../policy/budgets/budget-policy.js";
import type { Policy } from "../../policy/policy.js";
import { addBudgetNeeds, addRequestNeeds, type RequestNeeds } from "../../policy/request-needs.js";
import { softAnswers } from "../../policy/services/soft-answers.js";
import { addUsageNeeds } from "../budget/call-facts.js";
import type { PolicySource } from "../rate-limit/policy-source.js";
import type {
  AdmissionAnswer,
  AdmissionCall,
  AdmissionDecider,
  AdmissionRequest,
} from "./admission-call.js";
import { DelayedRequests } from "./delayed-requests.js";
import { ServiceAdmission, type ServiceAdmissionParts } from "./service-admission.js";
import type { ServiceEvent } from "./service-events.js";

/** An event of admission, for logs. */
export type AdmissionEvent = ServiceEvent;

interface AdmissionParts extends Omit<ServiceAdmissionParts, "delayed"> {
  readonly policies: PolicySource;
}

/** Time between two updates of each gate and each limit, in milliseconds. */
export const tickMs = 1_000;

/** Response headers that are always needed. Source: Envoy, router filter (`x-envoy-overloaded`). */
const responseHeaderNames: ReadonlySet<string> = new Set([
  ":status",
  "grpc-status",
  orcaHeader,
  "x-envoy-overloaded",
]);

/** Request headers that are always needed, for the service, the deadline and refusals. */
const commonHeaderNames: readonly string[] = [
  ":authority",
  ":method",
  "content-type",
  grpcTimeoutHeader,
  expectedTimeoutHeader,
];

/**
 * Admission to all services of the active policy. A service keeps what it has learned, its requests
 * in flight and its queue as long as policies contain it.
 */
export class Admission implements AdmissionDecider {
  readonly #parts: AdmissionParts & ServiceAdmissionParts;
  #policy: Policy | undefined;
  #services: ReadonlyMap<string, ServiceAdmission> = new Map();
  #requestHeaderNames: ReadonlySet<string> = new Set();
  #responseHeaderNames: ReadonlySet<string> = new Set();
  #attributeNames: ReadonlySet<string> = new Set();
  #metadataPaths: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  #cancelTick: Cancel;
  /** Requests for services that the policy does not contain. They pass. */
  unknownCount = 0;

  /** Updates gates and limits once per second, until `close`. */
  constructor(parts: AdmissionParts) {
    this.#parts = { ...parts, delayed: new DelayedRequests(parts.clock) };
    this.#cancelTick = this.#scheduleTick();
    this.#follow();
  }

  get responseHeaderNames(): ReadonlySet<string> {
    this.#follow();
    return this.#responseHeaderNames;
  }

  get requestHeaderNames(): ReadonlySet<string> {
    this.#follow();
    return this.#requestHeaderNames;
  }

  get attributeNames(): ReadonlySet<string> {
    this.#follow();
    return this.#attributeNames;
  }

  get metadataPaths(): ReadonlyMap<string, ReadonlySet<string>> {
    this.#follow();
    return this.#metadataPaths;
  }

  /** The services of the active policy. */
  services(): Iterable<ServiceAdmission> {
    this.#follow();
    return this.#services.values();
  }

  readsBody(request: AdmissionRequest): boolean {
    this.#follow();
    const usage = this.#find(request)?.policy.usage;
    return usage !== undefined && readsRequestBody(usage);
  }

  readBody({ headers }: AdmissionRequest, { bytes, isWhole }: BufferedBody): CallFacts {
    if (isWhole) return readCallFacts(bytes);
    return readCallFacts(bytes, parseCount(headers.get("content-length") ?? ""));
  }

  begin(request: AdmissionRequest, call: AdmissionCall): AdmissionAnswer {
    this.#follow();
    const service = this.#find(request);
    if (service === undefined) {
      this.unknownCount += 1;
      return passing;
    }
    return service.begin(request, call);
  }

  /**
   * Applies readings for a service's algorithm `signal`, by key if its limit is split. Ignored if a
   * policy change since the readings were requested has removed the service.
   */
  read(service: string, update: SignalUpdate): void {
    this.#follow();
    this.#services.get(service)?.read(update);
  }

  /** Applies readings of this replica's host, valid for `holdMs` without newer ones. */
  readHost(readings: HostReadings, holdMs: number): void {
    for (const service of this.services()) service.readHost(readings, holdMs);
  }

  /** Stops the timer, and gives up all shares. Requests in flight continue. */
  close(): void {
    this.#cancelTick();
    for (const service of this.#services.values()) service.close();
  }

  #find({ serviceName, headers }: AdmissionRequest): ServiceAdmission | undefined {
    if (serviceName !== undefined) return this.#services.get(serviceName);
    const authority = headers.get(":authority");
    if (authority === undefined) return undefined;
    const name = this.#policy?.serviceIndex.at(authority)?.service.name;
    return name === undefined ? undefined : this.#services.get(name);
  }

  /** Applies a new policy at the first use after the change. */
  #follow(): void {
    const policy = this.#parts.policies.current();
    if (policy === this.#policy) return;
    this.#policy = policy;
    const before = this.#services;
    const services = new Map<string, ServiceAdmission>();
    const needs: RequestNeeds = {
      headers: new Set(commonHeaderNames),
      attributes: new Set(),
    };
    const responseHeaders = new Set(responseHeaderNames);
    const metadataPaths = new Map<string, Set<string>>();
    const usageNeeds = { responseHeaders, metadataPaths };
    const answersOf = softAnswers(policy ?? { budgets: [], rules: [] });
    for (const { name } of policy?.services ?? []) {
      const found = policy?.serviceIndex.named(name);
      if (found === undefined) continue;
      const indexed = { ...found, ownHeaders: answersOf(found.service).headers };
      addRequestNeeds(indexed.service, indexed.classifier, needs);
      const { usage } = indexed.service;
      if (usage !== undefined) addUsageNeeds(usage, usageNeeds);
      for (const budget of policy?.budgets ?? []) {
        if (isBudgeted(found.service, budget)) addBudgetNeeds(budget, needs);
      }
      const known = before.get(name);
      known?.configure(indexed);
      services.set(name, known ?? new ServiceAdmission(this.#parts, indexed));
    }
    for (const [name, service] of before) if (!services.has(name)) service.close();
    this.#services = services;
    this.#requestHeaderNames = needs.headers;
    this.#responseHeaderNames = responseHeaders;
    this.#metadataPaths = metadataPaths;
    this.#attributeNames = needs.attributes;
  }

  #scheduleTick(): Cancel {
    const { clock } = this.#parts;
    return clock.schedule(tickMs, () => {
      this.#cancelTick = this.#scheduleTick();
      this.#follow();
      const nowMs = clock.monotonicMs();
      for (const service of this.#services.values()) service.tick(nowMs);
    });
  }
}

/** For a service that the policy does not contain: it is unknown, and its end is not followed. */
const passing: AdmissionAnswer = {
  kind: "admitted",
  terms: {
    priority: "normal",
    setHeaders: [],
    removeHeaders: [],
    metadata: undefined,
    responseHeaders: undefined,
    isFollowed: false,
  },
  ticket: undefined,
};
