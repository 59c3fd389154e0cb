import { formatDuration } from "./duration.js";
import type { DurationBounds, NumberBounds } from "./quantities.js";
import type { Shape } from "./shapes.js";
import type { TextRule } from "./text-rules.js";

/** What may stand after a name, as far as it can be told without the rest of the policy. */
export type Form =
  | { readonly kind: "text"; readonly charsMax: number; readonly pattern: RegExp | undefined }
  | { readonly kind: "whole"; readonly min: number; readonly max: number }
  | { readonly kind: "number"; readonly bounds: NumberBounds }
  | { readonly kind: "duration"; readonly bounds: DurationBounds }
  | { readonly kind: "bytes" }
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

/** What a name is for. */
export interface NameRow {
  readonly docs: string;
  readonly form: Form;
  /** As it would be written; absent where there is none, or where it follows from others. */
  readonly usual?: string | number | boolean;
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

/** What a map says beside its names. */
interface MapExtras<Name extends string> {
  readonly required?: readonly Name[];
  readonly exclusive?: readonly (readonly Name[])[];
  readonly needed?: readonly (readonly Name[])[];
}

/** Describes a shape: the compiler holds the rows equal to its names. */
export function mapForm<Name extends string>(
  {
    shape,
    docs,
    ...extras
  }: { readonly shape: Shape<Name>; readonly docs: string } & MapExtras<Name>,
  rows: Readonly<Record<NoInfer<Name>, NameRow>>,
): MapForm {
  const { required = [], exclusive = [], needed = [] } = extras;
  return { shape, docs, rows, required, exclusive, needed };
}

/** A row. */
export function row(form: Form, docs: string, usual?: NameRow["usual"]): NameRow {
  return usual === undefined ? { docs, form } : { docs, form, usual };
}

/** A text. */
export function text({ charsMax }: Pick<TextRule, "charsMax">, pattern?: RegExp): Form {
  return { kind: "text", charsMax, pattern };
}

/** A whole number. */
export function whole({ min, max }: { readonly min: number; readonly max: number }): Form {
  return { kind: "whole", min, max };
}

/** A number. */
export function number(bounds: NumberBounds): Form {
  return { kind: "number", bounds };
}

/** A duration. */
export function duration(bounds: DurationBounds): Form {
  return { kind: "duration", bounds };
}

/** One of a few words. */
export function words(...each: readonly string[]): Form {
  return { kind: "words", words: each, ignoreCase: false };
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

/** What may be switched off. */
export function orOff(form: MapForm): Form {
  return any(map(form), words("off"));
}

/** True or false. */
export const flag: Form = { kind: "flag" };

/** A quantity of bytes. */
export const bytes: Form = { kind: "bytes" };

/** A duration as it is written. */
export function written(durationMs: number): string {
  return formatDuration(durationMs);
}
