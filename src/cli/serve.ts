import { type Command, Option } from "commander";
import { exitCodes } from "../app/base/failure.js";
import { loadConfig } from "../app/config/config.js";
import { optionFlag } from "../app/options/option.js";
import { type OptionName, optionRow, optionSections } from "../app/options/options.js";
import type { CommandContext } from "./terminal/context.js";
import { addHelpTexts } from "./terminal/help-texts.js";

/** Adds `headgate serve`: only the service, with every option of the configuration's table. */
export function addServe(program: Command, context: CommandContext): void {
  const command = program.command("serve").description("run the service until a signal stops it");
  addHelpTexts(command, {
    examples: `
  headgate serve --policy policy.yaml
  headgate serve --policy /etc/headgate --log-level debug
  REDIS_URL=redis:6379 REDIS_AUTH_FILE=/run/secrets/redis headgate serve --policy policy.yaml`,
    notes: `
Every option can also be set in the environment; flags take precedence. Only there you can set
secrets:
REDIS_URL, REDIS_AUTH, or the files that REDIS_URL_FILE and REDIS_AUTH_FILE name.

SIGTERM, SIGINT and SIGHUP drain and stop; a second signal stops at once. The policy's files are
watched: a changed policy becomes active at once, and an invalid one is ignored.`,
    exitCodes:
      "Exit codes: 0 stopped as requested, 1 failure or calls cancelled at the end, 2 usage, " +
      "3 invalid policy.",
  });
  const flags = addFlags(command);
  command.action(async () => {
    const given: Partial<Record<OptionName, string>> = {};
    for (const [name, attribute] of flags) {
      const value: unknown = command.getOptionValue(attribute);
      // A switch may have no value.
      if (value === true) given[name] = "true";
      else if (typeof value === "string") given[name] = value;
    }
    const code = await serve(given, context);
    context.exitWith(code);
    // The logs have been written, and open handles must not delay the exit.
    process.exit(code);
  });
}

async function serve(
  flags: Readonly<Partial<Record<OptionName, string>>>,
  { env, output }: CommandContext,
): Promise<number> {
  const loaded = loadConfig({ flags, env });
  if (loaded.kind === "problems") {
    const lines = loaded.problems.map((problem) => `  ${problem}`);
    output.err(
      [
        "The configuration is invalid:",
        ...lines,
        "See `headgate help serve` for all options.",
      ].join("\n"),
    );
    return exitCodes.usage;
  }
  const { config } = loaded;
  // Loaded here, because the service is most of the program, and other commands do not need it.
  const { createLogger } = await import("../app/base/logger.js");
  const { runServiceProcess } = await import("../app/service-process.js");
  const logger = await createLogger(config, { fd: 1, isTerminal: process.stdout.isTTY === true });
  return runServiceProcess(config, { logger, complain: output.err });
}

/** Adds a flag for each row that has one. Returns the command's attribute for each option. */
function addFlags(command: Command): ReadonlyMap<OptionName, string> {
  const attributes = new Map<OptionName, string>();
  for (const [section, names] of optionSections) {
    for (const name of names) {
      const row = optionRow(name);
      const flag = optionFlag(row);
      if (flag === undefined) continue;
      const isSwitch = row.valueName === "true|false";
      const value = isSwitch ? `[${row.valueName}]` : `<${row.valueName}>`;
      const standard = row.defaultText ? ` Default: ${row.defaultText}.` : "";
      const docs = `${row.docs.replaceAll("`", "")}${standard} (${row.env})`;
      const option = new Option(`--${flag} ${value}`, docs).helpGroup(`${section}:`);
      command.addOption(option);
      attributes.set(name, option.attributeName());
    }
  }
  return attributes;
}
