import { isAlias, isMap, isScalar, isSeq, type ParsedNode, Scalar, type YAMLMap } from "yaml";
import { listWords, quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import type { ContentNode } from "./aliases.js";
import { findNearestName } from "./nearest-name.js";
import { NodeLog } from "./node-log.js";
import {
  kindOf,
  ratelimitBoolean,
  scalarText,
  suggestedFlag,
  wholeNumber,
  wrongWhole,
} from "./scalars.js";
import type { Dialect, Shape } from "./shapes.js";
import { type TextRule, textFault } from "./text-rules.js";

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
  /** Names without a value that the shape reads as if they were not there. */
  readonly blank: ReadonlyMap<string, Field>;
  /** Names that an unknown one probably meant: told there, so they are not missed as well. */
  readonly misspelt: ReadonlySet<string>;
  /** False when a refused name (an alias, of the other dialect) may be the missing one. */
  readonly isComplete: boolean;
}

/** What a shape is beside its names. */
const anyName = { blankNames: [], laterNames: [], ownNames: [] };

function scalarName(key: ParsedNode): string | undefined {
  return isScalar(key) && typeof key.value === "string" ? key.value : undefined;
}

type NamesNode = YAMLMap<ParsedNode, ParsedNode | null>;

/** The names of a map while they are collected. */
interface CollectedNames {
  readonly byName: Map<string, Field>;
  readonly blank: Map<string, Field>;
  readonly misspelt: Set<string>;
  isComplete: boolean;
}

/**
 * Reads the nodes of one file; each method reports what is wrong and answers undefined then. An
 * alias reads as what it names.
 */
export class NodeReader extends NodeLog {
  /** The content of a field; undefined where there is none, or none that an alias leads to. */
  contentOf(field: Field): ContentNode | undefined {
    return field.value && this.contentAt(field.value);
  }

  /**
   * A map of known names, each once; its own come before those of maps that `<<` merges into it.
   * Unknown names are reported and left out.
   */
  readMap(place: ParsedNode, shape: Shape): Fields | undefined {
    const node = this.contentAt(place);
    if (node === undefined || !isMap<ParsedNode, ParsedNode | null>(node)) {
      return this.#wrongKind(place, `${shape.title}: a map of names`);
    }
    return { node, ...this.#collect(node, shape) };
  }

  /** `alias` is what merges the map; undefined for one that is written where it is read. */
  #collect(node: NamesNode, shape: Shape, alias?: ParsedNode): CollectedNames {
    const names: CollectedNames = {
      byName: new Map(),
      blank: new Map(),
      misspelt: new Set(),
      isComplete: true,
    };
    const merges: Field[] = [];
    for (const { key, value } of node.items) {
      if (!isScalar(key) || typeof key.value !== "string") {
        this.#reportName(key, shape);
        if (isAlias(key)) names.isComplete = false;
        continue;
      }
      const field = { name: key.value, key, value: this.#filledValue(value) };
      const isMerge = field.name === "<<" && key.type === Scalar.PLAIN;
      if (isMerge ? merges.length > 0 : names.byName.has(field.name)) {
        this.report(key, { id: "HG103", message: `${quoteText(field.name)} is defined twice` });
      } else if (isMerge) {
        merges.push(field);
      } else if (shape.names.includes(field.name)) {
        names.byName.set(field.name, field);
      } else {
        const meant = this.#refuseName(field, shape, alias);
        if (meant !== undefined) names.misspelt.add(meant);
        if (shape.ownNames.includes(field.name)) names.isComplete = false;
      }
    }
    for (const merge of merges) this.#merge(merge, shape, names);
    for (const name of shape.blankNames) {
      const field = names.byName.get(name);
      if (field === undefined || field.value !== undefined) continue;
      names.byName.delete(name);
      names.blank.set(name, field);
    }
    return names;
  }

  /** Adds what a merge key brings and the map does not say itself. Source: yaml.org/type/merge. */
  #merge({ key, value }: Field, shape: Shape, into: CollectedNames): void {
    const content = value && this.contentAt(value);
    if (value === undefined) this.report(key, { id: "HG104", message: "`<<` has no map to merge" });
    const nodes = isSeq<ParsedNode>(content) ? content.items : value === undefined ? [] : [value];
    for (const node of nodes) {
      const source = this.contentAt(node);
      if (source === undefined || !isMap<ParsedNode, ParsedNode | null>(source)) {
        const message = `\`<<\` merges maps, and this is ${source ? kindOf(source) : "none"}`;
        if (source !== undefined) this.report(node, { id: "HG104", message });
        into.isComplete = false;
        continue;
      }
      const found = this.#collect(source, shape, isAlias(node) ? node : undefined);
      for (const [name, field] of found.byName) {
        if (!into.byName.has(name)) into.byName.set(name, field);
      }
      for (const name of found.misspelt) into.misspelt.add(name);
      into.isComplete &&= found.isComplete;
    }
  }

