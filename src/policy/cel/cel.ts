import {
  type ASTNode,
  Environment,
  type ParseError,
  type ParseResult,
  type TypeError as TypeMistake,
} from "@marcbachmann/cel-js";
import { listWords, type ProblemId, quoteText, visibleText } from "../problems/problem.js";
import { findNearestName } from "../text/nearest-name.js";
import { type Alternative, alternativesOf } from "./condition-alternatives.js";
import { type CelExpression, expressionOf } from "./condition-expression.js";
import { ConditionParts } from "./condition-parts.js";
import { factFields, type RequestFacts } from "./request-facts.js";

/** Result of compiling a condition for Envoy's matchers. */
type CompiledExpression =
  | { readonly kind: "expression"; readonly expression: CelExpression }
  | { readonly kind: "wrong"; readonly mistake: ConditionMistake };

/** Maximum length of a condition, in UTF-16 units. */
export const conditionCharsMax = 1_024;

/** Maximum number of nodes in a condition's tree. */
export const conditionNodesMax = 512;

/** Maximum depth of a condition's tree. */
export const conditionDepthMax = 24;

/** A compiled CEL condition, evaluated for each request. */
export interface Condition {
  /** Headers that it reads, in lower case. */
  readonly headerNames: ReadonlySet<string>;
  /** Attributes that it reads. */
  readonly attributeNames: ReadonlySet<string>;
  /**
   * Reports whether it is true of a request. False also if the result depends on something that the
   * request lacks, such as an absent header. Never throws.
   */
  holds(facts: RequestFacts): boolean;
}

/** A mistake in a condition's text. */
interface ConditionMistake {
  readonly id: ProblemId;
  readonly message: string;
  readonly expected?: string | undefined;
  readonly suggestion?: string | undefined;
  /** Where in the text, in UTF-16 units; `end` is at least `start`. */
  readonly start: number;
  readonly end: number;
}

/** Result of compiling a condition. */
type CompiledCondition =
  | { readonly kind: "condition"; readonly condition: Condition }
  | { readonly kind: "wrong"; readonly mistake: ConditionMistake };

/**
 * Compiles CEL conditions over `request` (path, url_path, query, host, method, scheme, id,
 * protocol, headers) and `source` (address, principal). The library parses and checks types. The
 * readers for each request are built here (`condition-parts`), at most `conditionStepsMax` steps.
 *
 * Source: https://github.com/google/cel-spec, doc/langdef.md.
 */
export class ConditionCompiler {
  /** Made for the first condition: it costs more than all else of a policy without any. */
  #environment: Environment | undefined;

  /** Compiles one condition of type bool. About 50 us; evaluating it takes 0.01 to 0.3 us. */
  compile(text: string): CompiledCondition {
    if (text.length > conditionCharsMax) {
      const message = `the condition has ${text.length} characters, which is too long`;
      const expected = `at most ${conditionCharsMax} characters`;
      return wrong({ id: "HG213", message, expected, start: 0, end: text.length });
    }
    const parsed = this.#parse(text);
    if ("kind" in parsed) return parsed;
    const checked = parsed.check();
    if (!checked.valid) return wrong(typeMistake(text, checked.error));
    if (checked.type !== "bool") {
      const message = `the condition returns ${checked.type}`;
      const expected = "a condition that returns true or false";
      return wrong({ id: "HG211", message, expected, start: 0, end: text.length });
    }
    return build(parsed.ast);
  }

  /** Reads one condition for Envoy's matchers, which offer a little less than `compile`. */
  expression(text: string): CompiledExpression {
    const compiled = this.compile(text);
    if (compiled.kind === "wrong") return compiled;
    const parsed = this.#parse(text);
    if ("kind" in parsed) return parsed;
    const written = expressionOf(parsed.ast);
    if (written.kind === "expression") return written;
    const { start, end } = written.node;
    const message = `Envoy's matchers do not support ${written.what}`;
    const expected = "string header values, compared with ==, in, startsWith, endsWith or contains";
    return wrong({ id: "HG212", message, expected, start, end });
  }

  /**
   * Returns a condition that `compile` accepts as alternatives that proxies can test too; undefined
   * if proxies cannot express it.
   */
  alternatives(text: string): readonly Alternative[] | undefined {
    const parsed = this.#parse(text);
    return "kind" in parsed ? undefined : alternativesOf(parsed.ast);
  }

  #parse(text: string): ParseResult | Extract<CompiledCondition, { kind: "wrong" }> {
    try {
      this.#environment ??= createEnvironment();
      return this.#environment.parse(text);
    } catch (error) {
      return wrong(syntaxMistake(text, error));
    }
  }
}

