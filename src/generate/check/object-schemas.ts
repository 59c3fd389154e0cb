import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { quoteText } from "../../policy/problems/problem.js";
import type { CheckProblem, JsonPath } from "../base/check-problem.js";
import { rated } from "../base/generate-problems.js";
import type { GenerateOptions, MinorVersion } from "../base/generator.js";
import { isPlainList, isPlainMap, type PlainValue } from "../base/plain-tree.js";

/** The schemas that objects are checked against, as JSON lines from the files in `schemas/`. */
export interface SchemaTexts {
  /** Of Kubernetes 1.36, the Prometheus operator and cert-manager: one `Definition` per line. */
  readonly kubernetes: string;
  /** Of releases of Istio and Envoy Gateway: one `CustomResource` per line. */
  readonly customResources: string;
}

/** A schema that others reference by its name. */
interface Definition {
  readonly name: string;
  /** The kinds that the schema describes, as `apiVersion kind`. */
  readonly kinds?: readonly string[];
  readonly schema: object;
}

/** The schema of one kind in one release. */
interface CustomResource {
  readonly product: Product;
  /** Such as "1.27.0". */
  readonly version: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly schema: Schema;
}

/** The parts of a schema that this file reads. The validator reads the rest. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
}

type Product = "istio" | "gateway";

/** Versions that objects are generated for. */
export type ObjectVersions = Pick<GenerateOptions, "istioVersion" | "gatewayVersion">;

/**
 * Compiles Go patterns, in which a leading `(?i)` ignores case, such as the operator's
 * `^(?i)(abort|warn)?$`.
 */
const goPatterns = Object.assign(
  (pattern: string, flags: string): RegExp => {
    const plain = pattern.replace(/^(\^?)\(\?i\)/, "$1");
    return new RegExp(plain, plain === pattern ? flags : `${flags}i`);
  },
  // How generated validator code would refer to it. We generate no such code.
  { code: "new RegExp" },
);

/**
 * Validates objects against the schemas that Kubernetes, the Prometheus operator, cert-manager,
 * Istio and Envoy Gateway publish. Unknown names are problems, although a cluster would drop them
 * silently.
 */
export class ObjectSchemas {
  readonly #ajv = new Ajv({
    allErrors: true,
    strict: false,
    validateFormats: false,
    logger: false,
    // A test validates the schemas. To do it here would take as long as to compile a kind.
    meta: false,
    validateSchema: false,
    // Optimizing code that runs only a few times takes as long as generating it.
    code: { regExp: goPatterns, optimize: false },
  });
  readonly #definitions = new Map<string, string>();
  readonly #resources: readonly CustomResource[];
  /** Validators by the text of their schema. Compiled on first use: each takes milliseconds. */
  readonly #validators = new Map<string, ValidateFunction>();

  constructor({ kubernetes, customResources }: SchemaTexts) {
    const definitions: readonly Definition[] = readLines(kubernetes);
    for (const { name, kinds = [], schema } of definitions) {
      this.#ajv.addSchema(schema, name);
      for (const kind of kinds) this.#definitions.set(kind, name);
    }
    this.#resources = readLines(customResources);
  }

  /** Returns an object's violations of its API's schema, such as unknown or missing fields. */
  problems(object: PlainValue, versions: ObjectVersions): readonly CheckProblem[] {
    const apiVersion = textIn(object, "apiVersion");
    const kind = textIn(object, "kind");
    const product = productOf(apiVersion);
    const validate =
      product === undefined
        ? this.#ofKubernetes(`${apiVersion} ${kind}`)
        : this.#ofRelease(object, { product, apiVersion, kind, versions });
    if (validate === undefined) return [unknownKind(apiVersion, kind)];
    validate(object);
    return (validate.errors ?? []).map(asProblem);
  }

  #ofKubernetes(kind: string): ValidateFunction | undefined {
    const name = this.#definitions.get(kind);
    return name === undefined ? undefined : this.#ajv.getSchema(name);
  }

  /** Selects the schema of the newest release that is not newer than the target version. */
  #ofRelease(object: PlainValue, wanted: WantedResource): ValidateFunction | undefined {
    const { istioVersion, gatewayVersion } = wanted.versions;
    const { minor } = wanted.product === "istio" ? istioVersion : gatewayVersion;
    const found = this.#resources
      .filter(
        ({ product, apiVersion, kind, version }) =>
          product === wanted.product &&
          apiVersion === wanted.apiVersion &&
          kind === wanted.kind &&
          minorOf(version) <= minor,
      )
      .sort((one, other) => minorOf(other.version) - minorOf(one.version))[0];
    if (found === undefined) return undefined;
    const schema = schemaFor([object], found.schema);
    const text = JSON.stringify(schema);
    const validate = this.#validators.get(text) ?? this.#ajv.compile(schema);
    this.#validators.set(text, validate);
    return validate;
  }
}

