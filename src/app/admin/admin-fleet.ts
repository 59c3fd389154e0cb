import { priorities } from "../../core/admission/priority.js";
import { refusalCauses } from "../../core/admission/refusal.js";
import {
  type NodeReport,
  reservedHighOf,
  type ServiceShares,
} from "../../core/feedback/feedback.js";
import type { Admission } from "../../decide/admission/admission.js";
import type { AdmissionCounts } from "../../decide/admission/admission-counts.js";
import type { ServiceAdmission } from "../../decide/admission/service-admission.js";
import type { RegionLending } from "../../fleet/regions/lender.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type {
  FleetView,
  NodeShareView,
  ServiceState,
  SignalView,
} from "../../rpc/admin/admin-parts.js";
import type { ControlPlane } from "../../rpc/control/control-plane.js";
import type { PolledSource } from "../admission/signal-sources.js";
import type { FleetLoopStatus } from "../fleet/fleet-loop.js";

interface AdminFleetParts {
  readonly replica: string;
  readonly policies: { current(): { readonly services: readonly ServicePolicy[] } | undefined };
  readonly loop: () => FleetLoopStatus | undefined;
  readonly plane: Pick<ControlPlane, "registry" | "lastReports">;
  readonly admission: Pick<Admission, "services">;
  readonly signals: () => Iterable<PolledSource>;
  /** Decisions for a service in the last ten seconds. */
  readonly recentOf: (service: string) => { readonly admitted: number; readonly refused: number };
  readonly replicaCount: () => number;
  readonly store: string;
  /** Region of this replica. Empty: there are no regions. */
  readonly region: string;
  readonly lending: () => readonly RegionLending[];
  readonly isDegraded: () => boolean;
  /** Monotonic time, in milliseconds. */
  readonly nowMs: () => number;
}

/** Maximum number of services that are reported. A policy may have more. */
const reportedServicesMax = 1_000;

/** Maximum number of keys of one service's signal that are reported. */
const reportedSignalsMax = 100;

/** Maximum number of shares of one service that are reported. */
const reportedSharesMax = 200;

/** State of a service that is read once a second, without the shares of Envoys (may be many). */
export type ServiceLevels = Omit<
  ServiceState,
  | "shares"
  | "signals"
  | "admittedCount"
  | "refusedCount"
  | "recentAdmittedCount"
  | "recentRefusedCount"
>;

/** Creates the view of the fleet and its services, for the admin API. */
export function createFleetView(parts: AdminFleetParts): FleetView {
  return {
    fleet: () => {
      const status = parts.loop();
      return {
        replica: parts.replica,
        isLeading: status?.isLeading === true,
        leader: status?.snapshot?.leaderId,
        term: status?.snapshot?.term ?? 0,
        replicaCount: parts.replicaCount(),
        store: parts.store,
        region: parts.region,
        regions: parts.lending(),
        isDegraded: parts.isDegraded(),
      };
    },
    services: (isAsked) => {
      const services = parts.policies.current()?.services ?? [];
      const admissions = new Map([...parts.admission.services()].map((one) => [one.name, one]));
      return services
        .filter(isAsked)
        .slice(0, reportedServicesMax)
        .map((service) => stateOf(parts, service, admissions.get(service.name)));
    },
  };
}

function stateOf(
  parts: AdminFleetParts,
  service: ServicePolicy,
  admission: ServiceAdmission | undefined,
): ServiceState {
  const shared = parts.loop()?.snapshot?.services.get(service.name);
  const recent = parts.recentOf(service.name);
  return {
    ...levelsOf(parts, service, admission),
    recentAdmittedCount: recent.admitted,
    recentRefusedCount: recent.refused,
    ...totalsOf(admission?.counts),
    shares: shared === undefined ? [] : sharesOf(parts, service.name, shared),
    signals: signalsOf(parts, service, admission),
  };
}

