import { isAlias, isMap, isScalar, isSeq, type ParsedNode, Scalar } from "yaml";
import type { AliasTargets, ContentNode } from "./aliases.js";
import { findNearestName } from "./nearest-name.js";
import { NodeLog } from "./node-log.js";
import { quoteText } from "./problem.js";
import type { Finding, ProblemLog } from "./problem-log.js";
import type { Shape } from "./shapes.js";
import type { SourceText } from "./source-text.js";

/**
 * One name of a map and its value as it is written, be it an alias; `value` is undefined when
 * nothing is written after the `:`, or empty where the alias leads.
 */
export interface Field {
  readonly name: string;
  readonly key: ParsedNode;
  readonly value: ParsedNode | undefined;
}

/** A map's names, and where it begins: for an alias of it, where its text is. */
export interface Fields {
  readonly node: ContentNode;
  readonly byName: ReadonlyMap<string, Field>;
  /** Names that an unknown one probably meant: told there, so they are not missed as well. */
  readonly misspelt: ReadonlySet<string>;
  /** False when a refused name (a merge, an alias, of the other dialect) may be the missing one. */
  readonly isComplete: boolean;
}

/** What a text may be. */
export interface TextRule {
  readonly charsMax: number;
  /** A character that must not occur. */
  readonly forbidden: RegExp;
  /** What is right, for messages. */
  readonly expected: string;
}

/**
 * Reads the nodes of one file; each method reports what is wrong and answers undefined then. An
 * alias reads as what it names.
 */
export class NodeReader {
  readonly source: SourceText;
  readonly #log: NodeLog;

  constructor(source: SourceText, log: ProblemLog, targets: AliasTargets) {
    this.source = source;
    this.#log = new NodeLog(source, log, targets);
  }

  /** Reports a finding about a node among others: at the alias, if it is one. */
  report(node: ParsedNode, finding: Finding): undefined {
    return this.#log.report(node, finding);
  }

  /** Reports a finding about what a node says by itself: not again for an alias of it. */
  reportContent(node: ParsedNode, finding: Finding): undefined {
    return this.#log.reportContent(node, finding);
  }

  /** The content of a field; undefined where there is none, or none that an alias leads to. */
  contentOf(field: Field): ContentNode | undefined {
    return field.value && this.#log.contentOf(field.value);
  }

