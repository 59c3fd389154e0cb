import { isMap, type ParsedNode } from "yaml";
import { Block, readItems, readWords } from "./block.js";
import { formatDuration } from "./duration.js";
import {
  any,
  type ChangeTraits,
  type FieldType,
  type Form,
  type MapForm,
  type NameRow,
  readBy,
  words,
} from "./form.js";

/**
 * A field of a map, declared once. This declaration is used to read it, to describe it in the JSON
 * Schema, to format it and to compare it.
 */
interface DeclaredField<Value, Fallback, As extends string | undefined> extends NameRow {
  readonly form: FieldType<Value>;
  /** The value if the field is left out. */
  readonly fallback: Fallback;
  readonly as: As;
  /** Description of the value, for messages; set if the field is required. */
  readonly needs: string | undefined;
}

type AnyField = DeclaredField<unknown, unknown, string | undefined>;

/** The fields of a map by their names. */
export type DeclaredFields = Readonly<Record<string, AnyField>>;

type DataName<Row, Name> = Row extends { readonly as: infer As extends string } ? As : Name;

type Read<Row> =
  Row extends DeclaredField<infer Value, infer Fallback, infer _> ? Value | Fallback : never;

/** Values that are read from a map by its declaration. */
export type Values<Rows> = {
  readonly [Name in keyof Rows as DataName<Rows[Name], Name & string>]: Read<Rows[Name]>;
};

/** Declaration of a map. */
export interface ObjectForm<Data, Rows extends DeclaredFields = DeclaredFields> extends MapForm {
  readonly rows: Rows;
  /** Value of an empty map. */
  readonly defaults: Data;
  /** Reads the map. A left-out field that has a default takes its value from `base`. */
  read(block: Block, base?: Data): Data;
}

/** Properties of a field other than its type and its documentation. */
interface Options<As> extends ChangeTraits {
  /** Default as it is written, if that differs from the value. */
  readonly writtenDefault?: NonNullable<NameRow["writtenDefault"]>;
  /** Name of the field in the policy as it is read. Default: the written name. */
  readonly as?: As;
  /** Description of the value, for messages; makes the field required. */
  readonly needs?: string;
}

/** Declares a field. Without a default, a left-out field reads as undefined. */
export function field<Value, const As extends string | undefined = undefined>(
  form: FieldType<Value>,
  docs: string,
  options: Options<As> & { readonly default: NoInfer<Value> },
): DeclaredField<Value, Value, As>;
/** `dependentDefault`: the default depends on other fields, and is this value without them. */
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
  const { as, needs, default: fallback, dependentDefault = fallback, ...rest } = options;
  const { writtenDefault = written(form, dependentDefault), ...traits } = rest;
  const row = { docs, form, as, needs, fallback, default: dependentDefault, ...traits };
  return writtenDefault === undefined ? row : { ...row, writtenDefault };
}

/** Returns a default as it would be written; undefined if it is not a single value. */
function written(form: Form, value: unknown): NameRow["writtenDefault"] {
  if (typeof value === "number" && form.kind === "duration") {
    return formatDuration(value * (form.unitMs ?? 1));
  }
  const isSingle = typeof value === "number" || typeof value === "string";
  return isSingle || typeof value === "boolean" ? value : undefined;
}

/** Properties of a map other than its fields. */
interface Head {
  /** For messages: `a retryBudget`. */
  readonly title: string;
  readonly docs: string;
  /** Alternatives, of which only one may be present; of two, the first one is not read. */
  readonly alternatives?: readonly string[];
  /** Of each group, at most one name may be present. */
  readonly exclusive?: MapForm["exclusive"];
  /** Like `exclusive`, but `check` reports the others itself. */
  readonly clashing?: MapForm["exclusive"];
  /** Of each group, at least one name must be present; `check` reports it in its own words. */
  readonly needed?: MapForm["needed"];
  /** Names that count as left out if nothing follows the `:`. */
  readonly blank?: readonly string[];
  /** Names that are known but not supported yet. */
  readonly later?: readonly string[];
  /** Names that exist only in the other dialect. */
  readonly own?: readonly string[];
}

/** Rules between the fields of a map. */
interface Rules<Read, Data> {
  /** Builds the policy's value from the values of the fields. */
  data(read: Read, base?: Data): Data;
  /** Reports fields that contradict each other. */
  check?(block: Block, data: Data, read: Read): void;
}

