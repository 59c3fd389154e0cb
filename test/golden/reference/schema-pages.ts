import { z } from "zod";
import { formatDuration } from "../../../src/policy/text/duration.js";
import type { Form, MapForm } from "../../../src/policy/text/form.js";
import { makeJsonSchema } from "../../../src/policy/text/json-schema.js";
import { code, paragraphs, plain, type ReferencePage, slug, table } from "./markdown.js";

/** A page of a language: it holds the maps below its roots that no page before it holds. */
export interface SchemaSection {
  readonly name: string;
  readonly title: string;
  readonly purpose: string;
  /** Where its maps begin, such as `services[].admission`; empty: the file. */
  readonly roots: readonly string[];
  /** What stands before the maps. */
  readonly intro?: string;
}

interface SchemaPagesParts {
  readonly form: MapForm;
  /** Pages that take what lies deeper come first. */
  readonly sections: readonly SchemaSection[];
  /** Where a page is, as a path; with `from`, as that page links to it. */
  readonly fileOf: (name: string, from?: string) => string;
  /** The map of the file whose names need not be written before what is below it. */
  readonly spec?: string;
}

/** The pages of a declared language, made from its JSON Schema. */
export function schemaPages(parts: SchemaPagesParts): readonly ReferencePage[] {
  return new SchemaPages(parts).pages();
}

/** What a schema says of one value. */
interface ValueSchema {
  readonly description?: string | undefined;
  readonly $ref?: string | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly enum?: readonly (string | number | boolean)[] | undefined;
  readonly anyOf?: readonly ValueSchema[] | undefined;
  readonly items?: ValueSchema | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly minimum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly pattern?: string | undefined;
  readonly additionalProperties?: ValueSchema | boolean | undefined;
  readonly maxProperties?: number | undefined;
  readonly default?: string | number | boolean | undefined;
}

const valueSchema: z.ZodType<ValueSchema> = z.lazy(() =>
  z.object({
    description: z.string().optional(),
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    enum: z.array(z.union([z.string(), z.number(), z.boolean()])).optional(),
    anyOf: z.array(valueSchema).optional(),
    items: valueSchema.optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
    minimum: z.number().optional(),
    exclusiveMinimum: z.number().optional(),
    maximum: z.number().optional(),
    maxLength: z.number().optional(),
    pattern: z.string().optional(),
    additionalProperties: z.union([z.boolean(), valueSchema]).optional(),
    maxProperties: z.number().optional(),
    default: z.union([z.string(), z.number(), z.boolean()]).optional(),
  }),
);

const names = z.array(z.string());
const mapSchema = z.object({
  description: z.string(),
  properties: z.record(z.string(), valueSchema),
  required: names.default([]),
  allOf: z
    .array(
      z.object({
        anyOf: z.array(z.object({ required: names })).optional(),
        not: z.object({ required: names }).optional(),
      }),
    )
    .default([]),
});

/** A map of the language: one definition of the schema. */
type MapSchema = z.infer<typeof mapSchema>;

/** A map where it stands first: its definition, the page, and its path in the file. */
interface PlacedMap {
  readonly definition: string;
  readonly page: string;
  readonly path: string;
  /** Where it stands as well. */
  readonly others: string[];
}

class SchemaPages {
  readonly #parts: SchemaPagesParts;
  readonly #file: string;
  readonly #definitions: Readonly<Record<string, MapSchema>>;
  readonly #placed = new Map<string, PlacedMap>();
  readonly #formsByPath = new Map<string, MapForm>();

  constructor(parts: SchemaPagesParts) {
    this.#parts = parts;
    const schema = z
      .object({ $ref: z.string(), $defs: z.record(z.string(), mapSchema) })
      .parse(makeJsonSchema(parts.form, { title: "a file" }));
    this.#file = nameOf(schema.$ref);
    this.#definitions = schema.$defs;
    for (const { name: page, roots } of parts.sections) {
      for (const path of roots) {
        const definition = path === "" ? this.#file : this.#definitionAt(path);
        this.#place({ definition, page, path, others: [] });
      }
    }
    this.#findForms(parts.form);
  }

