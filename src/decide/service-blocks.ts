import type { RejectSettings } from "../core/admission-settings.js";
import type { Random } from "../core/clock.js";
import { Gate } from "../core/gate.js";
import type { AdmissionPolicy, ServicePolicy } from "../policy/service-policy.js";
import { type AdmissionCheck, createChecks } from "./admission-checks.js";
import { RateLimitAsker } from "./admission-rate-limit.js";
import { AdmissionTerms } from "./admission-terms.js";
import type { Decider } from "./decider.js";
import { KeyedPermits } from "./permits.js";
import { RefusalCache } from "./refusal-cache.js";
import { ServiceHealth } from "./service-health.js";
import { Throttles } from "./throttles.js";
import type { Visit } from "./visit.js";
import type { VisitOutcome } from "./visit-outcome.js";

/** What the blocks of a policy are made with. */
export interface BlockParts {
  readonly random: Random;
  /** Whether this process has more to do than it can do in time. */
  readonly isOverloaded: (nowMs: number) => boolean;
  readonly decider: Pick<Decider, "prepare" | "isCurrent" | "ask">;
}

/** How rate limits refuse where admission is off. */
const defaultRejectSettings: RejectSettings = {
  retryAfterSecondsMin: 1,
  retryAfterJitterRatio: 0.5,
  statusByCause: {},
};

/**
 * What one policy makes of a service, but for its permits. Made anew with each policy; what has
 * learnt something is taken over from the one before wherever its own settings are the same.
 */
export class ServiceBlocks {
  readonly service: ServicePolicy;
  readonly terms: AdmissionTerms;
  readonly refusals: RefusalCache;
  /** Undefined where admission is off. */
  readonly admission: AdmissionBlocks | undefined;
  /** Undefined where the policy asks for none here. */
  readonly rateLimit: RateLimitAsker | undefined;

  constructor(parts: BlockParts, service: ServicePolicy, before: ServiceBlocks | undefined) {
    const draw = (): number => parts.random.next();
    this.service = service;
    this.terms = new AdmissionTerms(service, draw);
    const { admission, rateLimit } = service;
    this.refusals = new RefusalCache(admission?.reject ?? defaultRejectSettings, draw);
    this.admission =
      admission && new AdmissionBlocks(parts, { policy: admission, before: before?.admission });
    // Its queries are known by the policy that matched them, so there is nothing to take over.
    this.rateLimit =
      rateLimit?.inExtProc === true ? new RateLimitAsker(parts.decider, rateLimit) : undefined;
  }

  /** Teaches law, throttle and load what a request taught that held a permit. */
  learn(visit: Visit, { outcome, isAccepted, isFailed }: VisitOutcome, nowMs: number): void {
    const { admittedMs: startMs, inFlight, position, caller, pool } = visit;
    if (this.service.concurrency?.sources.includes("extProc") === true) {
      pool.learn({ startMs, endMs: nowMs, inFlight, position, outcome });
    }
    const { throttles, health } = this.admission ?? {};
    if (isAccepted === true) throttles?.accepted(caller, nowMs);
    else if (isAccepted === false) throttles?.refused(caller, nowMs);
    health?.ended({ outcome, isFailed, latencyMs: nowMs - startMs, nowMs });
  }
}

/** The same for admission alone. */
class AdmissionBlocks {
  readonly policy: AdmissionPolicy;
  readonly checks: readonly AdmissionCheck[];
  readonly gate: Gate | undefined;
  readonly throttles: Throttles | undefined;
  readonly health: ServiceHealth | undefined;
  readonly keyed: KeyedPermits | undefined;

  constructor(
    { random, isOverloaded }: BlockParts,
    { policy, before }: { policy: AdmissionPolicy; before: AdmissionBlocks | undefined },
  ) {
    const draw = (): number => random.next();
    this.policy = policy;
    this.gate = gateOf(policy, before?.gate);
    const { throttle, load, maxInFlightPer } = policy;
    this.throttles = isSame(throttle, before?.policy.throttle)
      ? before?.throttles
      : throttle && new Throttles(throttle);
    this.health = isSame(load, before?.policy.load)
      ? before?.health
      : load && new ServiceHealth(load);
    this.keyed = isSame(maxInFlightPer, before?.policy.maxInFlightPer)
      ? before?.keyed
      : maxInFlightPer && new KeyedPermits(maxInFlightPer);
    const { gate, throttles, health, keyed } = this;
    this.checks = createChecks({ policy, gate, throttles, health, keyed, draw, isOverloaded });
  }
}

/** A gate keeps its state: thresholds change while it runs. */
function gateOf({ gate }: AdmissionPolicy, before: Gate | undefined): Gate | undefined {
  if (gate === undefined) return undefined;
  if (before === undefined) return new Gate(gate);
  // The policy's reader has refused what the gate would.
  before.change(gate);
  return before;
}

/** Settings are plain data, made in one place in one order of fields. */
function isSame<T extends object>(one: T | undefined, other: T | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
