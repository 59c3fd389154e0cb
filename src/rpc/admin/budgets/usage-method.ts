import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type UsageCount, usageCounts } from "../../../core/budgets/usage.js";
import { isUsageDay, usageDay, usageDays } from "../../../core/budgets/usage-day.js";
import type {
  BudgetService,
  ListUsageRequest,
  UsageRowSchema,
} from "../../../gen/headgate/admin/v1/admin_pb.js";
import type { BudgetAdministration, UsageView } from "../budget-parts.js";
import { demandPart, serviceFilter } from "../call.js";
import { AdminFailure, notFound } from "../failures.js";
import { policyOf } from "../key-methods.js";
import { wideOf } from "../messages.js";
import { badToken, cursorToken, readCursor } from "../pages.js";
import { keyNameBounds, RequestReader } from "../request-reader.js";
import { type BudgetServiceParts, demandBudget, visibleBudgets } from "./budget-requests.js";

/** Maximum number of days of one call. */
const usageDaysMax = 92;

/** Maximum number of rows of a sum. The rest is one more row. */
export const usageGroupsMax = 10_000;

/** Maximum number of rows that one call reads to sum them. */
const usageScannedMax = 500_000;

/** The columns by which rows may be grouped. */
const groupings = ["day", "service", "account", "model"] as const;

type Grouping = (typeof groupings)[number];

/** A row of the report, and its day. */
interface DayRow extends UsageView {
  readonly day: string;
}

/** The method that reports what calls have used. */
export function usageMethod(
  parts: BudgetServiceParts,
): Pick<ServiceImpl<typeof BudgetService>, "listUsage"> {
  return {
    listUsage: async (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const days = readDays(parts, request, reader);
      const budget = reader.text("budget", request.budget, keyNameBounds);
      const service = reader.text("service", request.service, keyNameBounds);
      const groupBy = readGroupings(request, reader);
      reader.end();
      const isWanted = rowFilter(parts, { budget, service }, context);
      const { currency = "", decimals = 0 } = policyOf(parts).prices ?? {};
      const money = { currency, decimals };
      if (groupBy.length > 0) {
        const rows = await sumRows(budgets, { days, isWanted, groupBy });
        return { rows: rows.map(encodeRow), nextPageToken: "", ...money };
      }
      const { place, cursor } = readCursor(request.pageToken);
      const day = place === "" ? (days[0] ?? "") : place;
      if (!days.includes(day)) throw badToken();
      const page = await budgets.usage(day, cursor);
      const rows = page.rows.filter(isWanted).map((row) => encodeRow({ ...row, day }));
      const next = page.cursor === "" ? days[days.indexOf(day) + 1] : day;
      const nextPageToken = next === undefined ? "" : cursorToken(next, page.cursor);
      return { rows, nextPageToken, ...money };
    },
  };
}

/** Returns every day of the range. Without a range, the current day. */
function readDays(
  { clock }: Pick<BudgetServiceParts, "clock">,
  { fromDay, toDay }: Pick<ListUsageRequest, "fromDay" | "toDay">,
  reader: RequestReader,
): readonly string[] {
  const to = readDay("to_day", toDay === "" ? usageDay(clock.epochUs()) : toDay, reader);
  const from = readDay("from_day", fromDay === "" ? to : fromDay, reader);
  if (from === "" || to === "") return [];
  const days = usageDays(from, to, usageDaysMax);
  if (days !== undefined) return days;
  reader.report("to_day", `must be 0 to ${usageDaysMax - 1} days after from_day`);
  return [];
}

/** Reads a day. Empty if the text is not a day. */
function readDay(place: string, text: string, reader: RequestReader): string {
  if (text === "" || isUsageDay(text)) return text;
  reader.report(place, "must be a day, such as 2026-11-27");
  return "";
}

function readGroupings(
  { groupBy, budget, pageToken }: ListUsageRequest,
  reader: RequestReader,
): readonly Grouping[] {
  const known = groupings.filter((one) => groupBy.includes(one));
  if (groupBy.some((text) => !known.some((one) => one === text))) {
    reader.report("group_by", `must be of ${groupings.join(", ")}`);
  }
  if (groupBy.length === 0) return [];
  if (budget === "") reader.report("budget", "required with group_by: a call has a row for each");
  if (pageToken !== "") reader.report("page_token", "there is one page with group_by");
  return known;
}