  pages(): readonly ReferencePage[] {
    return this.#parts.sections.map(({ name, title, purpose, intro = "" }) => {
      const maps = [...this.#placed.values()].filter(({ page }) => page === name);
      const body = paragraphs(intro, ...maps.map((map) => this.#renderMap(map)));
      return { path: this.#parts.fileOf(name), title, purpose, body };
    });
  }

  #place(map: PlacedMap): void {
    const known = this.#placed.get(map.definition);
    if (known !== undefined) {
      // A map below itself is no other place.
      if (known.path !== map.path && !map.path.startsWith(known.path)) known.others.push(map.path);
      return;
    }
    this.#placed.set(map.definition, map);
    for (const [name, schema] of Object.entries(this.#mapOf(map.definition).properties)) {
      for (const { definition, suffix } of mapsIn(schema)) {
        const path = `${this.#below(map.path, name)}${suffix}`;
        this.#place({ page: map.page, definition, path, others: [] });
      }
    }
  }

  /** The file's own maps stand on the first page: what is below `spec` is named without it. */
  #below(path: string, name: string): string {
    const { spec } = this.#parts;
    if (path === "" || path === spec) return name;
    return `${path}.${name}`;
  }

  /** The definition that a path leads to, from `spec` down. */
  #definitionAt(path: string): string {
    return path.split(".").reduce((definition, part) => {
      const [, name = "", suffix = ""] = /^(\w+)(.*)$/.exec(part) ?? [];
      const schema = this.#mapOf(definition).properties[name];
      const map = schema && mapsIn(schema).find((one) => one.suffix === suffix);
      if (map === undefined) throw new Error(`the language has no ${path}`);
      return map.definition;
    }, this.#parts.spec ?? this.#file);
  }

  #mapOf(definition: string): MapSchema {
    const map = this.#definitions[definition];
    if (map === undefined) throw new Error(`the schema has no ${definition}`);
    return map;
  }

  /** The forms of all maps by their paths: they know bounds of durations, as no schema does. */
  #findForms(map: MapForm, path = ""): void {
    const found = this.#formsByPath;
    if (found.has(path) || [...found.values()].includes(map)) return;
    found.set(path, map);
    for (const [name, { form }] of Object.entries(map.rows)) {
      for (const { inner, suffix } of mapFormsIn(form)) {
        this.#findForms(inner, `${this.#below(path, name)}${suffix}`);
      }
    }
  }

  #renderMap(map: PlacedMap): string {
    const { description, properties, required, allOf } = this.#mapOf(map.definition);
    const forms = this.#formsByPath.get(map.path)?.rows;
    const rows = Object.entries(properties).map(([name, schema]) => [
      required.includes(name) ? `${code(name)}, required` : code(name),
      withTimes(this.#describe(schema, map.page), forms?.[name]?.form),
      schema.default === undefined ? "-" : code(String(schema.default)),
      schema.description ?? "",
    ]);
    const needed = allOf.flatMap(({ anyOf = [] }) =>
      anyOf.length === 0 ? [] : [`At least one is required: ${listed(anyOf.flatMap(namesOf))}.`],
    );
    const excluded = groupsOf(
      allOf.flatMap(({ not }) => (not === undefined ? [] : [not.required])),
    );
    const others = map.others.map(code);
    return paragraphs(
      `## ${headingOf(map)}`,
      plain(description),
      others.length === 0 ? "" : `The same fields are available at ${others.join(", ")}.`,
      table(["name", "type", "default", "meaning"], rows),
      [...needed, ...excluded.map((group) => `At most one of ${listed(group)}.`)].join(" "),
    );
  }

  /** What may stand there, in words; maps are links. */
  #describe(schema: ValueSchema, page: string): string {
    if (schema.$ref !== undefined) return this.#linkTo(nameOf(schema.$ref), page);
    if (schema.anyOf !== undefined) {
      const kinds = schema.anyOf.filter(({ type }) => type !== "null");
      const each = new Set(kinds.map((one) => this.#describe(one, page)));
      return [...each].filter(Boolean).join(", or ");
    }
    if (schema.enum !== undefined) {
      return schema.enum
        .map((word) => code(String(word)))
        .filter(Boolean)
        .join(", ");
    }
    if (schema.items !== undefined) {
      const { items, minItems = 0, maxItems } = schema;
      const most = maxItems === undefined ? "" : ` (${grouped(minItems)} to ${grouped(maxItems)})`;
      return `list${most} of ${this.#describe(items, page)}`;
    }
    const { type, additionalProperties: values, maxProperties } = schema;
    if (type !== "object" || typeof values !== "object") return describeValue(schema);
    const most = maxProperties === undefined ? "" : ` (1 to ${grouped(maxProperties)})`;
    return `map${most} of ${this.#describe(values, page)}`;
  }

  #linkTo(definition: string, page: string): string {
    const map = this.#placed.get(definition);
    if (map === undefined) throw new Error(`no page has ${definition}`);
    const file = map.page === page ? "" : this.#parts.fileOf(map.page, page);
    const [last = ""] = /\w+(?=(?:\[\]|\{\})*$)/.exec(map.path) ?? [];
    // Of two headings with one slug the second has a number.
    const wanted = slug(headingOf(map));
    const before = [...this.#placed.values()]
      .filter((one) => one.page === map.page && slug(headingOf(one)) === wanted)
      .indexOf(map);
    return `[${last}](${file}#${wanted}${before === 0 ? "" : `-${before}`})`;
  }
}

