import { readFileSync } from "node:fs";
import { z } from "zod";

/** The part of a JSON schema that is looked at. */
const schemaShape = z.object({
  get properties() {
    return z.record(z.string(), schemaShape).optional();
  },
  get items() {
    return schemaShape.optional();
  },
  get allOf() {
    return z.array(schemaShape).optional();
  },
  enum: z.array(z.unknown()).optional(),
});
type Schema = z.infer<typeof schemaShape>;

/** What a release publishes of one of its kinds. */
const lineShape = z.object({
  product: z.string(),
  version: z.string(),
  apiVersion: z.string(),
  kind: z.string(),
  schema: schemaShape,
});

const published = readFileSync("src/generate/check/schemas/custom-resources.jsonl", "utf8")
  .trim()
  .split("\n")
  .map((line) => lineShape.parse(JSON.parse(line)));

/** Whose definitions are published. */
export type Product = "istio" | "gateway";

/** Where a field is looked for. */
export interface PublishedField {
  /** Undefined: in whatever version of the API the release has. */
  readonly apiVersion?: string;
  readonly kind: string;
  /** Names from `spec` down, through lists; `=` is before a word of an enumeration. */
  readonly field: string;
}

/** The minor versions of 1 whose definitions are there, in their order. */
export function publishedMinors(product: Product): readonly number[] {
  const own = published.filter((one) => one.product === product);
  return [...new Set(own.map(({ version }) => minorOf(version)))].sort((a, b) => a - b);
}

/** The minor versions whose definitions have a field. */
export function minorsHaving(product: Product, wanted: PublishedField): readonly number[] {
  return publishedMinors(product).filter((minor) => hasIt(product, minor, wanted));
}

function minorOf(version: string): number {
  return Number(version.split(".")[1]);
}

function hasIt(product: Product, minor: number, wanted: PublishedField): boolean {
  const { apiVersion, kind, field } = wanted;
  const found = published.filter(
    (one) =>
      one.product === product &&
      one.kind === kind &&
      (apiVersion === undefined || one.apiVersion === apiVersion) &&
      minorOf(one.version) === minor,
  );
  return found.some(({ schema }) => hasField(schema, field));
}

function hasField(schema: Schema, field: string): boolean {
  const [path = "", word] = field.split("=");
  let at = schema.properties?.["spec"];
  for (const name of path.split(".")) at = withoutLists(at)?.properties?.[name];
  return word === undefined ? at !== undefined : wordsOf(withoutLists(at)).includes(word);
}

function withoutLists(schema: Schema | undefined): Schema | undefined {
  return schema?.items === undefined ? schema : withoutLists(schema.items);
}

function wordsOf(schema: Schema | undefined): readonly unknown[] {
  return [...(schema?.enum ?? []), ...(schema?.allOf ?? []).flatMap(wordsOf)];
}
