import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  AccountOrder,
  GetBudgetAccountResponseSchema,
  ListBudgetAccountsResponseSchema,
  ListBudgetsResponseSchema,
  ListTopUpsResponseSchema,
  ListUsageResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { isRedrawn, readEvery, roomBeside, watch } from "../admin/live-command.js";
import { readCount } from "../input/number-flags.js";
import type { CommandContext } from "../terminal/context.js";
import { eachPage } from "../terminal/pages.js";
import { accountCommand, addBudgetChanges, budgetCommand } from "./budget-changes.js";
import { addExport, addRangeFlags, type RangeFlags, readDayRange } from "./budget-export.js";
import { drawAccount, drawBudget, drawBudgets, drawTopUps, drawUsage } from "./budgets-report.js";

/** Adds `headgate budgets`: what calls have spent, and operators' changes to it. */
export function addBudgets(program: Command, context: CommandContext): void {
  const budgets = program
    .command("budgets")
    .description("watch budgets and top spenders; top up, refund, export usage")
    .addHelpText(
      "before",
      `Examples:
  headgate budgets
  headgate budgets show team-month
  headgate budgets account team-month research gpt-4o
  headgate budgets top-up team-month research gpt-4o --amount "100 USD" \\
    --for 3d --reason "a launch"
  headgate budgets refund team-month research gpt-4o --amount 12.50 \\
    --reason "an outage of the provider"
  headgate budgets usage team-month --by model --from 2026-11-01
  headgate budgets export team-month --from 2026-11-01 -o csv > november.csv
`,
    );
  addList(budgets, context);
  addShow(budgets, context);
  addAccount(budgets, context);
  addBudgetChanges(budgets, context);
  addTopUps(budgets, context);
  addUsage(budgets, context);
  addExport(budgets, context);
}

interface ListFlags {
  readonly watch?: true;
  readonly every: string;
}

function addList(budgets: Command, context: CommandContext): void {
  const command = budgets
    .command("list", { isDefault: true })
    .description("list the budgets of the active policy")
    .option("--watch", "refresh until q or Ctrl-C")
    .option("--every <DURATION>", "the refresh interval of --watch", "5s");
  addAdminCommandFlags(command, {
    examples: `
  headgate budgets
  headgate budgets list --watch
  headgate budgets -o json | jq '.budgets[] | {name, spent: .sums.spent}'`,
    notes: `
Amounts are sums over all accounts. The lighter part of a bar is reserved by
calls in flight. \`projected\` is the end of the window at the rate so far.
Amounts in JSON are whole numbers: of money, 10^-decimals of the currency.`,
  }).action((flags: ListFlags) =>
    runAdmin(command, context, async (call) => {
      const ask = () => call.client.budgets.listBudgets({});
      if (flags.watch !== true || !isRedrawn(call, {})) {
        return call.printer.print(ListBudgetsResponseSchema, await ask(), drawBudgets);
      }
      const draw = async () => {
        const drawing = call.printer.drawing();
        const lines = drawBudgets(await ask(), drawing).slice(0, roomBeside(2, call));
        return [...lines, "", drawing.style.dim("q quit")];
      };
      return watch({ everyMs: readEvery(flags.every), draw }, call);
    }),
  );
}

interface ShowFlags {
  readonly by: "spent" | "used";
  readonly count: string;
  readonly match?: readonly string[];
}

/** Maximum number of accounts shown. */
const accountCountMax = 1_000;

function addShow(budgets: Command, context: CommandContext): void {
  const command = budgetCommand(budgets, "show", "show a budget and its top spenders")
    .option("-n, --count <COUNT>", `the number of accounts, at most ${accountCountMax}`, "10")
    .option("--match <PATTERN...>", "only accounts with these values; * matches any text");
  command.addOption(
    command
      .createOption("--by <ORDER>", "which come first")
      .choices(["spent", "used"])
      .default("spent"),
  );
  addAdminCommandFlags(command, {
    examples: `
  headgate budgets show team-month
  headgate budgets show team-month --by used -n 50
  headgate budgets show team-month --match 'res*' '*'
  headgate budgets show team-month -o json | jq '.accounts[].account.values'`,
    notes: `
\`until\` is the day on which an account is exhausted at the rate so far.`,
  }).action((budget: string, flags: ShowFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const pageSize = readCount("--count", flags.count, accountCountMax);
      const order = flags.by === "used" ? AccountOrder.USED_RATIO : AccountOrder.SPENT;
      const values = [...(flags.match ?? [])];
      const [all, answer] = await Promise.all([
        client.budgets.listBudgets({ budget }),
        client.budgets.listBudgetAccounts({ budget, pageSize, order, values }),
      ]);
      const [whole] = all.budgets;
      if (whole !== undefined) answer.budget = whole;
      printer.print(
        ListBudgetAccountsResponseSchema,
        answer,
        ({ budget: one, accounts }, drawing) =>
          one === undefined ? [] : drawBudget(one, { accounts }, drawing),
      );
    }),
  );
}

function addAccount(budgets: Command, context: CommandContext): void {
  const command = accountCommand(budgets, "account", "show one account, and its top-ups");
  addAdminCommandFlags(command, {
    examples: `
  headgate budgets account team-month research gpt-4o
  headgate budgets account everybody-day
  headgate budgets account team-month research gpt-4o -o json | jq .topUps`,
  }).action((budget: string, values: string[]) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const answer = await client.budgets.getBudgetAccount({ account: { budget, values } });
      printer.print(GetBudgetAccountResponseSchema, answer, drawAccount);
    }),
  );
}

function addTopUps(budgets: Command, context: CommandContext): void {
  const command = budgets
    .command("top-ups")
    .description("list the top-ups that have not expired")
    .argument("[NAME]", "only of this budget");
  addAdminCommandFlags(command, {
    examples: `
  headgate budgets top-ups
  headgate budgets top-ups team-month -o json | jq '.topUps[].id'`,
  }).action((budget: string | undefined) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const all = create(ListTopUpsResponseSchema);
      await eachPage(
        (page) => client.budgets.listTopUps({ budget: budget ?? "", ...page }),
        ({ topUps }) => {
          all.topUps.push(...topUps);
          return undefined;
        },
      );
      const known = await client.budgets.listBudgets({ withoutSums: true });
      printer.print(ListTopUpsResponseSchema, all, (message, drawing) =>
        drawTopUps(message, known.budgets, drawing),
      );
    }),
  );
}

interface UsageFlags extends RangeFlags {
  readonly by: string;
}

function addUsage(budgets: Command, context: CommandContext): void {
  const command = addRangeFlags(
    budgetCommand(budgets, "usage", "sum what calls used, by model, account, service or day"),
  ).option("--by <PARTS>", "what to sum by, with commas: model, account, service, day", "model");
  addAdminCommandFlags(command, {
    examples: `
  headgate budgets usage team-month
  headgate budgets usage team-month --by account,model --from 2026-11-01
  headgate budgets usage team-month --by day --from 2026-11-01 --to 2026-11-30`,
    notes: `
Days are in UTC. Calls are counted on the day on which they end.`,
  }).action((budget: string, flags: UsageFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const groupBy = flags.by.split(",").map((one) => one.trim());
      const range = readDayRange(flags);
      const answer = await client.budgets.listUsage({ budget, groupBy, ...range });
      printer.print(ListUsageResponseSchema, answer, drawUsage);
    }),
  );
}
