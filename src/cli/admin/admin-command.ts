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

/** Flags of every command that calls a Headgate. */
interface AdminCommandFlags extends AdminFlags, PrintFlags {}

/** Parts that such a command works with. */
export interface AdminCommandParts {
  /** Created on first use, because some commands may not need it. */
  readonly client: AdminClient;
  readonly printer: Printer;
  readonly context: CommandContext;
}

/** Flags of a command that shows the fleet. */
export interface FleetViewFlags {
  readonly thisReplica?: boolean;
}

/** Adds the flag of a command that shows each replica's view. */
export function addFleetViewFlags(command: Command): Command {
  return command.option("--this-replica", "only what the answering replica sees");
}

/** Prints on standard error how many replicas did not answer. */
export function noteSilent({ context }: AdminCommandParts, silentReplicas: number): void {
  if (silentReplicas === 0) return;
  context.output.err(`Note: ${many(silentReplicas, "replica")} did not answer in time.`);
}

/** Flags of a command that changes something. */
export interface ReasonFlags {
  readonly reason: string;
  readonly yes?: true;
}

/** The same for a command that replaces something with versions. */
export interface ChangeFlags extends ReasonFlags {
  readonly expectedVersion?: string;
}

/** Adds the flags of a command that changes something without versions, after its own flags. */
export function addReasonFlags(command: Command): Command {
  return command
    .requiredOption("--reason <TEXT>", "the reason, for the audit log")
    .option("--yes", "do not ask for confirmation");
}

/**
 * Adds the flags of a command that changes something, after its own flags.
 *
 * @param replaced description of `--expected-version`
 */
export function addChangeFlags(command: Command, replaced: string): Command {
  return command
    .requiredOption("--reason <TEXT>", "the reason, for the audit log")
    .option("--expected-version <VERSION>", replaced)
    .option("--yes", "do not ask for confirmation");
}

/** @throws CommandFailure for all failures, including error answers */
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

/** Asker for failures before the admin port is known. */
export const nobody = {
  url: "",
  hasToken: false,
  hasAuthority: false,
  hasCertificate: false,
} as const;

/**
 * Asks for confirmation on a terminal. With `--yes`, or without a terminal, it does not ask and
 * continues.
 *
 * @throws CommandFailure if the answer is not yes
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
