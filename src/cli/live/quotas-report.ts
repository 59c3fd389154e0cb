import { many } from "../../core/base/many.js";
import type {
  ListQuotaPoolsResponse,
  ListQuotasResponse,
  QuotaPool,
  QuotaShare,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { drawBar } from "../terminal/bar.js";
import type { Drawing } from "../terminal/drawing.js";
import {
  countText,
  entriesText,
  percentText,
  rateText,
  safeText,
  waitText,
} from "../terminal/quantity.js";
import { drawTable } from "../terminal/text-table.js";
import { truncateText, wrapText } from "../terminal/text-width.js";

const barColumns = 16;

/** Draws the quotas of the policy as text. */
export function drawQuotas(
  { quotas }: ListQuotasResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (quotas.length === 0) return ["The active policy has no quotas."];
  return drawTable(
    [
      { title: "quota", isFlexible: true, paint: style.bold },
      { title: "domain", isFlexible: true },
      { title: "bucket", isFlexible: true },
      { title: "limits", align: "right" },
      { title: "buckets", align: "right" },
      { title: "wanted", align: "right" },
      { title: "assigned", align: "right" },
    ],
    quotas.map((quota) => [
      safeText(quota.name),
      safeText(quota.domain),
      safeText([quota.bucketKeys.join(","), quota.classHeader].filter(Boolean).join(" by ")),
      countText(quota.poolCount),
      countText(quota.bucketCount),
      rateText(quota.demandRate),
      boundText(quota.heldRate),
    ]),
    columnsMax,
  );
}

/** Draws divided limits, each with the Envoys that have a share of it. */
export function drawQuotaPools(
  { pools, poolCount }: ListQuotaPoolsResponse,
  drawing: Drawing,
): readonly string[] {
  if (pools.length === 0)
    return ["No Envoy has requested a share of a quota from this Headgate yet."];
  const lines = pools.flatMap((pool, i) => [...(i === 0 ? [] : [""]), ...drawPool(pool, drawing)]);
  const leftCount = Number(poolCount) - pools.length;
  if (leftCount <= 0) return lines;
  return [...lines, "", drawing.style.dim(`and ${many(leftCount, "limit")} more`)];
}

function drawPool(pool: QuotaPool, { style, columnsMax }: Drawing): readonly string[] {
  const { quotas, domain, entries, shares, bucketCount, demandRate, heldRate } = pool;
  const name = quotas.map(safeText).join(", ");
  const key = `${safeText(domain)} ${entriesText(entries)}`;
  const title = truncateText(`${name}  ${key}`, columnsMax);
  const rates = `${rateText(demandRate)} requested, ${boundText(heldRate)} assigned`;
  const use = `${rates}; ${leaseText(pool)}`;
  const isUneasy = pool.lease?.state === "unrenewed" || pool.lease?.state === "lost";
  const table = drawTable(
    [
      { title: "  envoy", isFlexible: true },
      { title: "wanted", align: "right" },
      { title: "share", align: "right" },
      { title: "", paint: style.good },
      { title: "last report", align: "right" },
    ],
    shares.map((share) => shareRow(share, heldRate)),
    columnsMax,
  );
  const leftCount = Number(bucketCount) - shares.length;
  const uses = wrapText(use, columnsMax - 2).map((line) => `  ${line}`);
  return [
    style.bold(title),
    ...pool.limits.map((_, i) => truncateText(`  ${limitText(pool, i)}`, columnsMax)),
    ...(isUneasy ? uses.map(style.bad) : uses),
    ...(shares.length === 0 ? [] : table),
    ...(leftCount > 0 ? [style.dim(`  and ${many(leftCount, "bucket")} more`)] : []),
  ];
}

function limitText({ limits, mode }: QuotaPool, at: number): string {
  const limit = limits[at];
  if (limit === undefined) return "";
  const { hits, period, burst, usedHits } = limit;
  const seconds = Number(period?.seconds ?? 1n);
  const used = usedHits === undefined ? "" : `, ${percentText(usedHits / Number(burst))} used`;
  const isShadow = mode === "counted" ? ", dry run" : "";
  const rate = `${rateText(Number(hits) / seconds)}, burst ${countText(burst)}`;
  return `limit ${rate}${used}${isShadow}`;
}

function leaseText({ mode, lease }: QuotaPool): string {
  switch (mode) {
    case "denied":
      return "everything is denied";
    case "unlimited":
      return "nothing is limited";
    case "counted":
      return "everything passes";
  }
  if (lease === undefined) return "no lease";
  const left = lease.left === undefined ? "" : `, ${waitText(lease.left)} left`;
  switch (lease.state) {
    case "claiming":
      return "this replica waits for its lease";
    case "unrenewed":
      return `the store does not answer: ${rateText(lease.rate)} from the last lease${left}`;
    case "lost":
      return "no lease: the limit's on_store_failure decides";
    default:
      return `${rateText(lease.rate)} assigned${left}`;
  }
}

function shareRow(share: QuotaShare, poolRate: number | undefined): readonly string[] {
  const { node, weight, demandRate, assignment, age, isLeft } = share;
  const ofClass = weight === 1 ? "" : ` (weight ${weight})`;
  const given = givenRate(assignment);
  const ratio = poolRate === undefined || poolRate === 0 ? 0 : given / poolRate;
  return [
    `  ${safeText(node)}${ofClass}`,
    rateText(demandRate),
    assignmentText(assignment),
    Number.isFinite(given) ? drawBar(Math.min(1, ratio), barColumns) : "",
    `${age === undefined ? "?" : waitText(age)} ago${isLeft ? ", gone" : ""}`,
  ];
}

function givenRate(assignment: QuotaShare["assignment"]): number {
  if (assignment.case === "tokens") return assignment.value.rate;
  return assignment.case === "blanket" && assignment.value === "allow"
    ? Number.POSITIVE_INFINITY
    : 0;
}

function assignmentText(assignment: QuotaShare["assignment"]): string {
  switch (assignment.case) {
    case "tokens":
      return rateText(assignment.value.rate);
    case "blanket":
      return assignment.value === "allow" ? "all" : "none";
    default:
      return "-";
  }
}

/** Returns the allowed rate, or that it is unbounded. */
function boundText(rate: number | undefined): string {
  return rate === undefined ? "no bound" : rateText(rate);
}