/** Filters requested rows. Only callers who may see all others see those of removed services. */
function rowFilter(
  parts: BudgetServiceParts,
  { budget, service }: { readonly budget: string; readonly service: string },
  context: HandlerContext,
): (row: UsageView) => boolean {
  const policy = policyOf(parts);
  const visible = serviceFilter(context);
  const all = policy.services.filter(visible).map(({ name }) => name);
  if (service !== "" && !all.includes(service)) throw notFound("service", service, all);
  if (budget !== "") demandBudget(parts, budget, { context });
  const hidden = new Set(policy.services.filter((one) => !visible(one)).map(({ name }) => name));
  const budgets = new Set(visibleBudgets(parts, context).map(({ name }) => name));
  const known = new Set(policy.budgets.map(({ name }) => name));
  const seesAll = hidden.size === 0 && budgets.size === known.size;
  return (row) => {
    if (service !== "" && row.service !== service) return false;
    if (budget !== "" && row.account?.budget !== budget) return false;
    if (seesAll) return true;
    return (
      all.includes(row.service) && (row.account === undefined || budgets.has(row.account.budget))
    );
  };
}

interface Summing {
  readonly days: readonly string[];
  readonly isWanted: (row: UsageView) => boolean;
  readonly groupBy: readonly Grouping[];
}

/** Sums rows that are equal in the requested columns. The most expensive come first. */
async function sumRows(
  budgets: BudgetAdministration,
  { days, isWanted, groupBy }: Summing,
): Promise<readonly DayRow[]> {
  const groups = new Map<string, DayRow>();
  let scannedCount = 0;
  for (const day of days) {
    let cursor = "";
    do {
      const page = await budgets.usage(day, cursor);
      scannedCount += page.rows.length;
      if (scannedCount > usageScannedMax) {
        const what = `the days have more than ${usageScannedMax} rows; ask for fewer days`;
        throw new AdminFailure("exhausted", what);
      }
      for (const row of page.rows) if (isWanted(row)) addRow(groups, { ...row, day }, groupBy);
      cursor = page.cursor;
    } while (cursor !== "");
  }
  return [...groups.values()].sort((a, b) => b.cost - a.cost || b.callCount - a.callCount);
}

function addRow(groups: Map<string, DayRow>, row: DayRow, groupBy: readonly Grouping[]): void {
  const own = JSON.stringify(groupBy.map((part) => row[part] ?? ""));
  const isFull = groups.size >= usageGroupsMax && !groups.has(own);
  const key = row.isRest || isFull ? "" : own;
  const before = groups.get(key);
  if (before !== undefined) {
    groups.set(key, added(before, row));
    return;
  }
  const keeps = (part: Grouping): boolean => key !== "" && groupBy.includes(part);
  groups.set(key, {
    ...row,
    day: keeps("day") ? row.day : "",
    service: keeps("service") ? row.service : "",
    account: keeps("account") ? row.account : undefined,
    model: keeps("model") ? row.model : "",
    isRest: key === "",
  });
}

function added(a: DayRow, b: DayRow): DayRow {
  const counts: Partial<Record<UsageCount, number>> = { ...a.counts };
  for (const count of usageCounts) {
    const more = b.counts[count];
    if (more !== undefined) counts[count] = (counts[count] ?? 0) + more;
  }
  return { ...a, callCount: a.callCount + b.callCount, cost: a.cost + b.cost, counts };
}

function encodeRow(row: DayRow): MessageInitShape<typeof UsageRowSchema> {
  const { day, service, account, model, callCount, counts, cost, isRest } = row;
  const countOf = (name: UsageCount): bigint => wideOf(counts[name] ?? 0);
  return {
    day,
    service,
    ...(account === undefined
      ? {}
      : { account: { budget: account.budget, values: [...account.values] } }),
    model,
    callCount: wideOf(callCount),
    inputTokens: countOf("inputTokens"),
    cachedTokens: countOf("cachedTokens"),
    cacheWriteTokens: countOf("cacheWriteTokens"),
    outputTokens: countOf("outputTokens"),
    reasoningTokens: countOf("reasoningTokens"),
    responseBytes: countOf("responseBytes"),
    durationMs: countOf("durationMs"),
    customUnits: countOf("customUnits"),
    cost: wideOf(cost),
    isRest,
  };
}
