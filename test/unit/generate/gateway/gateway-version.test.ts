import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { gatewayFeatures } from "../../../../src/generate/gateway/gateway-version.js";
import { versionRanges } from "../../../../src/generate/generate-options.js";

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
  .map((line) => lineShape.parse(JSON.parse(line)))
  .filter(({ product }) => product === "gateway");

const { min, max } = versionRanges.gatewayVersion;
const minors = Array.from({ length: max.minor - min.minor + 1 }, (_, i) => min.minor + i);

type Feature = (typeof gatewayFeatures)[keyof typeof gatewayFeatures];

/** Whether the definitions of a minor version have what a feature is seen by. */
function hasIt(minor: number, { apiVersion, kind, field }: Feature): boolean {
  const found = published.find(
    (one) =>
      one.apiVersion === apiVersion &&
      one.kind === kind &&
      one.version.startsWith(`${max.major}.${minor}.`),
  );
  const [path = "", word] = field.split("=");
  let at = found?.schema.properties?.["spec"];
  for (const name of path.split(".")) at = withoutLists(at)?.properties?.[name];
  return word === undefined ? at !== undefined : wordsOf(withoutLists(at)).includes(word);
}

function withoutLists(schema: Schema | undefined): Schema | undefined {
  return schema?.items === undefined ? schema : withoutLists(schema.items);
}

function wordsOf(schema: Schema | undefined): readonly unknown[] {
  return [...(schema?.enum ?? []), ...(schema?.allOf ?? []).flatMap(wordsOf)];
}

describe("gatewayFeatures", () => {
  it("is held against definitions of every version that is generated for", () => {
    const versions = new Set(published.map(({ version }) => Number(version.split(".")[1])));
    expect([...versions].sort((a, b) => a - b)).toEqual(minors);
  });

  it.each(Object.entries(gatewayFeatures))("%s: since the version that first has it", (_, row) => {
    const having = minors.filter((minor) => hasIt(minor, row));
    expect(having).toEqual(minors.filter((minor) => minor >= row.since));
  });
});
