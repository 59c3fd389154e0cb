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
 * A field of a map, declared once: it is read, described in the JSON Schema, formatted and
 * compared by this.
 */
interface DeclaredField<Value, Fallback, As extends string | undefined> extends NameRow {
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
export interface ObjectForm<Data, Rows extends DeclaredFields = DeclaredFields> extends MapForm {
  readonly rows: Rows;
  /** What an empty map says. */
  readonly defaults: Data;
  /** Reads it; a field with a default that is left out is as in `base`. */
  read(block: Block, base?: Data): Data;
}

/** What of a field is said beside its type and its documentation. */
interface Options<As> extends ChangeTraits {
  /** How the default is written, where that is another value. */
  readonly writtenDefault?: NonNullable<NameRow["writtenDefault"]>;
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
  const { as, needs, default: fallback, dependentDefault = fallback, ...rest } = options;
  const { writtenDefault = written(form, dependentDefault), ...traits } = rest;
  const row = { docs, form, as, needs, fallback, default: dependentDefault, ...traits };
  return writtenDefault === undefined ? row : { ...row, writtenDefault };
}

/** A default as it would be written; undefined where it is no single value. */
function written(form: Form, value: unknown): NameRow["writtenDefault"] {
  if (typeof value === "number" && form.kind === "duration") {
    return formatDuration(value * (form.unitMs ?? 1));
  }
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
  /** As `exclusive`, where `check` refuses the others in its own way. */
  readonly clashing?: MapForm["exclusive"];
  /** Of each group at least one must be there; `check` says so in its own words. */
  readonly needed?: MapForm["needed"];
  /** Names that, with nothing after the `:`, count as left out. */
  readonly blank?: readonly string[];
  /** Names that are known, and not served yet. */
  readonly later?: readonly string[];
  /** Names that only the other dialect has. */
  readonly own?: readonly string[];
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

/** What a single name of a map says, where it is read by itself; its default where it is wrong. */
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

/** A declared map that is read in its own way. */
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

/** What a declared map says, and the map itself, for what it has to do with others. */
export interface ReadBlock<Data> {
  readonly block: Block;
  readonly data: Data;
}

/** A declared map, with the map itself. */
export function innerBlock<Data>(
  form: ObjectForm<Data>,
  expected?: string,
): FieldType<ReadBlock<Data>> {
  return innerBy(form, (block) => ({ block, data: form.read(block) }), expected);
}

/** A value, and where it stands. */
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

/** A list, such as of statuses; what is less than `min` its map refuses in its own words. */
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

/** A list of different words out of a few; what is less than `min` its map refuses. */
export function wordList<const Word extends string>(
  choices: readonly Word[],
  min = 0,
): FieldType<readonly Word[]> {
  const item: Form = { kind: "words", words: choices, ignoreCase: false };
  return readBy({ kind: "list", item, min, max: undefined }, (reader, place) =>
    readWords(reader, place, choices),
  );
}
