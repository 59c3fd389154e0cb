import { z } from "zod";
import { policyForm } from "../../../src/policy/policy-form.js";
import { formatDuration } from "../../../src/policy/text/duration.js";
import type { Form, MapForm } from "../../../src/policy/text/form.js";
import { makeJsonSchema } from "../../../src/policy/text/json-schema.js";
import { code, paragraphs, plain, type ReferencePage, slug, table } from "./markdown.js";

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

/** A map of the policy: one definition of the schema. */
type MapSchema = z.infer<typeof mapSchema>;

const definitions = z
  .object({ $defs: z.record(z.string(), mapSchema) })
  .parse(makeJsonSchema(policyForm, { title: "Headgate policy" })).$defs;

/** A page of the policy: it holds the maps below its roots that no page before it holds. */
interface Section {
  readonly name: string;
  readonly title: string;
  readonly purpose: string;
  /** Where its maps begin, such as `services[].admission`; empty: the file. */
  readonly roots: readonly string[];
}

/** Pages that take what lies deeper come first; `policy.md` shows them in another order. */
const sections: readonly Section[] = [
  {
    name: "rate-limits",
    title: "Policy: rateLimits",
    purpose: "This page lists the fields of a domain, a descriptor and a limit.",
    roots: ["rateLimits[]"],
  },
  {
    name: "admission",
    title: "Policy: admission",
    purpose:
      "This page lists the fields of admission, which decides whether a service accepts a request.",
    roots: ["services[].admission", "services[].priority"],
  },
  {
    name: "concurrency",
    title: "Policy: concurrency",
    purpose: "This page lists the fields of concurrency limits, and of their feedback to Envoys.",
    roots: ["services[].concurrency"],
  },
  {
    name: "envoy",
    title: "Policy: what Envoy enforces",
    purpose:
      "This page lists what Envoys enforce for a service themselves, without calling Headgate.",
    roots: [
      "services[].circuitBreakers",
      "services[].outlierDetection",
      "services[].healthChecks",
      "services[].loadBalancing",
      "services[].retries",
      "services[].timeouts",
      "services[].localRateLimit",
      "services[].adaptiveConcurrency",
      "services[].admissionControl",
    ],
  },
  {
    name: "services",
    title: "Policy: services",
    purpose: "This page lists the fields of a service, and of the descriptors of its requests.",
    roots: ["services[]"],
  },
  {
    name: "quotas",
    title: "Policy: quotas",
    purpose: "This page lists the fields of a quota, a limit that Envoys enforce themselves.",
    roots: ["quotas[]"],
  },
  {
    name: "proxies",
    title: "Policy: proxies",
    purpose: "This page lists the fields that apply to every generated proxy.",
    roots: ["proxies"],
  },
  {
    name: "index",
    title: "Policy",
    purpose: "This page lists the fields of a policy file. Each part has its own page.",
    roots: [""],
  },
];

/** A map where it stands first: its definition, the page, and its path in the policy. */
interface PlacedMap {
  readonly definition: string;
  readonly page: string;
  readonly path: string;
  /** Where it stands as well. */
  readonly others: string[];
}

const placed = placeMaps();
const formsByPath = formsOf(policyForm);

/** The pages of the policy language, made from its JSON Schema. */
export const policyPages: readonly ReferencePage[] = sections.map((section) => {
  const { name, title, purpose } = section;
  const maps = [...placed.values()].filter(({ page }) => page === name);
  const parts = maps.map((map) => renderMap(map));
  const others = name === "index" ? linksToOthers() : "";
  return {
    path: fileOf(name),
    title,
    purpose,
    body: paragraphs(others, ...parts),
  };
});

/** Where a page is: as a path, or as another page links to it. The first is beside the folder. */
function fileOf(name: string, from = "index"): string {
  const folder = from === "index" ? "policy/" : "";
  return name === "index" ? `${from === "index" ? "" : "../"}policy.md` : `${folder}${name}.md`;
}

function linksToOthers(): string {
  const intro = paragraphs(
    "A policy is one or more YAML files with `kind: Policy`. It is not a Kubernetes object: " +
      "`headgate` reads the files. [Problems](problems.md) lists every mistake that it reports, " +
      "and `headgate schema` prints the JSON Schema from which these pages are generated. All " +
      "fields are optional unless marked as required. Unknown fields are rejected.",
    "Durations are written like `250ms`, `10s` or `5m`. A dash as default means that there is " +
      "none, or that it depends on other values, as described.",
  );
  const lines = ["rate-limits", "services", "admission", "concurrency", "envoy", "quotas"]
    .concat("proxies")
    .flatMap((name) => sections.find((one) => one.name === name) ?? [])
    .map(
      ({ name, title, purpose }) =>
        `- [${title.replace("Policy: ", "")}](${fileOf(name)}): ${purpose}`,
    );
  return `${intro}\n\n${lines.join("\n")}`;
}

/** Walks the schema from the file's top, with each page's roots first. */
function placeMaps(): ReadonlyMap<string, PlacedMap> {
  const found = new Map<string, PlacedMap>();
  for (const { name, roots } of sections) {
    for (const root of roots) {
      const definition = root === "" ? "policy" : definitionAt(root);
      place({ definition, page: name, path: root, others: [] }, found);
    }
  }
  return found;
}