/** Returns the current state of a service. */
export function levelsOf(
  parts: Pick<AdminFleetParts, "loop" | "nowMs">,
  { name, concurrency, admission: admissionPolicy }: ServicePolicy,
  admission: ServiceAdmission | undefined,
): ServiceLevels {
  const nowMs = parts.nowMs();
  const shared = parts.loop()?.snapshot?.services.get(name);
  const own = admission === undefined ? nothingHere : pressureOf(admission, nowMs);
  const ownGate = admission?.blocks.admission?.gate?.state;
  const gate = shared?.gate ?? ownGate;
  const limit = shared?.limit ?? own.limit;
  return {
    name,
    law: concurrency?.settings.law ?? "none",
    concurrencyLimit: Number.isFinite(limit) ? limit : undefined,
    inFlight: shared?.facts.inFlight ?? own.inFlightCount,
    rttMs: shared?.facts.rttMs,
    minRttMs: shared?.facts.minRttMs,
    gradient: shared?.facts.gradient,
    gate: admissionPolicy?.gate === undefined ? undefined : gate,
    waitingCount: own.waitingCount,
    overflowPerSecond: shared?.facts.overflowPerSecond ?? 0,
    reservedHigh: shared === undefined ? 0 : reservedHighOf(shared),
  };
}

/** Returns readings, by key if there are keys: those in the policy, and all others together. */
function signalsOf(
  { signals }: Pick<AdminFleetParts, "signals">,
  { name, concurrency }: ServicePolicy,
  admission: ServiceAdmission | undefined,
): readonly SignalView[] {
  const source = [...signals()].find(({ service }) => service === name);
  if (source === undefined || admission === undefined) return [];
  const { kind, poller } = source;
  const readings = admission.pools.readings();
  const named = admission.pools.isSplit ? (concurrency?.per?.names ?? []) : [""];
  return [...new Set([...named, ...readings.keys()])].slice(0, reportedSignalsMax).map((key) => ({
    key,
    source: kind,
    reading: readings.get(key),
    ageMs: poller.ageMs(),
    isMissing: poller.isMissing,
    failure: poller.failure,
  }));
}

/** Sums this replica's decisions over all classes. */
function totalsOf(counts: AdmissionCounts | undefined) {
  let admittedCount = 0;
  let refusedCount = 0;
  for (const priority of priorities) {
    admittedCount += counts?.admitted[priority] ?? 0;
    for (const cause of refusalCauses) refusedCount += counts?.refused.of(priority, cause) ?? 0;
  }
  return { admittedCount, refusedCount };
}

const nothingHere = {
  limit: Number.POSITIVE_INFINITY,
  inFlightCount: 0,
  waitingCount: 0,
};

/** Returns the state of the service's pools here together, and the limit of the whole fleet. */
function pressureOf(service: ServiceAdmission, nowMs: number): typeof nothingHere {
  let limit = 0;
  let inFlightCount = 0;
  let waitingCount = 0;
  for (const { pool } of service.pools.all()) {
    const state = pool.state(nowMs);
    const learned = pool.learnsHere ? pool.law?.limit : undefined;
    limit += Math.max(1, Math.min(pool.fleetLimit(), learned ?? Number.POSITIVE_INFINITY));
    inFlightCount += state.inFlightCount;
    waitingCount += state.waitingCount;
  }
  return { limit, inFlightCount, waitingCount };
}

function sharesOf(
  { plane, nowMs }: AdminFleetParts,
  service: string,
  { shares }: ServiceShares,
): readonly NodeShareView[] {
  const reports = new Map<string, NodeReport>();
  for (const report of plane.lastReports) {
    if (report.service === service) reports.set(report.nodeId, report);
  }
  return [...shares].slice(0, reportedSharesMax).map(([node, share]) => {
    const known = plane.registry.find(node);
    const version = known?.ledger.acknowledgedLayer?.version;
    return {
      node,
      share: share.default,
      inFlight: reports.get(node)?.inFlight,
      acknowledgedVersion: version === undefined ? undefined : String(version),
      ageMs: known === undefined ? undefined : Math.max(0, nowMs() - known.heardAtMs),
    };
  });
}