interface WantedResource extends Pick<CustomResource, "product" | "apiVersion" | "kind"> {
  readonly versions: ObjectVersions;
}

/**
 * Reduces a schema to the names that occur in the values. It finds the same problems in them, and
 * compiles in a fraction of the time, because objects use few of the names that they may have.
 */
function schemaFor(values: readonly PlainValue[], schema: Schema): Schema {
  const { properties, additionalProperties, items } = schema;
  const maps = values.filter(isPlainMap);
  const under = (name: string): readonly PlainValue[] => {
    return maps.flatMap((map) => (Object.hasOwn(map, name) ? [map[name] ?? ""] : []));
  };
  const short: Record<string, Schema | readonly Schema[]> = {};
  if (properties !== undefined) {
    const kept = Object.entries(properties).flatMap(([name, one]) => {
      const found = under(name);
      return found.length === 0 ? [] : [[name, schemaFor(found, one)] as const];
    });
    short["properties"] = Object.fromEntries(kept);
  }
  if (typeof additionalProperties === "object") {
    const others = maps
      .flatMap((map) => Object.keys(map))
      .filter((name) => {
        return properties === undefined || !Object.hasOwn(properties, name);
      });
    short["additionalProperties"] = schemaFor(
      [...new Set(others)].flatMap(under),
      additionalProperties,
    );
  }
  if (items !== undefined) short["items"] = schemaFor(values.filter(isPlainList).flat(), items);
  return { ...schema, ...short };
}

/** Parses one JSON value per line, as the makers of the files write them. */
function readLines<Line>(text: string): readonly Line[] {
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Undefined: Kubernetes itself, the Prometheus operator, or cert-manager. */
function productOf(apiVersion: string): Product | undefined {
  const [group = ""] = apiVersion.split("/");
  if (group.endsWith("istio.io")) return "istio";
  return group.startsWith("gateway.") ? "gateway" : undefined;
}

/** The major version of all of them is 1. */
function minorOf(version: string): MinorVersion["minor"] {
  return Number(version.split(".")[1]);
}

/** Returns the text under a name. Empty if there is none. */
function textIn(object: PlainValue, name: string): string {
  const value = isPlainMap(object) ? object[name] : undefined;
  return typeof value === "string" ? value : "";
}

function unknownKind(apiVersion: string, kind: string): CheckProblem {
  return rated({
    id: "HG456",
    path: ["kind"],
    message: `${quoteText(apiVersion)} has no kind ${quoteText(kind)}`,
    hint: "use a kind of that API version, or generate for another version",
  });
}

function asProblem({ instancePath, keyword, params, message = "" }: ErrorObject): CheckProblem {
  const path = jsonPathOf(instancePath);
  const made = rated({ id: "HG456", path });
  const missing: unknown = params["missingProperty"];
  const unknown: unknown = params["additionalProperty"];
  const allowed: unknown = params["allowedValues"];
  if (keyword === "required" && typeof missing === "string") {
    return { ...made, message: `${quoteText(missing)} is missing`, hint: "add it" };
  }
  if (typeof unknown === "string") {
    const words = `${quoteText(unknown)} is not a field of its API here`;
    return { ...made, path: [...path, unknown], message: words, hint: "remove it" };
  }
  if (Array.isArray(allowed)) {
    return {
      ...made,
      message: "the value is not one that its API allows",
      hint: allowed.join(", "),
    };
  }
  return { ...made, message, hint: "use a value that its API allows" };
}

/** Splits a JSON pointer into names and indexes. Source: RFC 6901. */
function jsonPathOf(pointer: string): JsonPath {
  const names = pointer.split("/").slice(1);
  return names.map((name) => {
    if (/^[0-9]+$/.test(name)) return Number(name);
    return name.replaceAll("~1", "/").replaceAll("~0", "~");
  });
}