/** Takes about 0.2 ms. */
function createEnvironment(): Environment {
  const limits = {
    maxAstNodes: conditionNodesMax,
    maxDepth: conditionDepthMax,
    maxListElements: conditionNodesMax,
    maxMapEntries: conditionNodesMax,
    maxCallArguments: 8,
  };
  const environment = new Environment({ limits });
  for (const [variable, fields] of Object.entries(factFields)) {
    const texts = Object.fromEntries([...fields.keys()].map((name) => [name, "string"]));
    const headers = variable === "request" ? { headers: "map<string, string>" } : {};
    environment.registerVariable(variable, { schema: { ...texts, ...headers } });
  }
  return environment;
}

function build(ast: ASTNode): CompiledCondition {
  const parts = new ConditionParts();
  const reader = parts.read(ast);
  const { refusal, headerNames, attributeNames } = parts;
  if (refusal !== undefined || reader === undefined) {
    const { kind = "unsupported", node = ast, message = "", ...rest } = refusal ?? {};
    return wrong({ id: refusalIds[kind], message, ...rest, start: node.start, end: node.end });
  }
  const holds = (facts: RequestFacts): boolean => reader(facts) === true;
  return { kind: "condition", condition: { headerNames, attributeNames, holds } };
}

const refusalIds = { unsupported: "HG212", costly: "HG213", headerName: "HG223" } as const;

function wrong(mistake: ConditionMistake): Extract<CompiledCondition, { kind: "wrong" }> {
  return { kind: "wrong", mistake };
}

type LibraryError = ParseError | TypeMistake | undefined;

function syntaxMistake(text: string, error: unknown): ConditionMistake {
  const { code, summary, range } = asLibraryError(error);
  const place = placeIn(text, range);
  if (code === "limit_exceeded") {
    const expected = `at most ${conditionNodesMax} parts, nested at most ${conditionDepthMax} deep`;
    return { id: "HG213", message: "the condition has too many parts", expected, ...place };
  }
  const isAtEnd = place.start >= text.trimEnd().length;
  const words = isAtEnd ? "it ends too early" : shorten(summary);
  return { id: "HG210", message: `the condition is not CEL: ${words}`, ...place };
}

/** Returns the properties of an error of the CEL library, if it is one. */
function asLibraryError(error: unknown): Partial<Pick<ParseError, "code" | "summary" | "range">> {
  const read = (name: string): unknown => Reflect.get(Object(error), name);
  const code = read("code");
  const summary = read("summary");
  const range = Object(read("range"));
  const start: unknown = Reflect.get(range, "start");
  const end: unknown = Reflect.get(range, "end");
  return {
    ...(typeof code === "string" && { code }),
    ...(typeof summary === "string" && { summary }),
    ...(typeof start === "number" && typeof end === "number" && { range: { start, end } }),
  };
}

function typeMistake(text: string, error: LibraryError): ConditionMistake {
  const place = placeIn(text, error?.range);
  const name = text.slice(place.start, place.end);
  const unknown = {
    id: "HG211",
    message: `${quoteText(name)} is not a known name`,
    ...place,
  } as const;
  if (error?.code === "unknown_variable") return { ...unknown, ...choicesOf(name, variables) };
  if (error?.code === "no_such_key") {
    return { ...unknown, ...choicesOf(name, fieldsBefore(text, place.start)) };
  }
  const words = shorten(error?.summary).replaceAll("$", "");
  const called = /'(?:\w+\.)?(\w+)\(/.exec(words)?.[1];
  const suggestion = called === undefined ? undefined : findNearestName(called, functionNames);
  const isOther = suggestion !== called;
  return {
    id: "HG211",
    message: `the types do not fit: ${words}`,
    suggestion: isOther ? suggestion : undefined,
    ...place,
  };
}

const variables = Object.keys(factFields);
const functionNames: readonly string[] = [
  "startsWith",
  "endsWith",
  "contains",
  "lowerAscii",
  "size",
  "has",
  "exists",
  "all",
];

/** Returns the fields of the variable before a place and its dot. */
function fieldsBefore(text: string, start: number): readonly string[] {
  const isSource = /source\s*\.\s*$/.test(text.slice(0, start));
  return isSource ? [...factFields.source.keys()] : [...factFields.request.keys(), "headers"];
}

function choicesOf(
  name: string,
  choices: readonly string[],
): Pick<ConditionMistake, "expected" | "suggestion"> {
  return { expected: listWords(choices), suggestion: findNearestName(name, choices) };
}

function placeIn(
  text: string,
  range: { readonly start: number; readonly end: number } | undefined,
): { readonly start: number; readonly end: number } {
  const { start = 0, end = text.length } = range ?? {};
  return { start, end: Math.max(start, end) };
}

/** Maximum characters of the library's message that are shown, since it repeats the condition. */
const wordsCharsMax = 80;

function shorten(summary = "it cannot be parsed"): string {
  const words = visibleText(summary);
  const short = words.length > wordsCharsMax ? `${words.slice(0, wordsCharsMax)}...` : words;
  return short.charAt(0).toLowerCase() + short.slice(1);
}