  /** A map of known names, each once. Unknown names are reported and left out. */
  readMap(place: ParsedNode, shape: Shape): Fields | undefined {
    const node = this.#log.contentOf(place);
    if (node === undefined || !isMap<ParsedNode, ParsedNode | null>(node)) {
      return this.#wrongKind(place, `${shape.title}: a map of names`);
    }
    const byName = new Map<string, Field>();
    const misspelt = new Set<string>();
    let isComplete = true;
    for (const { key, value } of node.items) {
      if (!isScalar(key) || typeof key.value !== "string") {
        this.#reportName(key, shape);
        if (isAlias(key)) isComplete = false;
        continue;
      }
      const field = { name: key.value, key, value: this.#filledValue(value) };
      if (!shape.names.includes(field.name)) {
        const meant = this.#refuseName(field, shape);
        if (meant !== undefined) misspelt.add(meant);
        if (field.name === "<<" || shape.ownNames.includes(field.name)) isComplete = false;
      } else if (byName.has(field.name)) {
        this.report(key, { id: "HG103", message: `${quoteText(field.name)} stands twice` });
      } else {
        byName.set(field.name, field);
      }
    }
    return { node, byName, misspelt, isComplete };
  }

  /** The items of a list; undefined where one is empty. */
  readList(field: Field, expected: string): readonly ParsedNode[] | undefined {
    const place = this.required(field, expected);
    const node = this.contentOf(field);
    if (place === undefined || node === undefined) return undefined;
    if (!isSeq<ParsedNode>(node)) return this.#wrongKind(place, expected);
    return node.items;
  }

  /** The value, as it is written, of a field that must not be left empty. */
  required(field: Field, expected: string): ParsedNode | undefined {
    if (field.value !== undefined) return field.value;
    const message = `${quoteText(field.name)} has no value`;
    return this.report(field.key, { id: "HG124", message, expected });
  }

  /** A field that must be there. */
  requiredField(fields: Fields, name: string, expected: string): Field | undefined {
    const field = fields.byName.get(name);
    if (field !== undefined || !fields.isComplete || fields.misspelt.has(name)) return field;
    return this.report(fields.node, { id: "HG125", message: `"${name}" is missing`, expected });
  }

  /**
   * A text, never empty. Whole numbers, true and false are taken as they are written, as
   * envoyproxy/ratelimit takes them; fractions are not, since `1.0` and `1.00` are one number.
   */
  readText(field: Field, rule: TextRule): string | undefined {
    const place = this.required(field, rule.expected);
    const node = this.contentOf(field);
    if (place === undefined || node === undefined) return undefined;
    const text = scalarText(node);
    if (text === undefined) return this.#wrongText(place, rule);
    return this.#checkText(place, text, rule);
  }

  /** A whole number within bounds, written in digits without quotes. */
  readWhole(field: Field, bounds: { min: number; max: number }): number | undefined {
    const expected = `a whole number, ${bounds.min} to ${bounds.max}`;
    const place = this.required(field, expected);
    const node = this.contentOf(field);
    if (place === undefined || node === undefined) return undefined;
    if (!isScalar(node)) return this.#wrongKind(place, expected);
    const written = String(node.source ?? "");
    if (typeof node.value !== "number" || !wholeNumber.test(written)) {
      return this.reportContent(place, wrongWhole(node, written, expected));
    }
    if (node.value < bounds.min || node.value > bounds.max) {
      const message = `${quoteText(written)} is out of range`;
      return this.reportContent(place, { id: "HG141", message, expected });
    }
    // `-0` is a number, and in range.
    return node.value + 0;
  }

  /** True or false. */
  readFlag(field: Field): boolean | undefined {
    const expected = "true or false";
    const place = this.required(field, expected);
    const node = this.contentOf(field);
    if (place === undefined || node === undefined) return undefined;
    if (!isScalar(node)) return this.#wrongKind(place, expected);
    if (typeof node.value === "boolean") return node.value;
    const written = String(node.source ?? "");
    const suggestion = oldFlags.get(written.toLowerCase());
    const message = `${quoteText(written)} is neither true nor false`;
    return this.reportContent(place, { id: "HG124", message, expected, suggestion });
  }

  /** One of a few words, in any case when `ignoreCase` is given. */
  readChoice<Word extends string>(
    field: Field,
    choices: readonly Word[],
    finding: Pick<Finding, "id"> & { readonly what: string; readonly ignoreCase?: true },
  ): Word | undefined {
    const expected = listWords(choices);
    const place = this.required(field, expected);
    const node = this.contentOf(field);
    if (place === undefined || node === undefined) return undefined;
    const written = scalarText(node);
    if (written === undefined) return this.#wrongKind(place, expected);
    const wanted = finding.ignoreCase ? written.toLowerCase() : written;
    const choice = choices.find((word) => word === wanted);
    if (choice !== undefined) return choice;
    const suggestion = findNearestName(written, choices);
    const message = `${quoteText(written)} is not ${finding.what}`;
    return this.reportContent(place, { id: finding.id, message, expected, suggestion });
  }

  #checkText(place: ParsedNode, text: string, rule: TextRule): string | undefined {
    const { expected } = rule;
    if (text.length > rule.charsMax) {
      const message = `a text of ${text.length} characters is too long`;
      return this.reportContent(place, { id: "HG131", message, expected });
    }
    if (rule.forbidden.test(text)) {
      const message = `${quoteText(text)} holds a character that is not allowed`;
      return this.reportContent(place, { id: "HG132", message, expected });
    }
    if (text !== "") return text;
    return this.reportContent(place, { id: "HG130", message: "a text is empty", expected });
  }

