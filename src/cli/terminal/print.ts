import type { DescMessage, Message } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { createStyle, isColorWanted, type Style } from "../../app/base/style.js";
import type { PlainValue } from "../../generate/base/plain-tree.js";
import { renderYaml } from "../../generate/base/render.js";
import type { CommandContext } from "./context.js";
import { plainMessage } from "./plain-message.js";

/** For people, or for programs. */
export type PrintFormat = "table" | "json" | "yaml";

/** What stands on the command line. */
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

/** How what is for people is drawn. */
export interface Drawing {
  readonly style: Style;
  /** The length of a line; Infinity off a terminal, where nothing is cut. */
  readonly columnsMax: number;
}

/** Prints answers in the form that was asked for. */
export class Printer {
  readonly format: PrintFormat;
  readonly #context: CommandContext;

  constructor(format: PrintFormat, context: CommandContext) {
    this.format = format;
    this.#context = context;
  }

  /** A message, or what `draw` makes of it for people. */
  print<M extends Message>(
    schema: DescMessage,
    message: M,
    draw: (message: M, drawing: Drawing) => readonly string[],
  ): void {
    const { output } = this.#context;
    if (this.format === "table") output.out(draw(message, this.drawing()).join("\n"));
    else output.out(renderPlain(plainMessage(schema, message), this.format));
  }

  /** One of many that come one after the other: JSON in one line, YAML in a document each. */
  printNext<M extends Message>(
    schema: DescMessage,
    message: M,
    draw: (message: M, drawing: Drawing) => readonly string[],
  ): void {
    const { output } = this.#context;
    if (this.format === "json") output.out(escaped(JSON.stringify(plainMessage(schema, message))));
    else if (this.format === "yaml") {
      output.out(`---\n${renderPlain(plainMessage(schema, message), "yaml")}`);
    } else output.out(draw(message, this.drawing()).join("\n"));
  }

  /** As it is now: windows change their size. */
  drawing(): Drawing {
    const { env, terminal } = this.#context;
    return {
      style: createStyle(isColorWanted(env, terminal.isScreen)),
      columnsMax: terminal.columns() ?? Number.POSITIVE_INFINITY,
    };
  }
}

/** A value that is no message, in a form for programs; nothing in it acts on a terminal. */
export function renderPlain(value: PlainValue, format: "json" | "yaml"): string {
  if (format === "json") return escaped(JSON.stringify(value, undefined, 2));
  return renderYaml(value).trimEnd();
}

/** What JSON leaves as it is and a terminal acts on, escaped: the value stays the same. */
function escaped(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => {
      return `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}
