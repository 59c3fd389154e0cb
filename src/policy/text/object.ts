import { isMap } from "yaml";
import { Block, readItems, readWords } from "./block.js";
import { formatDuration } from "./duration.js";
import {
  any,
  type FieldType,
  type Form,
  type MapForm,
  type NameRow,
  readBy,
  words,
} from "./form.js";
import type { Field, NodeReader } from "./node-reader.js";
import { plainShape } from "./shapes.js";

/**
 * A field of a map, declared once: it is read, described in the JSON Schema, formatted and
 * compared by this.
 */
export interface DeclaredField<Value, Fallback, As extends string | undefined> extends NameRow {
  readonly form: FieldType<Value>;
  /** What is read where it is left out. */
  readonly fallback: Fallback;
  readonly as: As;
  /** What it must be, where it must be there. */
  readonly needs: string | undefined;
}

type AnyField = DeclaredField<unknown, unknown, string | undefined>;

/** The fields of a map by their names. */
export type DeclaredFields = Readonly<Record<string, AnyField>>;

type DataName<Row, Name> = Row extends { readonly as: infer As extends string } ? As : Name;

type Read<Row> =
  Row extends DeclaredField<infer Value, infer Fallback, infer _> ? Value | Fallback : never;

/** What is read of a map by its declaration. */
export type Values<Rows> = {
  readonly [Name in keyof Rows as DataName<Rows[Name], Name & string>]: Read<Rows[Name]>;
};

/** A map as it is declared. */
export interface ObjectForm<Data> extends MapForm {
  /** What an empty map says. */
  readonly defaults: Data;
  /** Reads it; a field with a default that is left out is as in `base`. */
  read(block: Block, base?: Data): Data;
}

/** What of a field is said beside its type and its documentation. */
interface Options<As> {
  /** What it is called in the policy as it is read; left out: as it is written. */
  readonly as?: As;
  /** What it must be; it must be there. */
  readonly needs?: string;
}

/** Declares a field; one without a default reads as undefined where it is left out. */
export function field<Value, const As extends string | undefined = undefined>(
  form: FieldType<Value>,
  docs: string,
  options: Options<As> & { readonly default: NoInfer<Value> },
): DeclaredField<Value, Value, As>;
/** `dependentDefault`: what is left out follows from other fields, and is this without them. */
export function field<Value, const As extends string | undefined = undefined>(
  form: FieldType<Value>,
  docs: string,
  options: Options<As> & { readonly dependentDefault: NoInfer<Value> },
): DeclaredField<Value, undefined, As>;
export function field<Value, const As extends string | undefined = undefined>(
  form: FieldType<Value>,
  docs: string,
  options?: Options<As>,
): DeclaredField<Value, undefined, As>;
export function field(
  form: FieldType<unknown>,
  docs: string,
  options: Options<string> & { default?: unknown; dependentDefault?: unknown } = {},
): AnyField {
  const { as, needs, default: fallback, dependentDefault = fallback } = options;
  const usual = written(form, dependentDefault);
  const row = { docs, form, as, needs, fallback };
  return usual === undefined ? row : { ...row, usual };
}

/** A default as it would be written; undefined where it is no single value. */
function written({ kind }: Form, value: unknown): NameRow["usual"] {
  if (typeof value === "number" && kind === "duration") return formatDuration(value);
  const isSingle = typeof value === "number" || typeof value === "string";
  return isSingle || typeof value === "boolean" ? value : undefined;
}

/** What a map says beside its fields. */
interface Head {
  /** For messages: `a retryBudget`. */
  readonly title: string;
  readonly docs: string;
  /** Ways to say one thing: only one of them may be there, and of two the first is not read. */
  readonly alternatives?: readonly string[];
  /** Of each group at most one may be there. */
  readonly exclusive?: MapForm["exclusive"];
  /** Of each group at least one must be there. */
  readonly needed?: MapForm["needed"];
}

/** What holds between the fields of a map. */
interface Rules<Read, Data> {
  /** Makes what the policy holds out of what the fields say. */
  data(read: Read, base?: Data): Data;
  /** Reports what does not fit together. */
  check?(block: Block, data: Data, read: Read): void;
}

