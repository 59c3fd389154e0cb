import { readFileSync } from "node:fs";
import { z } from "zod";

/** The part of OpenAPI's schemas that Kubernetes uses. */
interface Schema {
  readonly $ref?: string | undefined;
  readonly type?: string | undefined;
  readonly format?: string | undefined;
  readonly required?: readonly string[] | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly items?: Schema | undefined;
  readonly additionalProperties?: Schema | undefined;
}

const schema: z.ZodType<Schema> = z.lazy(() =>
  z.object({
    $ref: z.string().optional(),
    type: z.string().optional(),
    format: z.string().optional(),
    required: z.array(z.string()).optional(),
    properties: z.record(z.string(), schema).optional(),
    items: schema.optional(),
    additionalProperties: schema.optional(),
  }),
);

const definition = z.object({
  name: z.string(),
  kinds: z.array(z.object({ group: z.string(), version: z.string(), kind: z.string() })).optional(),
});

/** Holds manifests against the API of Kubernetes 1.36.3; see kubernetes-schema.mjs. */
export class KubernetesApi {
  readonly #schemas = new Map<string, Schema>();
  /** By `apiVersion kind`. */
  readonly #kinds = new Map<string, Schema>();

  constructor() {
    const text = readFileSync(new URL("kubernetes-schema.jsonl", import.meta.url), "utf8");
    for (const line of text.trim().split("\n")) {
      const parsed: unknown = JSON.parse(line);
      const { name, kinds = [] } = definition.parse(parsed);
      const body = schema.parse(parsed);
      this.#schemas.set(name, body);
      for (const { group, version, kind } of kinds) {
        this.#kinds.set(`${group === "" ? version : `${group}/${version}`} ${kind}`, body);
      }
    }
  }

  /** Everything in a manifest that the API does not know, misses or types otherwise. */
  problems(manifest: unknown): readonly string[] {
    const { apiVersion, kind } = z
      .object({ apiVersion: z.string(), kind: z.string() })
      .parse(manifest);
    const found = this.#kinds.get(`${apiVersion} ${kind}`);
    if (found === undefined) return [`there is no ${kind} in ${apiVersion}`];
    return this.#check(manifest, found, kind);
  }

  #check(value: unknown, given: Schema, path: string): readonly string[] {
    const known = given.$ref === undefined ? given : this.#schemas.get(given.$ref);
    if (known === undefined) {
      return [`${path}: ${given.$ref} is not kept by test/support/kubernetes-schema.mjs`];
    }
    if (!hasType(value, known)) return [`${path} is no ${known.format ?? known.type}`];
    if (Array.isArray(value)) {
      const { items } = known;
      if (items === undefined) return [];
      return value.flatMap((item, index) => this.#check(item, items, `${path}[${index}]`));
    }
    if (typeof value !== "object" || value === null) return [];
    const entries = Object.entries(value);
    const missing = (known.required ?? []).filter((name) => !Object.hasOwn(value, name));
    return [
      ...missing.map((name) => `${path}.${name} is missing`),
      ...entries.flatMap(([name, item]) => {
        const inner = known.properties?.[name] ?? known.additionalProperties;
        const place = `${path}.${name}`;
        // Without both, the API takes any object (FieldsV1).
        if (known.properties === undefined && inner === undefined) return [];
        return inner === undefined ? [`${place} is unknown`] : this.#check(item, inner, place);
      }),
    ];
  }
}

/** Whether a value has the type of a schema; quantities may be written as numbers too. */
function hasType(value: unknown, { type, format }: Schema): boolean {
  if (format === "int-or-string") return typeof value === "string" || Number.isInteger(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null;
  return type === undefined || typeof value === type;
}
