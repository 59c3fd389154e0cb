import type { Command } from "commander";
import { readVersion } from "../app/base/version.js";
import type { CommandContext } from "./terminal/context.js";

/** Adds a command to the program. */
type AddCommand = (program: Command, context: CommandContext) => void;

/** Commands under one heading of the help, by name. */
interface CommandGroup {
  readonly heading: string;
  readonly commands: Readonly<Record<string, () => Promise<AddCommand>>>;
}

const loadLive = async () => (await import("./live/live-commands.js")).liveCommands;
const loadRollout = async () => (await import("./rollout/rollout-commands.js")).rolloutCommands;

/** All commands in the order of the help. Each is loaded when it is needed. */
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
      init: async () => (await import("./policy/init.js")).addInit,
      check: async () => (await import("./policy/check.js")).addCheck,
      fmt: async () => (await import("./policy/fmt.js")).addFmt,
      diff: async () => (await import("./policy/diff.js")).addDiff,
      test: async () => (await import("./policy/test.js")).addTest,
      replay: async () => (await import("./replay/replay.js")).addReplay,
      simulate: async () => (await import("./simulate/simulate.js")).addSimulate,
      recommend: async () => (await import("./recommend/recommend.js")).addRecommend,
      generate: async () => (await import("./generate/generate.js")).addGenerate,
      schema: async () => (await import("./policy/schema.js")).addSchema,
    },
  },
  {
    heading: "Inspect a running Headgate:",
    commands: {
      explain: async () => (await import("./live/explain.js")).addExplain,
      rules: async () => (await loadLive()).rules,
      top: async () => (await loadLive()).top,
      tail: async () => (await loadLive()).tail,
      quotas: async () => (await loadLive()).quotas,
      services: async () => (await loadLive()).services,
      fleet: async () => (await loadLive()).fleet,
      shadow: async () => (await loadRollout()).shadow,
      history: async () => (await loadRollout()).history,
      audit: async () => (await loadRollout()).audit,
      doctor: async () => (await import("./doctor/doctor.js")).addDoctor,
    },
  },
  {
    heading: "Change a running Headgate:",
    commands: {
      keys: async () => (await loadLive()).keys,
      gate: async () => (await loadLive()).gate,
      rooms: async () => (await loadLive()).rooms,
      budgets: async () => (await loadLive()).budgets,
      apply: async () => (await loadRollout()).apply,
      enforce: async () => (await loadRollout()).enforce,
      rollback: async () => (await loadRollout()).rollback,
    },
  },
  {
    heading: "More:",
    commands: {
      completion: async () => (await import("./completion/completion.js")).addCompletion,
      help: async () => (await import("./policy/help.js")).addHelp,
      version: async () => addVersion,
    },
  },
];

/** Commands that need all other commands. */
const wholeCommands: readonly string[] = ["completion", "help"];

/**
 * Adds all commands, in the groups of the help. If `word` names a command, adds only that one, so
 * that the modules of others are not loaded.
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
    .description("print the versions of this program and of Node")
    .addHelpText("before", "Examples:\n  headgate version\n")
    .addHelpText("after", "\nExit codes: 0 printed, 2 usage.")
    .action(() => output.out(`headgate ${readVersion()} (node ${process.versions.node})`));
}
