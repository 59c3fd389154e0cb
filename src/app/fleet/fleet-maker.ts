import type { GateSettings } from "../../core/admission/gate.js";
import type { SignalReading } from "../../core/concurrency/concurrency-limit.js";
import type {
  NodeReport,
  ServiceRemainder,
  ServiceSamples,
  ShareSnapshot,
} from "../../core/feedback/feedback.js";
import { FleetLoop } from "../../core/feedback/feedback-loop.js";
import type { ServiceQueue } from "../../core/feedback/feedback-pressure.js";
import type { LoopTimes, ServiceLoopSettings } from "../../core/feedback/feedback-settings.js";
import type { ReadGateSettings } from "../../decide/admission/fleet-gate.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { Allocator, TermStart } from "../../fleet/loop/leader-term.js";
import type { Policy } from "../../policy/policy.js";
import { defaultProxies } from "../../policy/proxies/default-proxies.js";
import type { ProxyPolicy } from "../../policy/proxies/proxies.js";
import { configuredShare, hasCriticalRoutes } from "../../policy/services/configured-share.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";

interface PolicyMakerParts {
  readonly policies: PolicySource;
  readonly start: TermStart;
  readonly times: LoopTimes;
  /** Changes of gates by operators. Absent: there are never any. */
  readonly gates?: ChangedGates;
  /** The last reading of each service's signal, if there is one. */
  readonly readings: ReadonlyMap<string, KnownReading>;
}

/** Gates whose thresholds differ from those of their policy. */
export interface ChangedGates {
  /** A number that differs whenever any of them may have changed. */
  readonly version: number;
  readonly settingsOf: ReadGateSettings;
}

/** A reading as received. An equal later reading is another object. */
export interface KnownReading {
  readonly reading: SignalReading;
}

/** The loop of the core for the services of the active policy, also when the policy changes. */
export class PolicyMaker implements Allocator {
  readonly #parts: PolicyMakerParts;
  readonly #loop: FleetLoop;
  #policy: Policy | undefined;
  #gatesVersion: number | undefined;
  /** Readings already taken. Each is taken only once, or smoothing would count it again. */
  readonly #taken = new Map<string, KnownReading>();

  constructor(parts: PolicyMakerParts) {
    const { policies, start, times, gates } = parts;
    const { term, leaderId, nowMs, lastSnapshot } = start;
    this.#parts = parts;
    this.#policy = policies.current();
    this.#gatesVersion = gates?.version;
    const services = this.#settings();
    const from = lastSnapshot === undefined ? {} : { from: lastSnapshot };
    this.#loop = new FleetLoop({ term, leaderId, services, nowMs, times, ...from });
  }

  noteQueue(service: string, queue: ServiceQueue, nowMs: number): void {
    this.#loop.noteQueue(service, queue, nowMs);
  }

  take(report: NodeReport, nowMs: number): void {
    this.#loop.take(report, nowMs);
  }

  takeSamples(samples: ServiceSamples): void {
    this.#loop.takeSamples(samples);
  }

  takeRemainder(remainder: ServiceRemainder): void {
    this.#loop.takeRemainder(remainder);
  }

  *update(nowMs: number): Generator<undefined, ShareSnapshot> {
    const { policies, gates, readings } = this.#parts;
    const policy = policies.current();
    if (policy !== this.#policy || gates?.version !== this.#gatesVersion) {
      this.#policy = policy;
      this.#gatesVersion = gates?.version;
      this.#loop.configure(this.#settings(), nowMs);
      // An algorithm that was created anew has taken no readings.
      this.#taken.clear();
    }
    for (const [service, known] of readings) {
      if (this.#taken.get(service) === known) continue;
      this.#taken.set(service, known);
      this.#loop.read(service, { reading: known.reading, nowMs });
    }
    return yield* this.#loop.update(nowMs);
  }

  #settings(): readonly ServiceLoopSettings[] {
    const { services = [], proxies } = this.#policy ?? {};
    return loopSettings(services, proxies).map((settings) => {
      const { service, gate } = settings;
      const changed = gate && this.#parts.gates?.settingsOf(service, gate);
      return changed === undefined ? settings : { ...settings, gate: changed };
    });
  }
}

/**
 * Part of the demand that counts as critical at an Envoy that does not report its critical
 * requests. Too much costs others a part of the limit; too little refuses requests that must pass.
 */
const highRatioUnsaid = 0.25;

/** Returns the loop's settings for the services whose limits are sent to Envoys. */
export function loopSettings(
  services: readonly ServicePolicy[],
  proxies: ProxyPolicy = defaultProxies,
): readonly ServiceLoopSettings[] {
  return services.flatMap((service): readonly ServiceLoopSettings[] => {
    const { name, admission, concurrency } = service;
    if (concurrency === undefined || concurrency.feedback.length === 0) return [];
    return [
      {
        service: name,
        law: concurrency.settings,
        maxInFlight: admission?.maxInFlight,
        configuredShare: configuredShare(service, proxies),
        highRatio: hasCriticalRoutes(service) ? highRatioUnsaid : undefined,
        sigmoid: admission?.estimatedWait?.sigmoid,
        gate: admission?.gate,
      },
    ];
  });
}

/** Returns the settings of all services' gates. `changed` returns them as operators set them. */
export function gateSettings(
  services: readonly ServicePolicy[],
  changed: ReadGateSettings = (_service, own) => own,
): Map<string, GateSettings> {
  const found = new Map<string, GateSettings>();
  for (const { name, admission } of services) {
    if (admission?.gate !== undefined) found.set(name, changed(name, admission.gate));
  }
  return found;
}

/** Reports whether a policy has anything that replicas decide together once a second. */
export function needsLoop(services: readonly ServicePolicy[]): boolean {
  return loopSettings(services).length > 0 || gateSettings(services).size > 0;
}