/** Declares a map. */
export function object<Rows extends DeclaredFields>(
  head: Head,
  rows: Rows,
): ObjectForm<Values<Rows>, Rows>;
export function object<Rows extends DeclaredFields, Data>(
  head: Head,
  rows: Rows,
  rules: Rules<Values<Rows>, Data>,
): ObjectForm<Readonly<Data>, Rows>;
export function object<Rows extends DeclaredFields>(
  { title, docs, alternatives = [], exclusive = [], clashing = [], needed = [], ...head }: Head,
  rows: Rows,
  { data, check }: Rules<Values<Rows>, unknown> = { data: (read) => read },
): ObjectForm<unknown, Rows> {
  const each = Object.entries(rows);
  const { blank = [], later = [], own = [] } = head;
  const names = Object.keys(rows).filter((name) => !own.includes(name));
  return {
    shape: { title, names, blankNames: blank, laterNames: later, ownNames: own },
    docs,
    rows,
    required: each.flatMap(([name, { needs }]) => (needs === undefined ? [] : [name])),
    exclusive: [...(alternatives.length > 0 ? [alternatives] : []), ...exclusive, ...clashing],
    needed,
    defaults: data(valuesBy(rows, (_, { fallback }) => fallback)),
    read(block, base) {
      const outer = new Map(Object.entries(base ?? {}));
      const skipped = refuseSecond(block, alternatives);
      for (const group of exclusive) refuseSecond(block, group);
      const read = valuesBy(rows, (name, row) => {
        const { as = name, fallback } = row;
        const value = name === skipped ? undefined : readRow(block, name, row);
        return value ?? (fallback === undefined ? undefined : (outer.get(as) ?? fallback));
      });
      const made = data(read, base);
      check?.(block, made, read);
      return made;
    },
  };
}

function readRow(block: Block, name: string, { form, needs }: AnyField): unknown {
  const found = block.declared(name, needs);
  return found && form.read(block.reader, found);
}

/** Reads a single field of a map by itself; its default if it is wrong. */
export function readField<Rows extends DeclaredFields, Name extends keyof Rows & string>(
  form: { readonly rows: Rows },
  block: Block,
  name: Name,
): Read<Rows[Name]>;
export function readField(
  form: { readonly rows: DeclaredFields },
  block: Block,
  name: string,
): unknown {
  const row = form.rows[name];
  return row && (readRow(block, name, row) ?? row.fallback);
}

/** Refuses the second of two names of a group that are present, and returns the first. */
function refuseSecond(block: Block, group: readonly string[]): string | undefined {
  const [first, second] = group.filter((name) => block.field(name) !== undefined);
  if (first === undefined || second === undefined) return undefined;
  block.refusePair(second, first);
  return first;
}

/** Returns the rows' values under their names in the policy as it is read, as the types state. */
function valuesBy<Rows extends DeclaredFields>(
  rows: Rows,
  make: (name: string, row: AnyField) => unknown,
): Values<Rows> {
  const values: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(rows)) values[row.as ?? name] = make(name, row);
  return values as Values<Rows>;
}

/** A declared map as the value of a field. @param expected what belongs there, for messages */
export function inner<Data>(
  form: ObjectForm<Data | undefined>,
  expected?: string,
): FieldType<Data> {
  return innerBy(form, (block) => form.read(block), expected);
}

/** A declared map with its own reader. */
export function innerBy<Data>(
  form: MapForm,
  read: (block: Block) => Data | undefined,
  expected = `${form.shape.title}; {} for the defaults`,
): FieldType<Data> {
  return readBy({ kind: "map", map: () => form }, (reader, place) => {
    const value = reader.required(place, expected);
    const block = value && Block.at(reader, value, form.shape);
    return block && read(block);
  });
}

/** The value of a declared map, and its block for checks against other maps. */
export interface ReadBlock<Data> {
  readonly block: Block;
  readonly data: Data;
}

/** A declared map that also returns its block. */
export function innerBlock<Data>(
  form: ObjectForm<Data>,
  expected?: string,
): FieldType<ReadBlock<Data>> {
  return innerBy(form, (block) => ({ block, data: form.read(block) }), expected);
}

/** A value and its place. */
export interface PlacedValue<Value> {
  readonly value: Value;
  readonly node: ParsedNode;
}

/** A value with its place. */
export function placed<Value>(form: FieldType<Value>): FieldType<PlacedValue<Value>> {
  return readBy(form, (reader, place) => {
    const value = form.read(reader, place);
    return value === undefined ? undefined : { value, node: place.value ?? place.key };
  });
}

/** One of a few words, or a map. */
export function wordOr<const Word extends string, Data>(
  choices: readonly Word[],
  form: FieldType<Data>,
  expected: string,
): FieldType<Word | Data> {
  return readBy(any(form, words(...choices)), (reader, place) => {
    if (place.value === undefined || isMap(reader.contentOf(place)))
      return form.read(reader, place);
    return reader.readChoice(place, choices, { id: "HG133", what: "a choice here", expected });
  });
}

/** A declared map, or `off`. */
export function innerOrOff<Data>(form: ObjectForm<Data>): FieldType<Data | "off"> {
  return wordOr(["off"], inner(form), "a map of names, or off");
}

/** A list, such as of statuses. Its map reports fewer items than `min`, in its own words. */
export function items<Value>(
  item: FieldType<Value>,
  { expected, max, min = 0 }: { readonly expected: string; readonly max: number; min?: number },
): FieldType<readonly Value[]> {
  return readBy({ kind: "list", item, min, max }, (reader, place) =>
    readItems(reader, place, { expected, countMax: max })?.flatMap(
      (one) => item.read(reader, one) ?? [],
    ),
  );
}

/** A list of distinct words from a set of choices. Its map reports fewer than `min`. */
export function wordList<const Word extends string>(
  choices: readonly Word[],
  min = 0,
): FieldType<readonly Word[]> {
  const item: Form = { kind: "words", words: choices, ignoreCase: false };
  return readBy({ kind: "list", item, min, max: undefined }, (reader, place) =>
    readWords(reader, place, choices),
  );
}
