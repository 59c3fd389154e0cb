import { type Command, Option } from "commander";
import { createStyle, isColorWanted, type Style } from "../../app/base/style.js";
import type { CommandContext } from "./context.js";

/** Output format: for people, or for programs. */
export type PrintFormat = "table" | "json" | "yaml";

/** Flags of a command that prints. */
export interface PrintFlags {
  readonly output: PrintFormat;
}

/** Adds `-o`. */
export function addPrintFlags(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "how to print")
      .choices(["table", "json", "yaml"])
      .default("table"),
  );
}

/** How output for people is drawn. */
export interface Drawing {
  readonly style: Style;
  /** Maximum length of a line; Infinity without a terminal, where nothing is cut. */
  readonly columnsMax: number;
}

/** Returns the current drawing, because windows change their size. */
export function drawingOf({ env, terminal }: Pick<CommandContext, "env" | "terminal">): Drawing {
  return {
    style: createStyle(isColorWanted(env, terminal.isScreen)),
    columnsMax: terminal.columns() ?? Number.POSITIVE_INFINITY,
  };
}
