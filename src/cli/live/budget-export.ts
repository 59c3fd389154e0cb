import { create } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { decimalText } from "../../core/budgets/amount-text.js";
import { isUsageDay, usageDay, usageDays } from "../../core/budgets/usage-day.js";
import {
  type ListUsageResponse,
  ListUsageResponseSchema,
  type UsageRow,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { systemClock } from "../../host/clock.js";
import { writeCsv } from "../../simulate/report/csv.js";
import { type AdminCommandParts, runAdmin } from "../admin/admin-command.js";
import { addAdminFlags, adminExitCodes } from "../admin/admin-flags.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { eachPage } from "../terminal/pages.js";

/** Flags for a range of days. */
export interface RangeFlags {
  readonly from?: string;
  readonly to?: string;
}

/** Adds the flags for a command's range of days. */
export function addRangeFlags(command: Command): Command {
  return command
    .option("--from <DAY>", "the first day, in UTC, such as 2026-11-01; default: today")
    .option("--to <DAY>", "the last day; default: today");
}

/**
 * Reads the range for the admin API.
 *
 * @throws CommandFailure
 */
export function readDayRange({ from, to }: RangeFlags): {
  readonly fromDay: string;
  readonly toDay: string;
} {
  const toDay = readDay("--to", to ?? usageDay(systemClock.epochUs()));
  return { fromDay: readDay("--from", from ?? toDay), toDay };
}

function readDay(flag: string, text: string): string {
  if (isUsageDay(text)) return text;
  throw usageFailure(`${flag} must be a day, such as 2026-11-01`);
}

/** Maximum number of days in one export. */
const daysMax = 3_660;

interface ExportFlags extends RangeFlags {
  readonly output: "csv" | "json";
  readonly service?: string;
}

/** Adds `headgate budgets export`. */
export function addExport(budgets: Command, context: CommandContext): void {
  const command = addRangeFlags(
    budgets
      .command("export")
      .description("export the usage of calls by day, account and model")
      .argument("[NAME]", "only calls that this budget counts"),
  )
    .option("--service <SERVICE>", "only calls of this service")
    .addOption(
      new Option("-o, --output <format>", "how to print").choices(["csv", "json"]).default("csv"),
    );
  addHelpTexts(addAdminFlags(command), {
    examples: `
  headgate budgets export team-month --from 2026-11-01 > november.csv
  headgate budgets export --from 2026-11-27 -o json | jq '.rows[].model'`,
    notes: `
A call has a row for each budget that counts it: name a budget to sum calls.
Costs in CSV are decimal numbers of the currency. A text that could
be taken for a formula begins with an apostrophe.`,
    exitCodes: adminExitCodes,
  }).action((budget: string | undefined, flags: ExportFlags) =>
    runAdmin(command, context, (call) => exportUsage(budget ?? "", flags, call)),
  );
}

async function exportUsage(
  budget: string,
  flags: ExportFlags,
  { client, context, printer }: AdminCommandParts,
): Promise<void> {
  const { service = "", output } = flags;
  const all = create(ListUsageResponseSchema);
  let isFirst = true;
  for (const day of daysOf(readDayRange(flags))) {
    await eachPage(
      ({ pageToken }) =>
        client.budgets.listUsage({ budget, service, fromDay: day, toDay: day, pageToken }),
      (page) => {
        const csv = output === "csv" ? csvOf(page, isFirst) : "";
        if (csv !== "") context.output.out(csv);
        if (output === "json") all.rows.push(...page.rows);
        all.currency = page.currency;
        all.decimals = page.decimals;
        isFirst = false;
        return undefined;
      },
    );
  }
  if (output === "json") printer.print(ListUsageResponseSchema, all, () => []);
}

/** Returns each day of a range. Each call asks for one day, so that page tokens stay valid. */
function daysOf({ fromDay, toDay }: ReturnType<typeof readDayRange>): readonly string[] {
  const days = usageDays(fromDay, toDay, daysMax);
  if (days !== undefined) return days;
  throw usageFailure(`--to must be a day from --from on, and at most ${daysMax} days later`);
}

const counts = [
  ["calls", "callCount"],
  ["input_tokens", "inputTokens"],
  ["cached_tokens", "cachedTokens"],
  ["cache_write_tokens", "cacheWriteTokens"],
  ["output_tokens", "outputTokens"],
  ["reasoning_tokens", "reasoningTokens"],
  ["response_bytes", "responseBytes"],
  ["duration_ms", "durationMs"],
  ["custom_units", "customUnits"],
] as const satisfies readonly (readonly [string, keyof UsageRow])[];

const head = ["day", "service", "budget", "account", "model", ...counts.map(([name]) => name)];

/** Returns rows as CSV. An account's values form one cell, joined by `/`; in them it is `%2F`. */
function csvOf({ rows, currency, decimals }: ListUsageResponse, isFirst: boolean): string {
  const money = { unit: "money", currency, decimals };
  const body = rows.map((row) => [
    row.day,
    row.service,
    row.account?.budget,
    row.isRest ? "(all others)" : row.account?.values.map(joinable).join("/"),
    row.model,
    ...counts.map(([, field]) => String(row[field])),
    currency === "" ? undefined : decimalText(row.cost, money),
    currency,
  ]);
  return writeCsv(isFirst ? [[...head, "cost", "currency"], ...body] : body);
}

function joinable(value: string): string {
  return value.replaceAll(/[%/]/g, encodeURIComponent);
}
