import type {
  GetFleetResponse,
  ListServicesResponse,
  NodeShare,
  Service,
} from "../gen/headgate/admin/v1/admin_pb.js";
import { drawBar } from "./bar.js";
import { many } from "./many.js";
import type { Drawing } from "./print.js";
import { countText, isOfFleet, percentText, replicaText, safeText, waitText } from "./quantity.js";
import { drawTable } from "./text-table.js";

const shareBarColumns = 20;

/** Services for people. */
export function drawServices(
  { services }: ListServicesResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (services.length === 0) return ["The policy in force has no services with admission."];
  const isFleet = isOfFleet(services);
  const overflows = services.some(({ overflowPerSecond }) => overflowPerSecond > 0);
  // 80 columns have no room for everything.
  const hasLeast = !isFleet && !overflows;
  return drawTable(
    [
      { title: "service", isFlexible: true, paint: style.bold },
      { title: "law", isFlexible: true },
      { title: "in use", align: "right" },
      { title: "rtt", align: "right" },
      ...(hasLeast ? [{ title: "least", align: "right" } as const] : []),
      { title: "gate", paint: (cell) => (cell.startsWith("open") ? cell : style.bad(cell)) },
      { title: "shed", align: "right" },
      { title: "waiting", align: "right" },
      { title: "refused", align: "right" },
      ...(overflows ? [{ title: "overflow", align: "right", paint: style.bad } as const] : []),
      ...(isFleet ? [{ title: "replica" }] : []),
    ],
    services.map((service) => [
      safeText(service.name),
      safeText(service.law),
      inUseText(service),
      millisText(service.rttMs),
      ...(hasLeast ? [millisText(service.minRttMs)] : []),
      service.gate === "" ? "-" : safeText(service.gate),
      percentText(service.rejectRatio),
      countText(service.waiting),
      countText(service.refused),
      ...(overflows ? [overflowText(service)] : []),
      ...(isFleet ? [replicaText(service.replica)] : []),
    ]),
    columnsMax,
  );
}

function inUseText({ inFlight, concurrencyLimit }: Service): string {
  if (concurrencyLimit === 0n) return countText(inFlight);
  return `${countText(inFlight)} of ${countText(concurrencyLimit)}`;
}

/** What Envoys' breakers refuse: admission never sees it. */
function overflowText({ overflowPerSecond }: Service): string {
  return overflowPerSecond === 0 ? "-" : `${overflowPerSecond.toFixed(1)}/s`;
}

function millisText(ms: number): string {
  if (ms === 0) return "-";
  return ms < 10 ? `${ms.toFixed(1)}ms` : `${Math.round(ms)}ms`;
}

/** The fleet for people: who leads, and what each Envoy may hold. */
export function drawFleet(fleet: GetFleetResponse, drawing: Drawing): readonly string[] {
  const { style } = drawing;
  const { replica, leader, replicaCount, store, isDegraded, services } = fleet;
  const lines = [
    `${many(replicaCount, "replica")}; this one is ${style.bold(safeText(replica))}` +
      leaderText(fleet),
    `Store: ${safeText(store)}${isDegraded ? `, ${style.bad("away at the moment")}` : ""}`,
  ];
  if (leader === "" && replicaCount > 1) lines.push(style.bad("Nobody leads at the moment."));
  for (const service of services) lines.push("", ...drawShares(service, drawing));
  if (services.length === 0) lines.push("", "No service has a limit that Envoys share.");
  return lines;
}

function leaderText({ isLeading, leader, epoch }: GetFleetResponse): string {
  if (isLeading) return `, which leads (epoch ${countText(epoch)})`;
  return leader === "" ? "" : `, and ${safeText(leader)} leads (epoch ${countText(epoch)})`;
}

function drawShares(service: Service, { style, columnsMax }: Drawing): readonly string[] {
  const { name, concurrencyLimit, reservedHigh, overflowPerSecond, shares } = service;
  const limit =
    concurrencyLimit === 0n ? "no limit yet" : `${countText(concurrencyLimit)} at a time`;
  const reserved = reservedHigh === 0n ? "" : `, ${countText(reservedHigh)} of them for HIGH`;
  const refused =
    overflowPerSecond === 0 ? "" : style.bad(`; breakers refuse ${overflowText(service)}`);
  const title = `${style.bold(safeText(name))}: ${limit}${reserved}${refused}`;
  if (shares.length === 0) return [title, "  no Envoy takes part"];
  const most = Math.max(1, ...shares.map(({ share }) => Number(share)));
  const table = drawTable(
    [
      { title: "  envoy", isFlexible: true },
      { title: "share", align: "right" },
      { title: "", paint: style.good },
      { title: "in flight", align: "right" },
      { title: "heard of", align: "right" },
    ],
    shares.map((share) => [
      `  ${safeText(share.node)}`,
      countText(share.share),
      drawBar(Number(share.share) / most, shareBarColumns),
      countText(share.inFlight),
      ageText(share),
    ]),
    columnsMax,
  );
  return [title, ...table];
}

function ageText({ age }: NodeShare): string {
  return age === undefined ? "elsewhere" : `${waitText(age)} ago`;
}
