import type { Command } from "commander";

/** Help texts of a command in addition to its flags; lines as they are shown. */
export interface HelpTexts {
  /** Starts with a newline, like `notes`. */
  readonly examples: string;
  readonly notes?: string;
  /** The last paragraph. */
  readonly exitCodes: string;
}

/** Adds examples before commander's help of a command, and the other texts after it. */
export function addHelpTexts(command: Command, texts: HelpTexts): Command {
  const { examples, notes = "", exitCodes } = texts;
  return command
    .addHelpText("before", `Examples:${examples}\n`)
    .addHelpText("after", `${notes}${notes === "" ? "" : "\n"}\n${exitCodes}`);
}
