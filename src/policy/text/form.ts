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

/** What may stand after a name, as far as it can be told without the rest of the policy. */
export type Form =
  | { readonly kind: "text"; readonly charsMax: number; readonly pattern: RegExp | undefined }
  | { readonly kind: "whole"; readonly min: number; readonly max: number }
  | { readonly kind: "number"; readonly bounds: NumberBounds }
  /** `unitMs`: of what it reads as, where that is not milliseconds. */
  | { readonly kind: "duration"; readonly bounds: DurationBounds; readonly unitMs?: number }
  | { readonly kind: "bytes"; readonly bounds: NumberBounds }
  | { readonly kind: "flag" }
  /** As envoyproxy/ratelimit reads it: `yes` is true. */
  | { readonly kind: "ratelimitBoolean" }
  | { readonly kind: "words"; readonly words: readonly string[]; readonly ignoreCase: boolean }
  | { readonly kind: "map"; readonly map: () => MapForm }
  /** Names are the user's own. */
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

/** What may stand after a name, and how it is read: undefined where it is wrong, and reported. */
export type FieldType<Value> = Form & {
  readonly read: (reader: NodeReader, field: Field) => Value | undefined;
};

/** What a change does to requests; `stricter`: some that passed may be refused. */
export type ChangeEffect = "stricter" | "looser" | "different";

/** What a change of a field means; nothing of it is known from its name. */
export interface ChangeTraits {
  /** What a larger number does; every field that holds a number says it. */
  readonly larger?: ChangeEffect;
  /** What the field does where it was left out before. Default: `different`. */
  readonly added?: ChangeEffect;
  /** Whether Envoys have it by generated configuration. Default: as the map around it. */
  readonly isGenerated?: boolean;
}

/** What a name is for. */
export interface NameRow extends ChangeTraits {
  readonly docs: string;
  readonly form: Form;
  /** As it would be written; absent where there is none, or where it follows from others. */
  readonly writtenDefault?: string | number | boolean;
  /** As `writtenDefault`, as it is read. */
  readonly default?: unknown;
  /** What it is called in the policy as it is read, where that is another name. */
  readonly as?: string | undefined;
}

/** A map as editors and formatters know it: its shape, and a row for each of its names. */
export interface MapForm {
  readonly shape: Shape;
  readonly docs: string;
  readonly rows: Readonly<Record<string, NameRow>>;
  readonly required: readonly string[];
  /** Of each group at most one may be there. */
  readonly exclusive: readonly (readonly string[])[];
  /** Of each group at least one must be there. */
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

/** A form that is read in its own way. */
export function readBy<Value>(form: Form, read: FieldType<Value>["read"]): FieldType<Value> {
  return { ...form, read };
}

/** What is read later: its place. */
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

/** As `words`, of which a message tells what they are. */
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
