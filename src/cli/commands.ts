import type { Command } from "commander";
import { readVersion } from "../app/version.js";
import type { CommandContext } from "./context.js";

/** Adds a command to the whole. */
type AddCommand = (program: Command, context: CommandContext) => void;

/** Commands that stand under one heading of the help, by their names. */
interface CommandGroup {
  readonly heading: string;
  readonly commands: Readonly<Record<string, () => Promise<AddCommand>>>;
}

/** All commands, as help shows them; each is loaded when it is needed. */
const commandGroups: readonly CommandGroup[] = [
  {
    heading: "Run:",
    commands: {
      serve: async () => (await import("./serve.js")).addServe,
      demo: async () => (await import("./demo.js")).addDemo,
    },
  },
  {
    heading: "Write a policy:",
    commands: {
      init: async () => (await import("./init.js")).addInit,
      check: async () => (await import("./check.js")).addCheck,
      fmt: async () => (await import("./fmt.js")).addFmt,
      diff: async () => (await import("./diff.js")).addDiff,
      test: async () => (await import("./test.js")).addTest,
      replay: async () => (await import("./replay.js")).addReplay,
      generate: async () => (await import("./generate.js")).addGenerate,
      schema: async () => (await import("./schema.js")).addSchema,
    },
  },
  {
    heading: "Look at what runs:",
    commands: {
      explain: async () => (await import("./explain.js")).addExplain,
      rules: async () => (await import("./rules.js")).addRules,
      top: async () => (await import("./top.js")).addTop,
      tail: async () => (await import("./tail.js")).addTail,
      quotas: async () => (await import("./quotas.js")).addQuotas,
      services: async () => (await import("./services.js")).addServices,
      fleet: async () => (await import("./fleet.js")).addFleet,
      shadow: async () => (await import("./shadow.js")).addShadow,
      history: async () => (await import("./history.js")).addHistory,
      audit: async () => (await import("./audit.js")).addAudit,
      doctor: async () => (await import("./doctor.js")).addDoctor,
    },
  },
  {
    heading: "Change what runs:",
    commands: {
      keys: async () => (await import("./keys.js")).addKeys,
      gate: async () => (await import("./gate.js")).addGate,
      apply: async () => (await import("./apply.js")).addApply,
      enforce: async () => (await import("./enforce.js")).addEnforce,
      rollback: async () => (await import("./rollback.js")).addRollback,
    },
  },
  {
    heading: "More:",
    commands: {
      completion: async () => (await import("./completion.js")).addCompletion,
      help: async () => (await import("./help.js")).addHelp,
      version: async () => addVersion,
    },
  },
];

/** Commands that look at all others. */
const wholeCommands: readonly string[] = ["completion", "help"];

/**
 * Adds all commands, in groups as help shows them; or the one that a command line names first,
 * which then need not load what only others use.
 */
export async function addCommands(
  program: Command,
  context: CommandContext,
  word?: string,
): Promise<void> {
  const names = commandGroups.flatMap(({ commands }) => Object.keys(commands));
  const isOne = word !== undefined && names.includes(word) && !wholeCommands.includes(word);
  for (const { heading, commands } of commandGroups) {
    program.commandsGroup(heading);
    for (const [name, load] of Object.entries(commands)) {
      if (!isOne || name === word) (await load())(program, context);
    }
  }
}

function addVersion(program: Command, { output }: CommandContext): void {
  program
    .command("version")
    .description("print the version of this program and of Node")
    .addHelpText("before", "Examples:\n  headgate version\n")
    .addHelpText("after", "\nExit codes: 0 printed, 2 usage.")
    .action(() => output.out(`headgate ${readVersion()} (node ${process.versions.node})`));
}
