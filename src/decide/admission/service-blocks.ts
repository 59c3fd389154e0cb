import { budgetHeaders } from "../../core/admission/deadline.js";
import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import { Gate, type GateSettings } from "../../core/admission/gate.js";
import { ImmediateResponseCache } from "../../core/admission/immediate-response-cache.js";
import { PermitsByKey } from "../../core/admission/permits.js";
import type { Priority } from "../../core/admission/priority.js";
import {
  isGrpcRequest,
  type RefusalCause,
  type RejectSettings,
} from "../../core/admission/refusal.js";
import type { Random } from "../../core/base/clock.js";
import type { RequestOutcome } from "../../core/calls/request-outcome.js";
import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import { markFields, type RequestMarks } from "../../core/limits/request-marks.js";
import { requestKey } from "../../policy/services/callers.js";
import type { AdmissionPolicy, KeyedPermits } from "../../policy/services/service-admission.js";
import type { IndexedService } from "../../policy/services/service-index.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { BudgetAsker } from "../budget/budget-call.js";
import { callFactsOf } from "../budget/call-facts.js";
import type { RefusalLog, RefusingCause } from "../rate-limit/refusal-log.js";
import type { AdmissionGrant, AdmissionRequest, AdmissionVerdict } from "./admission-call.js";
import { type AdmissionCheck, createChecks } from "./admission-checks.js";
import { RateLimitAsker, type RateLimitDecider, rateLimitQuery } from "./admission-rate-limit.js";
import type { AdmittedRequest } from "./admitted-request.js";
import type { DelayedRequests } from "./delayed-requests.js";
import { type ReadGateSettings, setGate } from "./fleet-gate.js";
import { ServiceHealth } from "./service-health.js";
import { Throttles } from "./throttles.js";

/** Dependencies of `ServiceBlocks`. */
export interface BlockParts {
  readonly random: Random;
  /** Whether this process is overloaded. */
  readonly isOverloaded: () => boolean;
  /** Whether this process handles events late. Absent: never. */
  readonly isLate?: (nowMs: number) => boolean;
  readonly decider: RateLimitDecider;
  /** Holds requests that rate limits delay; shared by all services. */
  readonly delayed: DelayedRequests;
  /** Reads operators' changes to gates. Absent: there are none. */
  readonly gateSettings?: ReadGateSettings;
  /** Logs refusals. Absent: refusals are not logged. */
  readonly refusalLog?: RefusalLog | undefined;
  /** Returns the budgets of a service under the active policy. Absent: there are none. */
  readonly budgetsOf?: (service: ServicePolicy) => BudgetAsker | undefined;
}

/** A service of a policy, with the headers that limits may set on its requests. */
export interface AdmittedService extends IndexedService {
  /** Headers that limits set, in lower case. They are removed from callers' requests. */
  readonly ownHeaders: readonly string[];
}

/** Settings for refusals by rate limits if admission is off. */
const defaultRejectSettings: RejectSettings = {
  retryAfterSecondsMin: 1,
  retryAfterJitterRatio: 0.5,
  statusByCause: {},
};

/**
 * The parts of a service under one policy, except its permits. Created anew for each policy. Parts
 * that learn are kept from the previous policy if their settings are the same; a gate is always
 * kept.
 */
export class ServiceBlocks {
  readonly service: ServicePolicy;
  readonly terms: AdmissionTerms;
  readonly refusals: ImmediateResponseCache;
  /** Undefined if admission is off. */
  readonly admission: AdmissionBlocks | undefined;
  /** Undefined if the policy does not check rate limits here. */
  readonly rateLimit: RateLimitAsker | undefined;
  /** Undefined if no usage of its calls is measured. */
  readonly budgets: BudgetAsker | undefined;
  /** Undefined if refusals are not logged. */
  readonly #refusalLog: RefusalLog | undefined;
  readonly #refusing = new Map<RefusalCause, RefusingCause>();
  readonly #isLate: BlockParts["isLate"];

  constructor(
    parts: BlockParts,
    { service, ownHeaders }: AdmittedService,
    before: ServiceBlocks | undefined,
  ) {
    const draw = (): number => parts.random.next();
    this.service = service;
    this.#isLate = parts.isLate;
    this.terms = new AdmissionTerms(service, ownHeaders, draw);
    const { admission, rateLimit } = service;
    const settings = admission?.reject ?? defaultRejectSettings;
    this.refusals = new ImmediateResponseCache({ service: service.name, settings, draw });
    this.#refusalLog = (settings.disclosure ?? defaultDisclosure).log
      ? parts.refusalLog
      : undefined;
    this.admission =
      admission &&
      new AdmissionBlocks(parts, service, {
        policy: admission,
        before: before?.admission,
      });
    this.budgets = parts.budgetsOf?.(service);
    // Cached queries are valid only for the policy that matched them, so none are kept.
    this.rateLimit =
      rateLimit?.inExtProc === true
        ? new RateLimitAsker(
            parts.decider,
            (request) => rateLimitQuery(rateLimit, request),
            parts.delayed,
          )
        : undefined;
  }

