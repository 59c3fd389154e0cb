import type { Command } from "commander";
import { amountMax } from "../../core/budgets/account.js";
import { formatAmount, parseAmount, unitText } from "../../core/budgets/amount-text.js";
import {
  type Budget,
  DeleteTopUpResponseSchema,
  RefundBudgetResponseSchema,
  TopUpBudgetResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { AdminClient } from "../admin/admin-client.js";
import { addReasonFlags, confirm, type ReasonFlags, runAdmin } from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { safeText, timeText } from "../terminal/quantity.js";
import { drawAccount } from "./budgets-report.js";
import { type EndFlags, readEnd } from "./overrides.js";

interface AmountFlags extends ReasonFlags {
  readonly amount: string;
  readonly id?: string;
}

/** Adds the commands that change what accounts may spend or have spent. */
export function addBudgetChanges(budgets: Command, context: CommandContext): void {
  addTopUp(budgets, context);
  addDeleteTopUp(budgets, context);
  addRefund(budgets, context);
}

const amountNotes = `
An amount is in the unit of the budget, which may stand behind it: "100 USD",
"50000 tokens". With an --id, the same command again changes nothing: use it
where an answer may have been lost.`;

function addTopUp(budgets: Command, context: CommandContext): void {
  const command = addAmountFlags(
    accountCommand(budgets, "top-up", "add to what an account may spend, for a time"),
  )
    .option("--for <DURATION>", "when it ends, from now: 3d, 12h30m")
    .option("--until <TIME>", "when it ends; default: with the window of the budget");
  addAdminCommandFlags(addReasonFlags(command), {
    examples: `
  headgate budgets top-up team-month research gpt-4o --amount "100 USD" \\
    --for 3d --reason "a launch"
  headgate budgets top-up team-month '*' gpt-4o --amount 20 --reason "sale"`,
    notes: `
A value * is for all accounts: each of them gets the amount.${amountNotes}`,
  }).action((name: string, values: string[], flags: AmountFlags & EndFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const budget = await findBudget(client, name);
      const amount = readAmount(flags.amount, budget);
      const end = readEnd(flags);
      const until = end.expiresAt === undefined ? "" : ` until ${timeText(end.expiresAt)}`;
      const subject = subjectText(name, values);
      await confirm(
        context,
        flags.yes,
        `Add ${formatAmount(amount, budget)} to ${subject}${until}?`,
      );
      const { reason, id = "" } = flags;
      const account = { budget: name, values };
      const answer = await client.budgets.topUpBudget({ account, amount, reason, id, ...end });
      printer.print(TopUpBudgetResponseSchema, answer, ({ topUp, account: after }, drawing) => {
        const added = `Added ${formatAmount(topUp?.amount ?? amount, budget)} to ${subject}`;
        return [
          `${added} until ${timeText(topUp?.expiresAt)}, as ${safeText(topUp?.id ?? "")}.`,
          ...(after === undefined
            ? []
            : drawAccount({ budget, account: after, topUps: [] }, drawing)),
        ];
      });
    }),
  );
}

function addDeleteTopUp(budgets: Command, context: CommandContext): void {
  const command = budgets
    .command("delete-top-up")
    .description("remove a top-up before it ends")
    .argument("<NAME>", "the name of the budget")
    .argument("<ID>", "the id of the top-up");
  addAdminCommandFlags(addReasonFlags(command), {
    examples: `
  headgate budgets delete-top-up team-month t-1f2e3d4c --reason "a mistake"`,
  }).action((budget: string, id: string, { reason, yes }: ReasonFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      await confirm(context, yes, safeText(`Remove the top-up ${id} of ${budget}?`));
      const answer = await client.budgets.deleteTopUp({ budget, id, reason });
      printer.print(DeleteTopUpResponseSchema, answer, () => [`Removed ${safeText(id)}.`]);
    }),
  );
}

function addRefund(budgets: Command, context: CommandContext): void {
  const command = addAmountFlags(
    accountCommand(budgets, "refund", "give back what an account has spent"),
  );
  addAdminCommandFlags(addReasonFlags(command), {
    examples: `
  headgate budgets refund team-month research gpt-4o --amount 12.50 \\
    --reason "an outage of the provider"`,
    notes: `
At most what was spent in the current window is given back.${amountNotes}`,
  }).action((name: string, values: string[], flags: AmountFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const budget = await findBudget(client, name);
      const amount = readAmount(flags.amount, budget);
      const subject = subjectText(name, values);
      await confirm(context, flags.yes, `Give ${formatAmount(amount, budget)} back to ${subject}?`);
      const { reason, id = "" } = flags;
      const account = { budget: name, values };
      const answer = await client.budgets.refundBudget({ account, amount, reason, id });
      printer.print(RefundBudgetResponseSchema, answer, ({ refunded, account: after }, drawing) => [
        `Gave ${formatAmount(refunded, budget)} back to ${subject}.`,
        ...(after === undefined
          ? []
          : drawAccount({ budget, account: after, topUps: [] }, drawing)),
      ]);
    }),
  );
}

function addAmountFlags(command: Command): Command {
  return command
    .requiredOption("--amount <AMOUNT>", "how much, in the budget's unit")
    .option("--id <ID>", "a name for this change, so that it is made once");
}

function subjectText(budget: string, values: readonly string[]): string {
  return [budget, ...values].map(safeText).join(" ");
}

/** @throws CommandFailure */
function readAmount(text: string, budget: Budget): bigint {
  const amount = parseAmount(text, budget);
  if (amount !== undefined && amount > 0n && amount <= BigInt(amountMax)) return amount;
  const most = formatAmount(amountMax, budget);
  const unit = unitText(budget);
  throw usageFailure(`--amount must be above 0 and at most ${most}, such as "10 ${unit}"`);
}

/** Adds a command for one budget. */
export function budgetCommand(budgets: Command, name: string, description: string): Command {
  return budgets
    .command(name)
    .description(description)
    .argument("<NAME>", "the name of the budget");
}

/** Adds a command for one account. */
export function accountCommand(budgets: Command, name: string, description: string): Command {
  return budgetCommand(budgets, name, description).argument(
    "[VALUE...]",
    "the values of the account, in the order of the budget's per",
  );
}

/** Returns the budget with a name. Its unit is needed to read amounts. */
async function findBudget(client: AdminClient, budget: string): Promise<Budget> {
  const { budgets } = await client.budgets.listBudgets({ budget, withoutSums: true });
  const [found] = budgets;
  if (found === undefined) throw usageFailure(`there is no budget ${JSON.stringify(budget)}`);
  return found;
}
