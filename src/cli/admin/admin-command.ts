import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { many } from "../../core/base/many.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import type { PrintFlags } from "../terminal/drawing.js";
import { Printer } from "../terminal/print.js";
import { adminCallFailure } from "./admin-call-failure.js";
import { type AdminClient, createAdminClient } from "./admin-client.js";
import type { AdminFlags } from "./admin-flags.js";

/** What every command has that talks to a Headgate. */
interface AdminCommandFlags extends AdminFlags, PrintFlags {}

/** What such a command works with. */
export interface AdminCommandParts {
  /** Made when it is asked for first: some commands may do without. */
  readonly client: AdminClient;
  readonly printer: Printer;
  readonly context: CommandContext;
}

/** What stands on the command line of a command that shows the fleet. */
export interface FleetViewFlags {
  readonly thisReplica?: boolean;
}

/** Adds the flag of a command that shows what each replica sees. */
export function addFleetViewFlags(command: Command): Command {
  return command.option("--this-replica", "only what the answering replica sees");
}

/** Says on standard error how many replicas did not answer. */
export function noteSilent({ context }: AdminCommandParts, silentReplicas: number): void {
  if (silentReplicas === 0) return;
  context.output.err(`Note: ${many(silentReplicas, "replica")} did not answer in time.`);
}

/** What stands on the command line of a command that changes something. */
export interface ReasonFlags {
  readonly reason: string;
  readonly yes?: true;
}

/** The same, where what is replaced has versions. */
export interface ChangeFlags extends ReasonFlags {
  readonly expectedVersion?: string;
}

/** Adds the flags of a command that changes something without versions, after its own. */
export function addReasonFlags(command: Command): Command {
  return command
    .requiredOption("--reason <TEXT>", "the reason, for the audit log")
    .option("--yes", "do not ask for confirmation");
}

/**
 * Adds the flags of a command that changes something, after its own.
 *
 * @param replaced what `--expected-version` is of
 */
export function addChangeFlags(command: Command, replaced: string): Command {
  return command
    .requiredOption("--reason <TEXT>", "the reason, for the audit log")
    .option("--expected-version <VERSION>", replaced)
    .option("--yes", "do not ask for confirmation");
}

/** @throws CommandFailure for what went wrong, also for an answer that is an error */
export async function runAdmin(
  command: Command,
  context: CommandContext,
  run: (call: AdminCommandParts) => Promise<void>,
): Promise<void> {
  const flags: AdminCommandFlags = command.opts();
  let client: AdminClient | undefined;
  try {
    const call: AdminCommandParts = {
      get client() {
        client ??= createAdminClient(flags, context);
        return client;
      },
      printer: new Printer(flags.output, context),
      context,
    };
    await run(call);
  } catch (thrown) {
    throw adminCallFailure(thrown, client ?? nobody);
  }
}

/** Who asked before anybody could be asked. */
export const nobody = {
  url: "",
  hasToken: false,
  hasAuthority: false,
  hasCertificate: false,
} as const;

/**
 * Asks on a terminal whether to go on; where nobody can be asked, and with `--yes`, the command
 * line itself is the answer.
 *
 * @throws CommandFailure where the answer is anything but yes
 */
export async function confirm(
  { terminal }: Pick<CommandContext, "terminal">,
  isYes: boolean | undefined,
  question: string,
): Promise<void> {
  if (isYes === true || !terminal.canAsk) return;
  const answer = await terminal.ask(`${question} [y/N] `);
  if (/^y(?:es)?$/i.test(answer.trim())) return;
  throw new CommandFailure(exitCodes.failure, "Nothing was changed.");
}