  /** A map whose names are the user's own, each once, and each with a value. */
  readTextMap(
    field: Field,
    { title, expected }: { readonly title: string; readonly expected: string },
  ): readonly Field[] | undefined {
    const place = this.required(field, expected);
    const node = place && this.contentAt(place);
    if (place === undefined || node === undefined) return undefined;
    if (!isMap<ParsedNode, ParsedNode | null>(node)) return this.#wrongKind(place, expected);
    const written = node.items.flatMap(({ key }) => scalarName(key) ?? []);
    return [...(this.readMap(place, { ...anyName, title, names: written })?.byName.values() ?? [])];
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
    const fault = textFault(text, rule);
    return fault === undefined ? text : this.reportContent(place, fault);
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

  /** True or false; in the reference's dialect also as YAML 1.1 has them (`yes`, `off`). */
  readFlag(field: Field, dialect: Dialect): boolean | undefined {
    const expected = "true or false";
    const place = this.required(field, expected);
    const node = this.contentOf(field);
    if (place === undefined || node === undefined) return undefined;
    if (!isScalar(node)) return this.#wrongKind(place, expected);
    if (typeof node.value === "boolean") return node.value;
    const old = dialect === "ratelimit" ? ratelimitBoolean(node) : undefined;
    if (old !== undefined) return old;
    const written = String(node.source ?? "");
    const message = `${quoteText(written)} is neither true nor false`;
    const suggestion = suggestedFlag(written);
    return this.reportContent(place, { id: "HG124", message, expected, suggestion });
  }

  /** One of a few words, in any case when `ignoreCase` is given. */
  readChoice<Word extends string>(
    field: Field,
    choices: readonly Word[],
    finding: Pick<Finding, "id" | "expected"> & { readonly what: string; ignoreCase?: true },
  ): Word | undefined {
    const { expected = listWords(choices) } = finding;
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

  /** Reports a name that is not among the shape's, and answers the one that was probably meant. */
  #refuseName({ name, key }: Field, shape: Shape, alias: ParsedNode = key): string | undefined {
    const quoted = quoteText(name);
    const report = (finding: Finding): undefined => this.reportContent(alias, finding, key);
    if (shape.laterNames.includes(name)) {
      return report({ id: "HG121", message: `${quoted} is not supported yet` });
    }
    if (shape.ownNames.includes(name)) {
      return report({ id: "HG122", message: `${quoted} is supported in \`kind: Policy\` only` });
    }
    const suggestion = findNearestName(name, [...shape.names, ...shape.laterNames]);
    const message = `${quoted} is unknown in ${shape.title}`;
    report({ id: "HG120", message, expected: listWords(shape.names), suggestion });
    return suggestion;
  }

  #reportName(key: ParsedNode, shape: Shape): undefined {
    // Reported where aliases are resolved.
    if (isAlias(key)) return undefined;
    const message = `a key in ${shape.title} is not text`;
    return this.report(key, { id: "HG123", message, expected: listWords(shape.names) });
  }

  #wrongText(place: ParsedNode, { expected }: TextRule): undefined {
    const node = this.contentAt(place);
    if (!isScalar(node)) return this.#wrongKind(place, expected);
    const quoted = quoteText(String(node.source ?? ""));
    const message = `${quoted} is a number; quote it to make it a text`;
    return this.reportContent(place, { id: "HG124", message, expected, suggestion: quoted });
  }

  #wrongKind(place: ParsedNode, expected: string): undefined {
    const node = this.contentAt(place);
    if (node === undefined) return undefined;
    return this.reportContent(place, { id: "HG124", message: `this is ${kindOf(node)}`, expected });
  }

  /** Undefined for a value that is left empty, or null, here or where its alias leads. */
  #filledValue(value: ParsedNode | null): ParsedNode | undefined {
    if (value === null) return undefined;
    const node = this.contentAt(value);
    return isScalar(node) && node.value === null ? undefined : value;
  }
}