  /** Passes a refused request to the log, which logs a sample. */
  tellRefused(cause: RefusalCause, nowMs: number): void {
    // The decider logs denials by rate limits itself.
    if (this.#refusalLog === undefined || cause === "rateLimit") return;
    let refusing = this.#refusing.get(cause);
    if (refusing === undefined) {
      refusing = { service: this.service.name, cause };
      this.#refusing.set(cause, refusing);
    }
    this.#refusalLog.noteCause(refusing, nowMs);
  }

  /**
   * Updates algorithm, throttle and load signals with the outcome of a request that held a permit.
   * While this process is late, only the throttle learns: the measured time is not the latency of
   * the service.
   */
  learn(
    visit: AdmittedRequest,
    { outcome, isLeft, isAccepted, isFailed }: RequestOutcome,
    nowMs: number,
  ): void {
    const { admittedMs: startMs, inFlight, position, caller, pool } = visit;
    const isLate = this.#isLate?.(nowMs) === true;
    if (!isLate && this.service.concurrency?.sources.includes("extProc") === true) {
      const { demand } = pool;
      pool.learn({ startMs, endMs: nowMs, inFlight, position, outcome, isLeft, demand });
    }
    const { throttles, health } = this.admission ?? {};
    if (isAccepted === true) throttles?.accepted(caller, nowMs);
    else if (isAccepted === false) throttles?.refused(caller, nowMs);
    if (isLate) return;
    health?.ended({ outcome, isFailed, latencyMs: nowMs - startMs, nowMs });
  }
}

function keyOf(
  per: KeyedPermits["per"],
  usage: ServicePolicy["usage"],
  request: AdmissionRequest,
): string {
  if (per.kind !== "model") return requestKey(per, request);
  return usage === undefined ? "" : callFactsOf(usage, request).model;
}

/** The parts of `ServiceBlocks` for admission. */
class AdmissionBlocks {
  readonly policy: AdmissionPolicy;
  readonly checks: readonly AdmissionCheck[];
  readonly gate: Gate | undefined;
  readonly throttles: Throttles | undefined;
  readonly health: ServiceHealth | undefined;
  readonly keyed: PermitsByKey | undefined;
  /** The key under which `maxInFlightPer` counts a request. Empty if the request has none. */
  readonly keyOf: (request: AdmissionRequest) => string;
  readonly #isOverloaded: () => boolean;
  readonly #gateSettings: () => GateSettings | undefined;

