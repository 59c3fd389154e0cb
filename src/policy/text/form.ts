import type { WaitBound } from "../../core/admission/estimated-wait.js";
import type { Field, NodeReader } from "./node-reader.js";
import {
  type DurationBounds,
  type NumberBounds,
  readBytes,
  readDuration,
  readMultiple,
  readNumber,
  readWaitBound,
} from "./quantities.js";
import type { Shape } from "./shapes.js";
import type { TextRule } from "./text-rules.js";

/** Syntax of a field's value, as far as it is known without the rest of the policy. */
export type Form =
  | { readonly kind: "text"; readonly charsMax: number; readonly pattern: RegExp | undefined }
  | { readonly kind: "whole"; readonly min: number; readonly max: number }
  | { readonly kind: "number"; readonly bounds: NumberBounds }
  /** `unitMs`: unit of the value that it reads as, if that is not milliseconds. */
  | { readonly kind: "duration"; readonly bounds: DurationBounds; readonly unitMs?: number }
  | { readonly kind: "bytes"; readonly bounds: NumberBounds }
  | { readonly kind: "flag" }
  /** A boolean as envoyproxy/ratelimit reads it: `yes` is true. */
  | { readonly kind: "ratelimitBoolean" }
  | { readonly kind: "words"; readonly words: readonly string[]; readonly ignoreCase: boolean }
  | { readonly kind: "map"; readonly map: () => MapForm }
  /** A map whose names the user chooses. */
  | { readonly kind: "texts"; readonly key: RegExp; readonly value: Form; readonly max: number }
  | {
      readonly kind: "list";
      readonly item: Form;
      readonly min: number;
      readonly max: number | undefined;
    }
  | { readonly kind: "any"; readonly of: readonly Form[] }
  /** Any map. */
  | { readonly kind: "json" };

/** Syntax of a field's value, and its reader: undefined, and reported, if the value is wrong. */
export type FieldType<Value> = Form & {
  readonly read: (reader: NodeReader, field: Field) => Value | undefined;
};

/** Effect of a change on requests; `stricter`: some that were admitted before may be refused. */
export type ChangeEffect = "stricter" | "looser" | "different";

/** Meaning of a change of a field, which cannot be derived from its name. */
export interface ChangeTraits {
  /** Effect of a larger number; every field that holds a number declares it. */
  readonly larger?: ChangeEffect;
  /** Effect of adding the field if it was left out before. Default: `different`. */
  readonly added?: ChangeEffect;
  /** Whether Envoys have it by generated configuration. Default: as the map around it. */
  readonly isGenerated?: boolean;
}

/** Description of a field. */
export interface NameRow extends ChangeTraits {
  readonly docs: string;
  readonly form: Form;
  /** Default as it would be written; absent if there is none, or if it depends on other fields. */
  readonly writtenDefault?: string | number | boolean;
  /** The same default as it is read. */
  readonly default?: unknown;
  /** Name of the field in the policy as it is read, if that differs. */
  readonly as?: string | undefined;
}

/** A map for editors and formatters: its shape, and a row for each of its names. */
export interface MapForm {
  readonly shape: Shape;
  readonly docs: string;
  readonly rows: Readonly<Record<string, NameRow>>;
  readonly required: readonly string[];
  /** Of each group, at most one name may be present. */
  readonly exclusive: readonly (readonly string[])[];
  /** Of each group, at least one name must be present. */
  readonly needed: readonly (readonly string[])[];
}

/** A text. */
export function text({ charsMax }: Pick<TextRule, "charsMax">, pattern?: RegExp): Form {
  return { kind: "text", charsMax, pattern };
}

/** A text that is read by a rule. */
export function ruledText(rule: TextRule, pattern?: RegExp): FieldType<string> {
  return readBy(text(rule, pattern), (reader, field) => reader.readText(field, rule));
}

/** Combines a form with its own reader. */
export function readBy<Value>(form: Form, read: FieldType<Value>["read"]): FieldType<Value> {
  return { ...form, read };
}

/** A field that is read later: returns the field itself. */
export function asWritten(form: Form): FieldType<Field> {
  return readBy(form, (_, field) => field);
}

/** A whole number. */
export function whole({ min, max }: NumberBounds): FieldType<number> {
  const bounds = { min, max };
  return readBy({ kind: "whole", ...bounds }, (reader, field) => reader.readWhole(field, bounds));
}

/** A number. */
export function number(bounds: NumberBounds): FieldType<number> {
  return readBy({ kind: "number", bounds }, (reader, field) => readNumber(reader, field, bounds));
}

/** A duration, in milliseconds. */
export function duration(bounds: DurationBounds): FieldType<number> {
  return readBy({ kind: "duration", bounds }, (reader, field) =>
    readDuration(reader, field, bounds),
  );
}

/** A duration of whole seconds, in seconds; `refuse` reports one with a part of a second. */
export function seconds(
  bounds: DurationBounds,
  refuse: (reader: NodeReader, field: Field, ms: number) => undefined,
): FieldType<number> {
  return readBy({ kind: "duration", bounds, unitMs: 1_000 }, (reader, field) => {
    const ms = readDuration(reader, field, bounds);
    if (ms === undefined || ms % 1_000 === 0) return ms && ms / 1_000;
    return refuse(reader, field, ms);
  });
}

/** One of a few words. */
export function words<const Word extends string>(...each: readonly Word[]): FieldType<Word> {
  const finding = { id: "HG133", what: "a choice here" } as const;
  return readBy({ kind: "words", words: each, ignoreCase: false }, (reader, field) =>
    reader.readChoice(field, each, finding),
  );
}

/** Like `words`, with a description of the words for messages. */
export function choice<const Word extends string>(
  { what = "a choice here", expected }: { readonly what?: string; readonly expected?: string },
  ...each: readonly Word[]
): FieldType<Word> {
  return readBy(words(...each), (reader, field) =>
    reader.readChoice(field, each, { id: "HG133", what, expected }),
  );
}

/** A map of names. */
export function map(form: MapForm): Form {
  return { kind: "map", map: () => form };
}

/** A list. */
export function list(item: Form, max?: number, min = 0): Form {
  return { kind: "list", item, min, max };
}

/** One of several forms. */
export function any(...of: readonly Form[]): Form {
  return { kind: "any", of };
}

/** True or false. */
export const flag: FieldType<boolean> = {
  kind: "flag",
  read: (reader, field) => reader.readFlag(field, "headgate"),
};

/** A quantity of bytes. */
export function bytes(bounds: NumberBounds): FieldType<number> {
  return readBy({ kind: "bytes", bounds }, (reader, field) => readBytes(reader, field, bounds));
}

/** A multiple, such as `3x`. */
export const multiple = readBy(text({ charsMax: 64 }, /^[0-9]+(?:\.[0-9]+)?x$/), readMultiple);

/** A duration, or a multiple of the service time. */
export function waitBound(bounds: DurationBounds): FieldType<WaitBound> {
  return readBy(any(duration(bounds), multiple), (reader, field) =>
    readWaitBound(reader, field, bounds),
  );
}
