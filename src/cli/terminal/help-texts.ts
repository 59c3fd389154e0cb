import type { Command } from "commander";

/** What the help of a command says beside its flags; lines as they are shown. */
export interface HelpTexts {
  /** Begins with an end of line, as `notes` does. */
  readonly examples: string;
  readonly notes?: string;
  /** The last paragraph. */
  readonly exitCodes: string;
}

/** Puts examples before what commander says of a command, and the rest behind it. */
export function addHelpTexts(command: Command, texts: HelpTexts): Command {
  const { examples, notes = "", exitCodes } = texts;
  return command
    .addHelpText("before", `Examples:${examples}\n`)
    .addHelpText("after", `${notes}${notes === "" ? "" : "\n"}\n${exitCodes}`);
}