function place(map: PlacedMap, found: Map<string, PlacedMap>): void {
  const known = found.get(map.definition);
  if (known !== undefined) {
    // A map below itself is no other place.
    if (known.path !== map.path && !map.path.startsWith(known.path)) known.others.push(map.path);
    return;
  }
  found.set(map.definition, map);
  for (const [name, schema] of Object.entries(mapOf(map.definition).properties)) {
    for (const { definition, suffix } of mapsIn(schema)) {
      const below = map.path === "" ? name : `${map.path}.${name}`;
      // The file's own maps stand on the first page: what is below `spec` is named without it.
      const path = below.replace(/^spec\./, "");
      place({ page: map.page, definition, path: `${path}${suffix}`, others: [] }, found);
    }
  }
}

/** The definition that a path leads to, from `spec` down. */
function definitionAt(path: string): string {
  return path.split(".").reduce((definition, part) => {
    const [, name = "", suffix = ""] = /^(\w+)(.*)$/.exec(part) ?? [];
    const schema = mapOf(definition).properties[name];
    const map = schema && mapsIn(schema).find((one) => one.suffix === suffix);
    if (map === undefined) throw new Error(`the policy has no ${path}`);
    return map.definition;
  }, "spec");
}

function mapOf(definition: string): MapSchema {
  const map = definitions[definition];
  if (map === undefined) throw new Error(`the schema has no ${definition}`);
  return map;
}

/** The maps that a value may be or hold; `[]` for those in a list. */
function mapsIn(schema: ValueSchema): readonly { definition: string; suffix: string }[] {
  if (schema.$ref !== undefined) return [{ definition: nameOf(schema.$ref), suffix: "" }];
  const inItems = schema.items === undefined ? [] : mapsIn(schema.items);
  return [
    ...(schema.anyOf ?? []).flatMap(mapsIn),
    ...inItems.map(({ definition, suffix }) => ({ definition, suffix: `[]${suffix}` })),
  ];
}

function nameOf(ref: string): string {
  return ref.replace("#/$defs/", "");
}

function headingOf({ path }: PlacedMap): string {
  return path === "" ? "The file" : path;
}

function renderMap(map: PlacedMap): string {
  const { description, properties, required, allOf } = mapOf(map.definition);
  const rows = Object.entries(properties).map(([name, schema]) => [
    required.includes(name) ? `${code(name)}, required` : code(name),
    withTimes(describe(schema, map.page), formsByPath.get(map.path)?.rows[name]?.form),
    schema.default === undefined ? "-" : code(String(schema.default)),
    schema.description ?? "",
  ]);
  const needed = allOf.flatMap(({ anyOf = [] }) =>
    anyOf.length === 0 ? [] : [`At least one is required: ${listed(anyOf.flatMap(namesOf))}.`],
  );
  const excluded = groupsOf(allOf.flatMap(({ not }) => (not === undefined ? [] : [not.required])));
  const others = map.others.map(code);
  return paragraphs(
    `## ${headingOf(map)}`,
    plain(description),
    others.length === 0 ? "" : `The same fields are available at ${others.join(", ")}.`,
    table(["name", "type", "default", "meaning"], rows),
    [...needed, ...excluded.map((group) => `At most one of ${listed(group)}.`)].join(" "),
  );
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

/** The forms of all maps by their paths: they know bounds of durations, as no schema does. */
function formsOf(map: MapForm, path = "", found = new Map<string, MapForm>()) {
  if (found.has(path) || [...found.values()].includes(map)) return found;
  found.set(path, map);
  for (const [name, { form }] of Object.entries(map.rows)) {
    const below = (path === "" ? name : `${path}.${name}`).replace(/^spec\./, "");
    for (const { inner, suffix } of mapFormsIn(form)) formsOf(inner, `${below}${suffix}`, found);
  }
  return found;
}

function mapFormsIn(form: Form): readonly { inner: MapForm; suffix: string }[] {
  if (form.kind === "map") return [{ inner: form.map(), suffix: "" }];
  if (form.kind === "any") return form.of.flatMap(mapFormsIn);
  if (form.kind !== "list") return [];
  return mapFormsIn(form.item).map(({ inner, suffix }) => ({ inner, suffix: `[]${suffix}` }));
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

/** What may stand there, in words; maps are links. */
function describe(schema: ValueSchema, page: string): string {
  if (schema.$ref !== undefined) return linkTo(nameOf(schema.$ref), page);
  if (schema.anyOf !== undefined) {
    const kinds = schema.anyOf.filter(({ type }) => type !== "null");
    return [...new Set(kinds.map((one) => describe(one, page)))].filter(Boolean).join(", or ");
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
    return `list${most} of ${describe(items, page)}`;
  }
  return describeValue(schema, page);
}

function describeValue(schema: ValueSchema, page: string): string {
  const { type, pattern, maxLength, additionalProperties: values, maxProperties } = schema;
  switch (type) {
    case "boolean":
      return "`true` or `false`";
    case "integer":
      return withBounds("whole number", schema);
    case "number":
      return withBounds("number", schema);
    case "object": {
      if (typeof values !== "object") return "any map";
      const most = maxProperties === undefined ? "" : ` (1 to ${grouped(maxProperties)})`;
      return `map${most} of ${describe(values, page)}`;
    }
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

function linkTo(definition: string, page: string): string {
  const map = placed.get(definition);
  if (map === undefined) throw new Error(`no page has ${definition}`);
  const file = map.page === page ? "" : fileOf(map.page, page);
  const [last = ""] = /\w+(?=(?:\[\])*$)/.exec(map.path) ?? [];
  // Of two headings with one slug the second has a number.
  const wanted = slug(headingOf(map));
  const before = [...placed.values()]
    .filter((one) => one.page === map.page && slug(headingOf(one)) === wanted)
    .indexOf(map);
  return `[${last}](${file}#${wanted}${before === 0 ? "" : `-${before}`})`;
}
