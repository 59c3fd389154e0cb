import { many } from "../../core/base/many.js";
import type {
  GetFleetResponse,
  ListServicesResponse,
  Service,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { drawBar } from "../terminal/bar.js";
import type { Drawing } from "../terminal/drawing.js";
import {
  countText,
  isOfFleet,
  percentText,
  replicaText,
  safeText,
  waitText,
} from "../terminal/quantity.js";
import { type Column, drawTable } from "../terminal/text-table.js";

const shareBarColumns = 20;

/** Shown instead of a replica's name for values of the whole fleet. */
const wholeFleet = "all";

/**
 * Draws services as a table. If Envoys share a limit, a row above those of the replicas shows the
 * fleet's values, and the replicas' rows show only their own.
 */
export function drawServices(
  { services }: ListServicesResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (services.length === 0) return ["The active policy has no services with admission."];
  const isFleet = isOfFleet(services);
  const overflows = services.some(({ overflowPerSecond }) => overflowPerSecond > 0);
  const reserves = services.some(({ reservedHigh }) => reservedHigh > 0n);
  // 80 columns are not wide enough for everything.
  const hasLeast = !isFleet && !overflows && !reserves;
  const hasRtt = !overflows || !reserves;
  const rowOf = (service: Service): readonly string[] => [
    safeText(service.name),
    safeText(service.law),
    inUseText(service),
    ...(reserves ? [service.reservedHigh === 0n ? "-" : countText(service.reservedHigh)] : []),
    ...(hasRtt ? [millisText(service.rttMs)] : []),
    ...(hasLeast ? [millisText(service.minRttMs)] : []),
    service.gate === "" ? "-" : safeText(service.gate),
    percentText(service.rejectRatio),
    countText(service.waiting),
    countText(service.refused),
    ...(overflows ? [overflowText(service)] : []),
    ...(isFleet ? [replicaText(service.replica)] : []),
  ];
  const columns: readonly Column[] = [
    { title: "service", isFlexible: true, paint: style.bold },
    { title: "limiter", isFlexible: true },
    { title: "in use", align: "right" },
    ...(reserves ? [{ title: "HIGH", align: "right" } as const] : []),
    ...(hasRtt ? [{ title: "rtt", align: "right" } as const] : []),
    ...(hasLeast ? [{ title: "min rtt", align: "right" } as const] : []),
    { title: "gate", paint: (cell) => (/^(open|-?\s*$)/.test(cell) ? cell : style.bad(cell)) },
    { title: shedTitle, align: "right" },
    { title: waitingTitle, align: "right" },
    { title: refusedTitle, align: "right" },
    ...(overflows ? [{ title: "overflow", align: "right", paint: style.bad } as const] : []),
    ...(isFleet ? [{ title: replicaTitle }] : []),
  ];
  const ownTitles = [shedTitle, waitingTitle, refusedTitle, replicaTitle];
  const own = (row: readonly string[]): readonly string[] =>
    row.map((cell, i) => (ownTitles.includes(columns[i]?.title ?? "") ? cell : ""));
  const rows = byName(services).flatMap((ofOne) => {
    const whole = isFleet ? wholeOf(ofOne) : undefined;
    if (whole === undefined) return ofOne.map(rowOf);
    return [rowOf(whole), ...ofOne.map((one) => own(rowOf(one)))];
  });
  const table = drawTable(columns, rows, columnsMax);
  return [...table, ...drawSignals(services, { style, columnsMax })];
}

/** Draws the load signals of each replica; nothing if no service has one. */
function drawSignals(
  services: readonly Service[],
  { style, columnsMax }: Drawing,
): readonly string[] {
  const isFleet = isOfFleet(services);
  const rows = services.flatMap(({ name, replica, signals }) =>
    signals.map(({ key, source, reading, age, isMissing, error }) => [
      safeText(name),
      key === "" ? "all" : safeText(key),
      safeText(source),
      reading === undefined ? "none" : String(Number(reading.toPrecision(4))),
      age === undefined ? "-" : `${waitText(age)} ago`,
      [...(isMissing ? ["missing"] : []), safeText(error)].join(" ").trim() || "ok",
      ...(isFleet ? [replicaText(replica)] : []),
    ]),
  );
  if (rows.length === 0) return [];
  const columns: readonly Column[] = [
    { title: "service", isFlexible: true, paint: style.bold },
    { title: "key", isFlexible: true },
    { title: "signal" },
    { title: "reads", align: "right" },
    { title: "answered", align: "right" },
    { title: "state", paint: (cell) => (cell.trimEnd() === "ok" ? cell : style.bad(cell)) },
    ...(isFleet ? [{ title: replicaTitle }] : []),
  ];
  return ["", ...drawTable(columns, rows, columnsMax)];
}

const shedTitle = "shed";
const waitingTitle = "waiting";
const refusedTitle = "refused";
const replicaTitle = "replica";

function byName(services: readonly Service[]): readonly (readonly Service[])[] {
  const names = [...new Set(services.map(({ name }) => name))];
  return names.map((name) => services.filter((one) => one.name === name));
}

/** Returns a service with the fleet's values, if Envoys share its limit; undefined otherwise. */
function wholeOf(ofOne: readonly Service[]): Service | undefined {
  const shared = ofOne.find(({ shares }) => shares.length > 0);
  if (shared === undefined) return undefined;
  const sum = (of: (one: Service) => bigint): bigint =>
    ofOne.reduce((total, one) => total + of(one), 0n);
  const refused = sum(({ recentRefused }) => recentRefused);
  const recent = refused + sum(({ recentAdmitted }) => recentAdmitted);
  return {
    ...shared,
    rejectRatio: recent === 0n ? 0 : Number(refused) / Number(recent),
    waiting: sum(({ waiting }) => waiting),
    refused: sum(({ refused }) => refused),
    overflowPerSecond: Math.max(...ofOne.map(({ overflowPerSecond }) => overflowPerSecond)),
    replica: wholeFleet,
  };
}

function inUseText({ inFlight, concurrencyLimit }: Service): string {
  if (concurrencyLimit === 0n) return countText(inFlight);
  return `${countText(inFlight)} of ${countText(concurrencyLimit)}`;
}

/** Returns the requests refused by Envoys' breakers, which admission never sees. */
function overflowText({ overflowPerSecond }: Service): string {
  return overflowPerSecond === 0 ? "-" : `${overflowPerSecond.toFixed(1)}/s`;
}

function millisText(ms: number): string {
  if (ms === 0) return "-";
  return ms < 10 ? `${ms.toFixed(1)}ms` : `${Math.round(ms)}ms`;
}

/** Draws the fleet as text: its leader, and the share of each Envoy. */
export function drawFleet(fleet: GetFleetResponse, drawing: Drawing): readonly string[] {
  const { style } = drawing;
  const { replica, leader, replicaCount, store, isDegraded, services } = fleet;
  const lines = [
    `${many(replicaCount, "replica")}; this one is ${style.bold(safeText(replica))}` +
      leaderText(fleet),
    `Store: ${safeText(store)}${isDegraded ? `, ${style.bad("not connected at the moment")}` : ""}`,
  ];
  if (fleet.region !== "") lines.push(...drawRegions(fleet, drawing));
  if (leader === "" && replicaCount > 1) lines.push(style.bad("There is no leader at the moment."));
  for (const service of services) lines.push("", ...drawShares(service, drawing));
  if (services.length === 0) lines.push("", "No service has a limit that Envoys share.");
  return lines;
}

/** Draws the other regions, and what this replica has borrowed from each. */
function drawRegions(
  { region, regions }: GetFleetResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  const part = `1/${regions.length + 1} of each global limit is here`;
  const number = { align: "right" } as const;
  const table = drawTable(
    [
      { title: "  other region" },
      { title: "store", paint: (cell) => (/^down/.test(cell) ? style.bad(cell) : cell) },
      { ...number, title: "round trip" },
      { ...number, title: "asked" },
      { ...number, title: "borrowed" },
      { ...number, title: "lost" },
    ],
    regions.map(({ name, isReachable, roundTrip, askedHits, borrowedHits, lostHits }) => [
      `  ${safeText(name)}`,
      isReachable ? "up" : "down",
      roundTrip === undefined ? "-" : waitText(roundTrip),
      ...[askedHits, borrowedHits, lostHits].map(countText),
    ]),
    columnsMax,
  );
  return [`Region: ${style.bold(safeText(region))}; ${part}. This replica's calls:`, ...table];
}

function leaderText({ isLeading, leader, term }: GetFleetResponse): string {
  if (isLeading) return `, which leads (term ${countText(term)})`;
  return leader === "" ? "" : `, and ${safeText(leader)} leads (term ${countText(term)})`;
}

function whyNoShares({ law }: Service): string {
  return law === "none"
    ? "the policy has no concurrency block for the service"
    : "the policy sets no concurrency.feedback, or no Envoy is connected";
}

function drawShares(service: Service, { style, columnsMax }: Drawing): readonly string[] {
  const { name, law, concurrencyLimit, reservedHigh, overflowPerSecond, shares } = service;
  const none = law === "none" ? "no concurrency limit" : "no limit yet";
  const limit = concurrencyLimit === 0n ? none : `${countText(concurrencyLimit)} at a time`;
  const reserved =
    reservedHigh === 0n ? "" : `, ${countText(reservedHigh)} of them reserved for HIGH`;
  const refused =
    overflowPerSecond === 0 ? "" : style.bad(`; breakers refuse ${overflowText(service)}`);
  const title = `${style.bold(safeText(name))}: ${limit}${reserved}${refused}`;
  if (shares.length === 0) return [title, `  no Envoy has a share: ${whyNoShares(service)}`];
  const most = Math.max(1, ...shares.map(({ share }) => Number(share)));
  const table = drawTable(
    [
      { title: "  envoy", isFlexible: true },
      { title: "share", align: "right" },
      { title: "", paint: style.good },
      { title: "in flight", align: "right" },
      { title: "last report", align: "right" },
    ],
    shares.map((share) => [
      `  ${safeText(share.node)}`,
      countText(share.share),
      drawBar(Number(share.share) / most, shareBarColumns),
      countText(share.inFlight),
      share.age === undefined ? "elsewhere" : `${waitText(share.age)} ago`,
    ]),
    columnsMax,
  );
  return [title, ...table];
}
