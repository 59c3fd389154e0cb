import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { quoteText } from "../../policy/problems/problem.js";
import type { CheckProblem, JsonPath } from "../base/check-problem.js";
import { rated } from "../base/generate-problems.js";
import type { GenerateOptions, MinorVersion } from "../base/generator.js";
import { isPlainList, isPlainMap, type PlainValue } from "../base/plain-tree.js";

/** What objects are held against, as the files in `schemas/` have it: JSON lines. */
export interface SchemaTexts {
  /** Of Kubernetes 1.36, the Prometheus operator and cert-manager: `Definition` a line. */
  readonly kubernetes: string;
  /** Of releases of Istio and Envoy Gateway: `CustomResource` a line. */
  readonly customResources: string;
}

/** A schema that others refer to by its name. */
interface Definition {
  readonly name: string;
  /** Whose schema it is, as `apiVersion kind`. */
  readonly kinds?: readonly string[];
  readonly schema: object;
}

/** What one release says of one kind. */
interface CustomResource {
  readonly product: Product;
  /** Such as "1.27.0". */
  readonly version: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly schema: Schema;
}

/** As far as it is looked at here; the rest is the validator's. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
}

type Product = "istio" | "gateway";

/** The versions that objects are for. */
export type ObjectVersions = Pick<GenerateOptions, "istioVersion" | "gatewayVersion">;

/**
 * Patterns of Go, in which `(?i)` at the beginning makes no difference between cases: the
 * operator's `^(?i)(abort|warn)?$`.
 */
const goPatterns = Object.assign(
  (pattern: string, flags: string): RegExp => {
    const plain = pattern.replace(/^(\^?)\(\?i\)/, "$1");
    return new RegExp(plain, plain === pattern ? flags : `${flags}i`);
  },
  // What stands for it in validators that are written out as code, which ours are not.
  { code: "new RegExp" },
);

/**
 * Holds objects against what Kubernetes, the Prometheus operator, cert-manager, Istio and Envoy
 * Gateway publish.
 * Names that these do not know are mistakes, though a cluster would drop them without a word.
 */
export class ObjectSchemas {
  readonly #ajv = new Ajv({
    allErrors: true,
    strict: false,
    validateFormats: false,
    logger: false,
    // A test reads them so; to do it each time takes as long as a kind.
    meta: false,
    validateSchema: false,
    // To shorten what is run a few times takes as long as to write it.
    code: { regExp: goPatterns, optimize: false },
  });
  readonly #definitions = new Map<string, string>();
  readonly #resources: readonly CustomResource[];
  /** By the text of their schemas. Made where they are first needed: each takes milliseconds. */
  readonly #validators = new Map<string, ValidateFunction>();

  constructor({ kubernetes, customResources }: SchemaTexts) {
    const definitions: readonly Definition[] = readLines(kubernetes);
    for (const { name, kinds = [], schema } of definitions) {
      this.#ajv.addSchema(schema, name);
      for (const kind of kinds) this.#definitions.set(kind, name);
    }
    this.#resources = readLines(customResources);
  }

  /** Everything in an object that its API does not know, misses or types otherwise. */
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

  /** By the newest release that is no newer than what the object is for. */
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
 * A schema without what it says of names that none of the values has: it finds the same in them,
 * and is compiled in a part of the time. Objects have few of the names that they may have.
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

/** One value of JSON a line, as the makers of the files write them. */
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

/** Of all of them the major version is 1. */
function minorOf(version: string): MinorVersion["minor"] {
  return Number(version.split(".")[1]);
}

/** Empty where there is no such text. */
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

/** A JSON pointer's names and indexes. Source: RFC 6901. */
function jsonPathOf(pointer: string): JsonPath {
  const names = pointer.split("/").slice(1);
  return names.map((name) => {
    if (/^[0-9]+$/.test(name)) return Number(name);
    return name.replaceAll("~1", "/").replaceAll("~0", "~");
  });
}
