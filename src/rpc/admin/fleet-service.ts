import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { mayAct, type Principal } from "../../core/base/access-list.js";
import {
  type ReadAuditEntry,
  readAuditEntry,
  reasonCharsMax,
} from "../../core/base/audit-entry.js";
import type { AuditRecord } from "../../fleet/records/shared-records.js";
import type { RegionLending } from "../../fleet/regions/lender.js";
import { FleetService, type ServiceSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import type { GateAdministration, GateThresholds, ServiceState } from "./admin-parts.js";
import { askOthers } from "./ask-others.js";
import { actorOf, callerOf, demandPart, demandRole, serviceFilter } from "./call.js";
import { AdminFailure, notFound } from "./failures.js";
import { historyMethod } from "./history-method.js";
import { durationOf, timeOf, wideOf } from "./messages.js";
import { conflict } from "./override-methods.js";
import { badToken, pageRule, pageToken, readPageToken } from "./pages.js";
import { keyNameBounds, RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** Maximum number of audit log entries that one call reads, if most of them do not match. */
export const auditScannedMax = 5_000;

/** Number of entries that are read from the store at a time. */
const auditReadCount = 500;

/** Dependencies of this service. */
type FleetServiceParts = Pick<
  AdminServiceParts,
  "clock" | "findings" | "fleet" | "gates" | "history" | "records" | "replica" | "replicas"
>;

/** Creates FleetService: services, replicas, gates, and the audit log. */
export function fleetService(parts: FleetServiceParts): ServiceImpl<typeof FleetService> {
  return {
    listServices: async (request, context) => {
      const own = servicesOf(parts, context);
      const { listServices } = FleetService.method;
      const { messages, silentReplicas } = await askOthers(parts, listServices, {
        request,
        context,
      });
      const all = [...own, ...messages.flatMap(({ services }) => services)];
      // Grouped by name, in the order of the policy, with this replica first.
      const order = new Map(own.map(({ name }, at) => [name, at]));
      const placeOf = (name: string): number => order.get(name) ?? own.length;
      all.sort((a, b) => placeOf(a.name ?? "") - placeOf(b.name ?? ""));
      return { services: all, silentReplicas };
    },
    getFleet: (_request, context) => {
      const { leader = "", term, regions, ...state } = parts.fleet.fleet();
      const services = servicesOf(parts, context);
      const others = regions.map(encodeRegion);
      return { ...state, leader, term: wideOf(term), services, regions: others };
    },
    getGateThresholds: (request, context) => {
      const gates = demandPart(parts.gates);
      const reader = new RequestReader();
      const service = reader.text("service", request.service, { ...keyNameBounds, isNeeded: true });
      reader.end();
      return { thresholds: encodeThresholds(demandGate(gates, service, context)) };
    },
    setGateThresholds: async (request, context) => {
      demandRole(context, "operator", undefined);
      const gates = demandPart(parts.gates);
      const reader = new RequestReader();
      const service = reader.text("service", request.service, { ...keyNameBounds, isNeeded: true });
      const expectedVersion = reader.version("expected_version", request.expectedVersion);
      const reasonRule = { charsMax: reasonCharsMax, isNeeded: true };
      const reason = reader.text("reason", request.reason, reasonRule);
      const ratios = request.clear ? undefined : readRatios(request, reader);
      reader.end();
      demandGate(gates, service, context);
      const asked = { actor: actorOf(context), reason, expectedVersion };
      const change = await gates.set(service, ratios, asked);
      if (change.kind === "conflict") throw conflict("thresholds", change.version);
      if (change.kind === "refused") throw new AdminFailure("refused", change.why);
      return { thresholds: encodeThresholds(change.thresholds) };
    },
    listAudit: async (request, context) => {
      const reader = new RequestReader();
      const countMax = reader.count("page_size", request.pageSize, pageRule);
      const action = reader.text("action", request.action, keyNameBounds);
      const author = reader.text("author", request.author, keyNameBounds);
      const sinceEpochMs = reader.epochMs("since", request.since);
      reader.end();
      const place = readPageToken(request.pageToken);
      if (place !== undefined && !/^\d{1,15}$/.test(place)) throw badToken();
      const before = place === undefined ? Number.POSITIVE_INFINITY : Number(place);
      const wanted = { principal: callerOf(context), action, author, sinceEpochMs };
      const { found, next } = await readAudit(parts, wanted, { before, countMax });
      return {
        entries: found.map(({ record, entry }) => encodeAudit(record, entry)),
        nextPageToken: next === undefined ? "" : pageToken(String(next)),
      };
    },
    ...historyMethod(parts),
    ...findingsMethod(parts),
  };
}

function findingsMethod(
  parts: FleetServiceParts,
): Pick<ServiceImpl<typeof FleetService>, "getFindings"> {
  return {
    getFindings: async (request, context) => {
      // Findings do not belong to a single domain.
      demandRole(context, "reader", undefined);
      const { replica } = parts;
      const own = demandPart(parts.findings)().map(({ severity = "", ...finding }) => {
        return { ...finding, severity, replica };
      });
      const { getFindings } = FleetService.method;
      const { messages, silentReplicas } = await askOthers(parts, getFindings, {
        request,
        context,
      });
      return {
        findings: [...own, ...messages.flatMap(({ findings }) => findings)],
        silentReplicas,
      };
    },
  };
}

/** Returns a gate that the caller may see. Others are reported as unknown. */
function demandGate(
  gates: GateAdministration,
  service: string,
  context: HandlerContext,
): GateThresholds {
  const names = gates.services(serviceFilter(context));
  const thresholds = names.includes(service) ? gates.get(service) : undefined;
  if (thresholds === undefined) throw notFound("service with a gate", service, names);
  return thresholds;
}

function readRatios(
  { openBelow, closeAbove }: { readonly openBelow: number; readonly closeAbove: number },
  reader: RequestReader,
): { readonly openBelowRatio: number; readonly closeAboveRatio: number } {
  const openBelowRatio = reader.part("open_below", openBelow, { max: 1 });
  const closeAboveRatio = reader.part("close_above", closeAbove, { max: 1 });
  if (!(openBelow < closeAbove)) reader.report("open_below", "it must be below close_above");
  return { openBelowRatio, closeAboveRatio };
}

interface WantedAudit {
  readonly principal: Principal;
  /** Empty: any. */
  readonly action: string;
  readonly author: string;
  readonly sinceEpochMs: number | undefined;
}

interface FoundAudit {
  readonly record: AuditRecord;
  readonly entry: ReadAuditEntry;
}

/** Returns the newest matching entries, and where to continue. Undefined: there are no more. */
async function readAudit(
  { records }: FleetServiceParts,
  wanted: WantedAudit,
  { before, countMax }: { readonly before: number; readonly countMax: number },
): Promise<{ readonly found: readonly FoundAudit[]; readonly next: number | undefined }> {
  const found: FoundAudit[] = [];
  let next = before;
  for (let scanned = 0; scanned < auditScannedMax; ) {
    const page = await records.audit(next, auditReadCount);
    for (const record of page) {
      next = record.number;
      scanned += 1;
      if (wanted.sinceEpochMs !== undefined && record.epochMs < wanted.sinceEpochMs) {
        return { found, next: undefined };
      }
      const entry = readAuditEntry(record.value);
      if (isWanted(entry, wanted)) found.push({ record, entry });
      if (found.length >= countMax) return { found, next };
    }
    // A page may be short because of its size in bytes: only an empty one is the end.
    if (page.length === 0) return { found, next: undefined };
  }
  return { found, next };
}

function isWanted(entry: ReadAuditEntry, { principal, action, author }: WantedAudit): boolean {
  if (action !== "" && entry.action !== action) return false;
  if (author !== "" && entry.author !== author) return false;
  return mayAct(principal, "reader", entry.domain);
}

function encodeAudit({ number, epochMs }: AuditRecord, entry: ReadAuditEntry) {
  const { domain = "", ...rest } = entry;
  return { ...rest, domain, number: wideOf(number), time: timeOf(epochMs) };
}

function encodeThresholds(thresholds: GateThresholds) {
  const { service, openBelowRatio, closeAboveRatio, isOverridden, version } = thresholds;
  return {
    service,
    openBelow: openBelowRatio,
    closeAbove: closeAboveRatio,
    isOverridden,
    version: wideOf(version),
  };
}

function servicesOf(parts: FleetServiceParts, context: HandlerContext) {
  const states = parts.fleet.services(serviceFilter(context));
  return states.map(
    (state): MessageInitShape<typeof ServiceSchema> => encodeService(state, parts.replica),
  );
}

function encodeRegion({ region, isReachable, roundTripMs, ...counts }: RegionLending) {
  return {
    name: region,
    isReachable,
    ...(roundTripMs === undefined ? {} : { roundTrip: durationOf(roundTripMs * 1_000) }),
    calls: wideOf(counts.callCount),
    failedCalls: wideOf(counts.failedCallCount),
    askedHits: wideOf(counts.askedHits),
    borrowedHits: wideOf(counts.borrowedHits),
    lostHits: wideOf(counts.lostHits),
  };
}

function encodeService(state: ServiceState, replica: string) {
  const { name, law, concurrencyLimit = 0, inFlight, gate = "" } = state;
  const { recentAdmittedCount: admitted, recentRefusedCount: refused } = state;
  return {
    name,
    law,
    concurrencyLimit: wideOf(concurrencyLimit),
    inFlight: wideOf(inFlight),
    rttMs: state.rttMs ?? 0,
    minRttMs: state.minRttMs ?? 0,
    gradient: state.gradient ?? 0,
    gate,
    rejectRatio: refused === 0 ? 0 : refused / (admitted + refused),
    waiting: wideOf(state.waitingCount),
    replica,
    admitted: wideOf(state.admittedCount),
    refused: wideOf(state.refusedCount),
    recentAdmitted: wideOf(admitted),
    recentRefused: wideOf(refused),
    overflowPerSecond: state.overflowPerSecond,
    reservedHigh: wideOf(state.reservedHigh),
    signals: state.signals.map(({ reading, ageMs, failure = "", ...signal }) => ({
      ...signal,
      ...(reading === undefined ? {} : { reading }),
      age: durationOf(ageMs * 1_000),
      error: failure,
    })),
    shares: state.shares.map(({ node, share, inFlight: ofNode = 0, ageMs, ...known }) => ({
      node,
      share: wideOf(share),
      inFlight: wideOf(ofNode),
      acknowledgedVersion: known.acknowledgedVersion ?? "",
      ...(ageMs === undefined ? {} : { age: durationOf(ageMs * 1_000) }),
    })),
  };
}
