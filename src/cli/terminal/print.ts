import {
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import type { PlainValue } from "../../generate/base/plain-tree.js";
import { renderYaml } from "../../generate/base/render.js";
import type { CommandContext } from "./context.js";
import { type Drawing, drawingOf, type PrintFormat } from "./drawing.js";

/** Prints answers in the requested format. */
export class Printer {
  readonly format: PrintFormat;
  readonly #context: CommandContext;

  constructor(format: PrintFormat, context: CommandContext) {
    this.format = format;
    this.#context = context;
  }

  /** Prints a message, or its drawing for people. */
  print<M extends Message>(
    schema: DescMessage,
    message: M,
    draw: (message: M, drawing: Drawing) => readonly string[],
  ): void {
    const { output } = this.#context;
    if (this.format === "table") output.out(draw(message, this.drawing()).join("\n"));
    else output.out(renderPlain(plainMessage(schema, message), this.format));
  }

  /** Prints one of several consecutive messages: JSON in one line, YAML in one document each. */
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

  /** Returns the current drawing, because windows change their size. */
  drawing(): Drawing {
    return drawingOf(this.#context);
  }
}

/** Returns a value as JSON or YAML, without terminal control characters. */
export function renderPlain(value: PlainValue, format: "json" | "yaml"): string {
  if (format === "json") return escaped(JSON.stringify(value, undefined, 2));
  return renderYaml(value).trimEnd();
}

/** Escapes characters that JSON allows but terminals interpret. The value does not change. */
function escaped(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => {
      return `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}

/**
 * Converts a message to JSON: camelCase names, empty values included, times in RFC 3339, durations
 * as `1.500s`. Unlike in protobuf's own JSON, 64-bit integers are numbers, as users who filter with
 * jq expect: ours are counts and versions far below 2^53.
 *
 * Source: Protocol Buffers, "ProtoJSON Format".
 */
function plainMessage(schema: DescMessage, message: Message): PlainValue {
  return plainValue(toJson(schema, message, { alwaysEmitImplicit: true }), { message: schema });
}

/** Type of a value. */
type ValueKind = Partial<Pick<DescField, "message" | "scalar" | "fieldKind">>;

function plainValue(json: JsonValue, kind: ValueKind): PlainValue {
  if (Array.isArray(json)) return json.map((item) => plainValue(item, kind));
  if (json instanceof Object) {
    const fields = new Map((kind.message?.fields ?? []).map((field) => [field.jsonName, field]));
    return Object.fromEntries(
      Object.entries(json).map(([name, value]) => [
        name,
        // For a map, the field determines the type of its values.
        plainValue(value, kind.fieldKind === "map" ? mapValueKind(kind) : (fields.get(name) ?? {})),
      ]),
    );
  }
  if (typeof json === "string" && isLong(kind.scalar)) return Number(json);
  // Our messages contain no null.
  return json ?? "";
}

function mapValueKind({ message, scalar }: ValueKind): ValueKind {
  return message === undefined ? { scalar } : { message };
}

function isLong(scalar: ScalarType | undefined): boolean {
  return scalar === ScalarType.UINT64 || scalar === ScalarType.INT64;
}