  /** Reports a name that is not among the shape's, and answers the one that was probably meant. */
  #refuseName({ name, key }: Field, shape: Shape): string | undefined {
    const quoted = quoteText(name);
    if (name === "<<") {
      return this.report(key, { id: "HG104", message: "merge keys are not accepted" });
    }
    if (shape.laterNames.includes(name)) {
      return this.report(key, { id: "HG121", message: `${quoted} is not supported yet` });
    }
    if (shape.ownNames.includes(name)) {
      const message = `${quoted} belongs to \`kind: Policy\` only`;
      return this.report(key, { id: "HG122", message });
    }
    const suggestion = findNearestName(name, [...shape.names, ...shape.laterNames]);
    const message = `${quoted} is unknown in ${shape.title}`;
    this.report(key, { id: "HG120", message, expected: listWords(shape.names), suggestion });
    return suggestion;
  }

  #reportName(key: ParsedNode, shape: Shape): undefined {
    // Reported where aliases are resolved.
    if (isAlias(key)) return undefined;
    const message = `a name in ${shape.title} is not text`;
    return this.report(key, { id: "HG123", message, expected: listWords(shape.names) });
  }

  #wrongText(place: ParsedNode, { expected }: TextRule): undefined {
    const node = this.#log.contentOf(place);
    if (!isScalar(node)) return this.#wrongKind(place, expected);
    const quoted = quoteText(String(node.source ?? ""));
    const message = `${quoted} is a number; as a text it needs quotes`;
    return this.reportContent(place, { id: "HG124", message, expected, suggestion: quoted });
  }

  #wrongKind(place: ParsedNode, expected: string): undefined {
    const node = this.#log.contentOf(place);
    if (node === undefined) return undefined;
    const message = `this is ${kindOf(node)}`;
    return this.reportContent(place, { id: "HG124", message, expected });
  }

  /** Undefined for a value that is left empty, or null, here or where its alias leads. */
  #filledValue(value: ParsedNode | null): ParsedNode | undefined {
    if (value === null) return undefined;
    const node = this.#log.contentOf(value);
    return isScalar(node) && node.value === null ? undefined : value;
  }
}

function wrongWhole(node: Scalar.Parsed, written: string, expected: string): Finding {
  const quoted = quoteText(written);
  if (node.type === Scalar.PLAIN) {
    const isOctal = /^[-+]?0[0-9]+$/.test(written);
    const message = `${quoted} ${isOctal ? "begins with a zero" : "is not a whole number"}`;
    return { id: "HG140", message, expected };
  }
  const message = `${quoted} is text, not a number`;
  const suggestion = /^(?:0|[1-9][0-9]{0,9})$/.test(written) ? written : undefined;
  return { id: "HG140", message, expected, suggestion };
}

/** Digits as YAML 1.1 and 1.2 read them alike: a leading zero would be octal in the older one. */
const wholeNumber = /^[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$/;

/** What YAML 1.1 read as true and false. */
const oldFlags: ReadonlyMap<string, string> = new Map([
  ["yes", "true"],
  ["on", "true"],
  ["y", "true"],
  ["true", "true"],
  ["1", "true"],
  ["no", "false"],
  ["off", "false"],
  ["n", "false"],
  ["false", "false"],
  ["0", "false"],
]);

/** `a, b or c`. */
function listWords(words: readonly string[]): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} or ${words[words.length - 1]}`;
}

/** The text of a string, a whole number, true or false as written; undefined for anything else. */
function scalarText(node: ContentNode): string | undefined {
  if (!isScalar(node)) return undefined;
  if (typeof node.value === "string") return node.value;
  const written = String(node.source ?? "");
  if (typeof node.value === "boolean") return written;
  return /^[-+]?[0-9]+$|^0[xo]/.test(written) ? written : undefined;
}

function kindOf(node: ContentNode): string {
  if (isMap(node)) return "a map";
  if (isSeq(node)) return "a list";
  return isScalar(node) && node.value === null ? "empty" : "a single value";
}
