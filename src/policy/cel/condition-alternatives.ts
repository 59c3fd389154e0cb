import type { ASTNode } from "@marcbachmann/cel-js";

type TestedFact =
  /** A header by its lower-case name, including pseudo-headers such as `:path`. */
  | { readonly kind: "header"; readonly name: string }
  /** The path without its query. */
  | { readonly kind: "urlPath" };

/** Kinds of tests that proxies support too. */
type FactTestKind = "exact" | "prefix" | "suffix" | "contains" | "present";

/** One test of one fact. */
export interface FactTest {
  readonly fact: TestedFact;
  readonly test: FactTestKind;
  /** Not empty; "" for `present`. */
  readonly text: string;
}

/** Tests that must all be true. */
export type Alternative = readonly FactTest[];

/** Maximum number of alternatives of one condition: each becomes routes of a proxy. */
export const alternativesMax = 16;

/**
 * Returns a condition as alternatives, of which at least one must be true; each is a list of tests
 * that must all be true. Undefined if the condition needs more than `==`, `in`, `startsWith`,
 * `endsWith` and `contains` of one fact and literals, present headers, and `&&` and `||` of these.
 */
export function alternativesOf(node: ASTNode): readonly Alternative[] | undefined {
  switch (node.op) {
    case "||":
      return joinAlternatives(node.args.map(alternativesOf), (left, right) => [...left, ...right]);
    case "&&":
      return joinAlternatives(node.args.map(alternativesOf), (left, right) =>
        left.flatMap((one) => right.map((other) => [...one, ...other])),
      );
    case "==":
      return equality(node.args[0], node.args[1]) ?? equality(node.args[1], node.args[0]);
    case "in":
      return membership(node.args[0], node.args[1]);
    case "rcall":
      return textTest(node.args);
    case "call":
      return presence(node.args);
    default:
      return undefined;
  }
}

type Join = (left: readonly Alternative[], right: readonly Alternative[]) => readonly Alternative[];

function joinAlternatives(
  [left, right]: readonly (readonly Alternative[] | undefined)[],
  join: Join,
): readonly Alternative[] | undefined {
  if (left === undefined || right === undefined) return undefined;
  const joined = join(left, right);
  return joined.length <= alternativesMax ? joined : undefined;
}

function equality(field: ASTNode, value: ASTNode): readonly Alternative[] | undefined {
  return oneTest(factOf(field), "exact", textOf(value));
}

/** `"x-user" in request.headers`, `request.method in ["GET", "HEAD"]`. */
function membership(item: ASTNode, whole: ASTNode): readonly Alternative[] | undefined {
  if (isHeaders(whole)) return present(textOf(item));
  if (whole.op !== "list" || whole.args.length > alternativesMax) return undefined;
  const tests = whole.args.map((value) => equality(item, value));
  const known = tests.filter((test) => test !== undefined);
  return known.length === tests.length && known.length > 0 ? known.flat() : undefined;
}

const textTestKinds: ReadonlyMap<string, FactTestKind> = new Map([
  ["startsWith", "prefix"],
  ["endsWith", "suffix"],
  ["contains", "contains"],
]);

function textTest([name, owner, [value]]: MethodArgs): readonly Alternative[] | undefined {
  const test = textTestKinds.get(name);
  if (test === undefined || value === undefined) return undefined;
  return oneTest(factOf(owner), test, textOf(value));
}

/** `has(request.headers.x)`. */
function presence([name, [field]]: CallArgs): readonly Alternative[] | undefined {
  const fact = name === "has" && field !== undefined ? factOf(field) : undefined;
  if (fact?.kind !== "header" || fact.name.startsWith(":")) return undefined;
  return present(fact.name);
}

function present(name: string | undefined): readonly Alternative[] | undefined {
  if (name === undefined) return undefined;
  return [[{ fact: { kind: "header", name }, test: "present", text: "" }]];
}

/** Refuses an empty text, which proxies do not support. */
function oneTest(
  fact: TestedFact | undefined,
  test: FactTestKind,
  text: string | undefined,
): readonly Alternative[] | undefined {
  if (fact === undefined || text === undefined || text === "") return undefined;
  return [[{ fact, test, text }]];
}

/** Fields of `request` that are read from headers. */
const headerFields: ReadonlyMap<string, string> = new Map([
  ["path", ":path"],
  ["host", ":authority"],
  ["method", ":method"],
  ["scheme", ":scheme"],
]);

function factOf(node: ASTNode): TestedFact | undefined {
  if (node.op !== "." && node.op !== "[]") return undefined;
  const [owner, key] = node.args;
  const name = typeof key === "string" ? key : textOf(key);
  if (name === undefined) return undefined;
  if (isHeaders(owner)) return { kind: "header", name };
  if (owner.op !== "id" || owner.args !== "request") return undefined;
  if (name === "url_path") return { kind: "urlPath" };
  const header = headerFields.get(name);
  return header === undefined ? undefined : { kind: "header", name: header };
}

/** Reports whether a part of a condition is `request.headers`. */
export function isHeaders(node: ASTNode): boolean {
  if (node.op !== ".") return false;
  const [owner, name] = node.args;
  return name === "headers" && owner.op === "id" && owner.args === "request";
}

function textOf(node: ASTNode): string | undefined {
  return node.op === "value" && typeof node.args === "string" ? node.args : undefined;
}

type NodeOf<Op extends ASTNode["op"]> = Extract<ASTNode, { readonly op: Op }>;
type MethodArgs = NodeOf<"rcall">["args"];
type CallArgs = NodeOf<"call">["args"];