/** The maps that a value may be or hold: `[]` for those in a list, `{}` for those by a name. */
function mapsIn(schema: ValueSchema): readonly { definition: string; suffix: string }[] {
  if (schema.$ref !== undefined) return [{ definition: nameOf(schema.$ref), suffix: "" }];
  const inItems = schema.items === undefined ? [] : mapsIn(schema.items);
  const { additionalProperties: values } = schema;
  const byNames = typeof values === "object" ? mapsIn(values) : [];
  return [
    ...(schema.anyOf ?? []).flatMap(mapsIn),
    ...inItems.map(({ definition, suffix }) => ({ definition, suffix: `[]${suffix}` })),
    ...byNames.map(({ definition, suffix }) => ({ definition, suffix: `{}${suffix}` })),
  ];
}

function nameOf(ref: string): string {
  return ref.replace("#/$defs/", "");
}

function headingOf({ path }: PlacedMap): string {
  return path === "" ? "The file" : path;
}

function namesOf({ required }: { readonly required: readonly string[] }): readonly string[] {
  return required;
}

/** Pairs that exclude each other as groups of which at most one may be there. */
function groupsOf(pairs: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const isPair = (a: string, b: string): boolean =>
    pairs.some((pair) => pair.includes(a) && pair.includes(b));
  const groups: string[][] = [];
  for (const [a = "", b = ""] of pairs) {
    if (groups.some((group) => group.includes(a) && group.includes(b))) continue;
    const group = [a, b];
    for (const name of new Set(pairs.flat())) {
      if (!group.includes(name) && group.every((one) => isPair(one, name))) group.push(name);
    }
    groups.push(group);
  }
  return groups;
}

function listed(all: readonly string[]): string {
  return all.map(code).join(", ");
}

function mapFormsIn(form: Form): readonly { inner: MapForm; suffix: string }[] {
  if (form.kind === "map") return [{ inner: form.map(), suffix: "" }];
  if (form.kind === "any") return form.of.flatMap(mapFormsIn);
  if (form.kind !== "list" && form.kind !== "texts") return [];
  const [held, mark] = form.kind === "list" ? [form.item, "[]"] : [form.value, "{}"];
  return mapFormsIn(held).map(({ inner, suffix }) => ({ inner, suffix: `${mark}${suffix}` }));
}

function withTimes(words: string, form: Form | undefined): string {
  const forms = form?.kind === "any" ? form.of : [form];
  const times = forms.find((one) => one?.kind === "duration");
  if (times?.kind !== "duration") return words;
  const { minMs, maxMs } = times.bounds;
  return words.replace(
    "duration",
    `duration, ${formatDuration(minMs)} to ${formatDuration(maxMs)}`,
  );
}

function describeValue(schema: ValueSchema): string {
  const { type, pattern, maxLength } = schema;
  switch (type) {
    case "boolean":
      return "`true` or `false`";
    case "integer":
      return withBounds("whole number", schema);
    case "number":
      return withBounds("number", schema);
    case "object":
      return "any map";
    case "string":
      return describePattern(pattern ?? "");
    default:
      return maxLength === undefined ? "text" : `text, at most ${grouped(maxLength)} characters`;
  }
}

/** Patterns that have a name; any other is shown. */
function describePattern(pattern: string): string {
  const isLike = (text: string): boolean => new RegExp(pattern).test(text);
  if (isLike("1h30m") && !isLike("word")) return "duration";
  if (isLike("512Mi") && !isLike("word")) return "size such as `512Mi`";
  const words = /^\^\(\?:((?:(?:\[\w\w\])+\|?)+)\)\$$/.exec(pattern)?.[1];
  if (words === undefined) return `text like ${code(pattern)}`;
  return words
    .split("|")
    .map((word) => code(word.replaceAll(/\[(\w)\w\]/g, "$1")))
    .join(", ");
}

function withBounds(kind: string, { minimum, exclusiveMinimum, maximum }: ValueSchema): string {
  const least =
    exclusiveMinimum === undefined ? `${grouped(minimum ?? 0)} to` : `above ${exclusiveMinimum} to`;
  if (maximum === undefined) return `${kind}, at least ${minimum ?? exclusiveMinimum}`;
  return `${kind}, ${least} ${grouped(maximum)}`;
}

function grouped(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 20 });
}