/** Declares a map. */
export function object<Rows extends DeclaredFields>(
  head: Head,
  rows: Rows,
): ObjectForm<Values<Rows>>;
export function object<Rows extends DeclaredFields, Data>(
  head: Head,
  rows: Rows,
  rules: Rules<Values<Rows>, Data>,
): ObjectForm<Data>;
export function object<Rows extends DeclaredFields>(
  { title, docs, alternatives = [], exclusive = [], needed = [] }: Head,
  rows: Rows,
  { data, check }: Rules<Values<Rows>, unknown> = { data: (read) => read },
): ObjectForm<unknown> {
  const each = Object.entries(rows);
  const names = each.map(([name]) => name);
  return {
    shape: plainShape(title, names),
    docs,
    rows,
    required: each.flatMap(([name, { needs }]) => (needs === undefined ? [] : [name])),
    exclusive: alternatives.length > 0 ? [alternatives, ...exclusive] : exclusive,
    needed,
    defaults: data(valuesBy(rows, (_, { fallback }) => fallback)),
    read(block, base) {
      const outer = new Map(Object.entries(base ?? {}));
      const skipped = refuseSecond(block, alternatives);
      for (const group of exclusive) refuseSecond(block, group);
      const read = valuesBy(rows, (name, { form, as = name, needs, fallback }) => {
        const found = name === skipped ? undefined : block.declared(name, needs);
        const value = found && form.read(block.reader, found);
        return value ?? (fallback === undefined ? undefined : (outer.get(as) ?? fallback));
      });
      const made = data(read, base);
      check?.(block, made, read);
      return made;
    },
  };
}

/** Refuses the second of a group where two are there, and answers the first then. */
function refuseSecond(block: Block, group: readonly string[]): string | undefined {
  const [first, second] = group.filter((name) => block.field(name) !== undefined);
  if (first === undefined || second === undefined) return undefined;
  block.refusePair(second, first);
  return first;
}

/** What the rows give, by their names in the policy as it is read: the types say which. */
function valuesBy<Rows extends DeclaredFields>(
  rows: Rows,
  make: (name: string, row: AnyField) => unknown,
): Values<Rows> {
  const each = Object.entries(rows);
  return Object.fromEntries(
    each.map(([name, row]) => [row.as ?? name, make(name, row)]),
  ) as Values<Rows>;
}

/** A declared map as the value of a field. */
export function inner<Data>(form: ObjectForm<Data>): FieldType<Data> {
  return readBy({ kind: "map", map: () => form }, (reader, place) =>
    readInner(reader, place, form),
  );
}

/** A declared map, or `off`. */
export function innerOrOff<Data>(form: ObjectForm<Data>): FieldType<Data | "off"> {
  const either = any(inner(form), words("off"));
  return readBy(either, (reader, place) => {
    if (place.value === undefined || isMap(reader.contentOf(place))) {
      return readInner(reader, place, form);
    }
    const expected = "a map of names, or off";
    return reader.readChoice(place, ["off"] as const, {
      id: "HG133",
      what: "a choice here",
      expected,
    });
  });
}

function readInner<Data>(
  reader: NodeReader,
  place: Field,
  form: ObjectForm<Data>,
): Data | undefined {
  const block = blockOf(reader, place, form);
  return block && form.read(block);
}

/** The map that is a field's value; undefined, and reported, where there is none. */
export function blockOf(reader: NodeReader, place: Field, { shape }: MapForm): Block | undefined {
  const value = reader.required(place, `${shape.title}; {} for what is usual`);
  return value && Block.at(reader, value, shape);
}

/** A list of single values, such as statuses. */
export function items<Value>(
  item: FieldType<Value>,
  { expected, max }: { readonly expected: string; readonly max: number },
): FieldType<readonly Value[]> {
  return readBy({ kind: "list", item, min: 0, max }, (reader, place) =>
    readItems(reader, place, { expected, countMax: max })?.flatMap(
      (one) => item.read(reader, one) ?? [],
    ),
  );
}

/** A list of different words out of a few; one at least. */
export function wordList<const Word extends string>(
  choices: readonly Word[],
): FieldType<readonly Word[]> {
  const item: Form = { kind: "words", words: choices, ignoreCase: false };
  return readBy({ kind: "list", item, min: 1, max: undefined }, (reader, place) =>
    readWords(reader, place, choices),
  );
}