  constructor(
    parts: BlockParts,
    { name: service, usage }: ServicePolicy,
    { policy, before }: { policy: AdmissionPolicy; before: AdmissionBlocks | undefined },
  ) {
    const { random, isOverloaded } = parts;
    const draw = (): number => random.next();
    this.policy = policy;
    this.#isOverloaded = isOverloaded;
    this.#gateSettings = () =>
      policy.gate && (parts.gateSettings?.(service, policy.gate) ?? policy.gate);
    this.gate = gateOf(this.#gateSettings(), before?.gate);
    const { throttle, load, maxInFlightPer } = policy;
    this.throttles = isSame(throttle, before?.policy.throttle)
      ? before?.throttles
      : throttle && new Throttles(throttle);
    this.health = isSame(load, before?.policy.load)
      ? before?.health
      : load && new ServiceHealth(load);
    this.keyed = isSame(maxInFlightPer, before?.policy.maxInFlightPer)
      ? before?.keyed
      : maxInFlightPer && new PermitsByKey(maxInFlightPer);
    this.keyOf = (request) =>
      maxInFlightPer === undefined ? "" : keyOf(maxInFlightPer.per, usage, request);
    const { gate, throttles, health, keyed } = this;
    const learned = { gate, throttles, health, keyed, keyOf: this.keyOf };
    this.checks = createChecks({ policy, ...learned, draw, isOverloaded });
  }

  /**
   * Whether requests of all classes, even critical ones, pass without a decision now: a late
   * decision must not be worse than none.
   */
  passesUndecided(): boolean {
    const { ownOverload, dryRun } = this.policy;
    return ownOverload === "allow" && !dryRun.has("load") && this.#isOverloaded();
  }

  /** Applies operators' changes to the gate. */
  renewGate(): void {
    const settings = this.#gateSettings();
    if (this.gate !== undefined && settings !== undefined) setGate(this.gate, settings);
  }
}

/** Keeps the state of an existing gate, and changes its thresholds. */
function gateOf(settings: GateSettings | undefined, before: Gate | undefined): Gate | undefined {
  if (settings === undefined) return undefined;
  if (before === undefined) return new Gate(settings);
  // The policy's reader has already rejected what the gate would reject.
  before.change(settings);
  return before;
}

/** Compares settings as JSON: they are plain data with a fixed order of fields. */
function isSame<T extends object>(one: T | undefined, other: T | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

type Admitted = Extract<AdmissionVerdict, { readonly kind: "admitted" }>;

/** Grants for admitted requests of a service. Nearly always the same few objects. */
class AdmissionTerms {
  readonly #policy: ServicePolicy;
  readonly #draw: () => number;
  readonly #full: Readonly<Record<Priority, AdmissionGrant>>;
  readonly #sampled: Readonly<Record<Priority, AdmissionGrant>>;
  readonly #unsampled: Readonly<Record<Priority, AdmissionGrant>>;
  /** For requests whose end is not followed. */
  readonly unfollowed: Readonly<Record<Priority, Admitted>>;
  /** For a bypassed path: sets no class, and removes the caller's, which must not be trusted. */
  readonly bypassed: AdmissionVerdict;

  /** @param draw uniform in [0, 1) */
  constructor(policy: ServicePolicy, removeHeaders: readonly string[], draw: () => number) {
    this.#policy = policy;
    this.#draw = draw;
    const followed = { removeHeaders, isFollowed: true };
    this.#full = byPriority(policy, { ...followed, responseHeaders: undefined });
    this.#sampled = byPriority(policy, { ...followed, responseHeaders: "send" });
    this.#unsampled = byPriority(policy, { ...followed, responseHeaders: "skip" });
    const unsaid = { removeHeaders, isFollowed: false, responseHeaders: undefined };
    const unfollowed = byPriority(policy, unsaid);
    this.unfollowed = {
      critical: passed(unfollowed.critical),
      high: passed(unfollowed.high),
      normal: passed(unfollowed.normal),
      low: passed(unfollowed.low),
    };
    this.bypassed = passed({
      ...unfollowed[policy.priority.default],
      setHeaders: [],
      removeHeaders: [policy.priority.header, ...removeHeaders],
      metadata: undefined,
    });
  }

  /** Returns the grant of a request that holds a permit. `waitedMs`: time since its arrival. */
  followed(visit: AdmittedRequest, waitedMs: number): AdmissionGrant {
    const terms = this.measured(visit);
    const deadline = this.#policy.admission?.deadline;
    if (deadline === undefined || visit.deadline === undefined) return terms;
    const isGrpc = isGrpcRequest(visit.request.headers.get("content-type"));
    const budget = budgetHeaders(deadline, { deadline: visit.deadline, waitedMs, isGrpc });
    return { ...terms, setHeaders: [...terms.setHeaders, ...budget] };
  }

  /** Returns the grant of a followed request. Sampling never skips a call that budgets follow. */
  measured({ priority, marks, budgeted }: AdmittedRequest): AdmissionGrant {
    if (budgeted === undefined) return marked(this.#sample()[priority], marks);
    const sampleRatio = this.#policy.admission?.sampleRatio ?? 1;
    const terms = marked((sampleRatio >= 1 ? this.#full : this.#sampled)[priority], marks);
    const { metadata } = budgeted;
    if (terms.metadata === undefined) return { ...terms, metadata };
    return { ...terms, metadata: new Map([...terms.metadata, ...metadata]) };
  }

  /** Returns the verdict on a request that needs no permit. */
  unfollowedBy({ priority, marks }: AdmittedRequest): AdmissionVerdict {
    const plain = this.unfollowed[priority];
    return marks === undefined ? plain : passed(marked(plain.terms, marks));
  }

  #sample(): Readonly<Record<Priority, AdmissionGrant>> {
    const sampleRatio = this.#policy.admission?.sampleRatio ?? 1;
    if (sampleRatio >= 1) return this.#full;
    return this.#draw() < sampleRatio ? this.#sampled : this.#unsampled;
  }
}

/**
 * Returns the grant with what limits change. Generated routes match on the metadata `fallback`,
 * which no caller can set.
 */
function marked(terms: AdmissionGrant, marks: RequestMarks | undefined): AdmissionGrant {
  if (marks === undefined) return terms;
  const { fallback } = marks;
  const sent = { ...terms, setHeaders: [...terms.setHeaders, ...markFields(marks)] };
  if (fallback === undefined) return sent;
  if (fallback.kind === "header") return { ...sent, clearsRoute: true };
  // Generated routes match on it: unlike a header, callers cannot set it.
  const metadata = new Map([...(terms.metadata ?? []), ["fallback", fallback.cluster]] as const);
  return { ...sent, clearsRoute: true, metadata };
}

function passed(terms: AdmissionGrant): Admitted {
  return { kind: "admitted", terms, ticket: undefined };
}

function byPriority(
  { name, priority: { header } }: ServicePolicy,
  fields: Pick<AdmissionGrant, "responseHeaders" | "isFollowed" | "removeHeaders">,
): Readonly<Record<Priority, AdmissionGrant>> {
  const of = (priority: Priority): AdmissionGrant => ({
    priority,
    setHeaders: [{ name: header, value: priority }],
    metadata: new Map<string, ScalarValue>([
      ["priority", priority],
      ["service", name],
    ]),
    ...fields,
  });
  return { critical: of("critical"), high: of("high"), normal: of("normal"), low: of("low") };
}
