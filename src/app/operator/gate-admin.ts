import { type GateSettings, gateProblem } from "../../core/admission/gate.js";
import { auditEntry } from "../../core/base/audit-entry.js";
import type { Clock } from "../../core/base/clock.js";
import type { JsonObject } from "../../core/base/json.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { RoomControls } from "../../decide/waiting-room/room-view.js";
import {
  type GateRegistry,
  roomGateName,
  thresholdsToJson,
} from "../../fleet/records/gate-registry.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type {
  ChangeRequest,
  GateAdministration,
  GateChange,
  GateThresholds,
} from "../../rpc/admin/admin-parts.js";
import { gateSettings } from "../fleet/fleet-maker.js";

interface GateAdminParts {
  readonly records: SharedRecords;
  readonly gates: GateRegistry;
  readonly policies: PolicySource;
  /** Waiting rooms have gates too. Undefined: there are none. */
  readonly rooms: Pick<RoomControls, "rooms"> | undefined;
  readonly clock: Pick<Clock, "epochUs">;
  /** Identifier of this replica in the audit log. */
  readonly replica: string;
}

/** Thresholds that an operator sets for opening and closing a gate. */
type Ratios = Pick<GateThresholds, "openBelowRatio" | "closeAboveRatio">;

/** Thresholds of gates, kept for all replicas until an operator restores those of the policy. */
export class GateAdmin implements GateAdministration {
  readonly #parts: GateAdminParts;

  constructor(parts: GateAdminParts) {
    this.#parts = parts;
  }

  services(isAsked: (service: ServicePolicy) => boolean): readonly string[] {
    return [...this.#policyGates(isAsked).keys()];
  }

  get(service: string): GateThresholds | undefined {
    const own = this.#policyGates().get(service);
    if (own === undefined) return undefined;
    const { gates } = this.#parts;
    // Thresholds that are invalid with the active policy are stored, but have no effect.
    const { openBelowRatio, closeAboveRatio } = gates.settingsOf(service, own);
    const isOverridden =
      openBelowRatio !== own.openBelowRatio || closeAboveRatio !== own.closeAboveRatio;
    const version = gates.find(service)?.version ?? 0;
    return { service, openBelowRatio, closeAboveRatio, isOverridden, version };
  }

  async set(
    service: string,
    ratios: Ratios | undefined,
    request: ChangeRequest & { readonly expectedVersion: number },
  ): Promise<GateChange> {
    const own = this.#policyGates().get(service);
    if (own === undefined) return { kind: "refused", why: "The policy has no such gate." };
    const problem = ratios && gateProblem({ ...own, ...ratios });
    if (problem !== undefined) return { kind: "refused", why: `Invalid thresholds: ${problem}.` };
    const before = this.#parts.gates.find(service);
    const { expectedVersion } = request;
    if (ratios === undefined && before === undefined) {
      const thresholds = this.get(service);
      if (thresholds !== undefined && expectedVersion === 0) return { kind: "changed", thresholds };
      return { kind: "conflict", version: 0 };
    }
    const value = ratios && this.#record(ratios, request);
    const outcome = await this.#parts.records.change({
      kind: "gate",
      id: service,
      value,
      expectedVersion,
      audit: auditEntry({
        actor: request.actor,
        action: "SetGateThresholds",
        subject: service,
        domain: undefined,
        before: before && ratiosOf(before),
        after: ratios && ratiosOf(ratios),
        reason: request.reason,
        replica: this.#parts.replica,
      }),
    });
    if (outcome.kind === "conflict") return outcome;
    if (outcome.kind === "full") {
      return {
        kind: "refused",
        why: "The maximum number of gates is changed already: clear some.",
      };
    }
    const thresholds = this.get(service);
    if (thresholds === undefined) return { kind: "refused", why: "The policy has no such gate." };
    return { kind: "changed", thresholds };
  }

  #record(ratios: Ratios, { actor, reason }: ChangeRequest): JsonObject {
    const setEpochMs = Math.floor(this.#parts.clock.epochUs() / 1_000);
    return thresholdsToJson({ ...ratiosOf(ratios), author: actor.name, reason, setEpochMs });
  }

  /** Returns the gates of services, then those of waiting rooms in front of them. */
  #policyGates(
    isAsked: (service: ServicePolicy) => boolean = () => true,
  ): ReadonlyMap<string, GateSettings> {
    const services = this.#services().filter(isAsked);
    const found = gateSettings(services);
    const names = new Set(services.map(({ name }) => name));
    for (const { policy } of this.#parts.rooms?.rooms() ?? []) {
      const { gate, name, service } = policy;
      if (gate !== undefined && names.has(service)) found.set(roomGateName(name), gate);
    }
    return found;
  }

  #services(): readonly ServicePolicy[] {
    return this.#parts.policies.current()?.services ?? [];
  }
}

function ratiosOf({ openBelowRatio, closeAboveRatio }: Ratios): Ratios & JsonObject {
  return { openBelowRatio, closeAboveRatio };
}
