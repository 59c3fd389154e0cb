import type { GateSettings } from "../core/admission-settings.js";
import type { SignalReading } from "../core/concurrency-limit.js";
import type { NodeReport, ShareSheet } from "../core/feedback.js";
import { FleetLoop } from "../core/feedback-loop.js";
import { envoyShareDefault, type ServiceLoopSettings } from "../core/feedback-settings.js";
import type { PolicySource } from "../decide/policy-source.js";
import type { SheetQueue } from "../fleet/fleet-gates.js";
import type { ReignStart, SheetMaker } from "../fleet/sheet-maker.js";
import type { Policy } from "../policy/policy.js";
import type { ServicePolicy } from "../policy/service-policy.js";

/** What a `PolicyMaker` is made of. */
export interface PolicyMakerParts {
  readonly policies: PolicySource;
  readonly start: ReignStart;
  /** The last reading of each service's signal, as far as there is one. */
  readonly readings: ReadonlyMap<string, KnownReading>;
}

/** A reading as it came; the same one again is another object. */
export interface KnownReading {
  readonly reading: SignalReading;
}

/** The loop of the core for the services of the policy in force, whichever that is. */
export class PolicyMaker implements SheetMaker {
  readonly #parts: PolicyMakerParts;
  readonly #loop: FleetLoop;
  #policy: Policy | undefined;
  /** What was read in already: once each, or what is smoothed would not be. */
  readonly #taken = new Map<string, KnownReading>();

  constructor(parts: PolicyMakerParts) {
    const { policies, start } = parts;
    const { epoch, leaderId, nowMs, lastSheet } = start;
    this.#parts = parts;
    this.#policy = policies.current();
    const services = loopSettings(this.#policy?.services ?? []);
    const from = lastSheet === undefined ? {} : { from: lastSheet };
    this.#loop = new FleetLoop({ epoch, leaderId, services, nowMs, ...from });
  }

  noteQueue(service: string, queue: SheetQueue, nowMs: number): void {
    this.#loop.noteQueue(service, queue, nowMs);
  }

  update(reports: readonly NodeReport[], nowMs: number): ShareSheet {
    const { policies, readings } = this.#parts;
    const policy = policies.current();
    if (policy !== this.#policy) {
      this.#policy = policy;
      this.#loop.configure(loopSettings(policy?.services ?? []), nowMs);
      // A law that was made anew has read nothing.
      this.#taken.clear();
    }
    for (const [service, known] of readings) {
      if (this.#taken.get(service) === known) continue;
      this.#taken.set(service, known);
      this.#loop.read(service, { reading: known.reading, nowMs });
    }
    return this.#loop.update(reports, nowMs);
  }
}

/** What the loop goes by for the services whose limits go back to Envoys. */
export function loopSettings(services: readonly ServicePolicy[]): readonly ServiceLoopSettings[] {
  return services.flatMap((service): readonly ServiceLoopSettings[] => {
    const { name, admission, concurrency } = service;
    if (concurrency === undefined || concurrency.feedback.length === 0) return [];
    return [
      {
        service: name,
        law: concurrency.settings,
        maxInFlight: admission?.maxInFlight,
        configuredShare: envoyShareDefault,
        highRatio: hasCriticalRoutes(service) ? 0 : undefined,
        sigmoid: admission?.estimatedWait?.sigmoid,
        gate: admission?.gate,
      },
    ];
  });
}

/** The services that have a gate, with its settings. */
export function gateSettings(services: readonly ServicePolicy[]): Map<string, GateSettings> {
  const found = new Map<string, GateSettings>();
  for (const { name, admission } of services) {
    if (admission?.gate !== undefined) found.set(name, admission.gate);
  }
  return found;
}

/** Whether a policy has anything that replicas decide together once a second. */
export function needsLoop(services: readonly ServicePolicy[]): boolean {
  return loopSettings(services).length > 0 || gateSettings(services).size > 0;
}

/**
 * Routes of what a policy calls critical run at HIGH; Envoys tell how much that is. Paths of
 * authentication do not count: every policy has some, and a permit of each Envoy would be set aside
 * for HIGH where no route runs there.
 */
function hasCriticalRoutes({ priority }: ServicePolicy): boolean {
  const { rules, usual } = priority;
  return usual === "critical" || rules.some(({ is }) => is === "critical");
}
