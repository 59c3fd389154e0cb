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
 * A name of a map and its value as it is written, even if it is an alias. `value` is undefined if
 * nothing is written after the `:`, or if the target of the alias is empty.
 */
export interface Field {
  readonly name: string;
  readonly key: ParsedNode;
  readonly value: ParsedNode | undefined;
}

/** The names of a map, and where the map begins: for an alias, where its target is written. */
export interface Fields {
  readonly node: ContentNode;
  readonly byName: ReadonlyMap<string, Field>;
  /** Names without a value that the shape treats as absent. */
  readonly blank: ReadonlyMap<string, Field>;
  /** Names that a misspelt name probably meant. They are reported there, so not as missing too. */
  readonly misspelt: ReadonlySet<string>;
  /** False if a refused name (an alias, or a name of the other dialect) may be the missing one. */
  readonly isComplete: boolean;
}

/** Properties of a shape other than its names. */
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
 * Reads the nodes of one file. Each method reports what is wrong, and then returns undefined. An
 * alias reads as its target.
 */
export class NodeReader extends NodeLog {
  /** Returns the content of a field; undefined if it has none, or if its alias leads to none. */
  contentOf(field: Field): ContentNode | undefined {
    return field.value && this.contentAt(field.value);
  }

  /**
   * Reads a map of known names, each at most once. Its own names take precedence over those of maps
   * that `<<` merges into it. Unknown names are reported and left out.
   */
  readMap(place: ParsedNode, shape: Shape): Fields | undefined {
    const node = this.contentAt(place);
    if (node === undefined || !isMap<ParsedNode, ParsedNode | null>(node)) {
      return this.#wrongKind(place, `${shape.title}: a map of names`);
    }
    return { node, ...this.#collect(node, shape) };
  }

  /** `alias` is the alias that merges the map; undefined for a map written in place. */
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

  /** Adds the names of a merged map that the map itself lacks. Source: yaml.org/type/merge. */
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

  /** Reads a map whose names the user chooses, each at most once and each with a value. */
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

  /** Returns the items of a list; undefined if the field is empty or not a list. */
  readList(field: Field, expected: string): readonly ParsedNode[] | undefined {
    const place = this.required(field, expected);
    const node = this.contentOf(field);
    if (place === undefined || node === undefined) return undefined;
    if (!isSeq<ParsedNode>(node)) return this.#wrongKind(place, expected);
    return node.items;
  }

  /** Returns the value, as it is written, of a field that must not be empty. */
  required(field: Field, expected: string): ParsedNode | undefined {
    if (field.value !== undefined) return field.value;
    const message = `${quoteText(field.name)} has no value`;
    return this.report(field.key, { id: "HG124", message, expected });
  }

  /** Returns a field that must be present. */
  requiredField(fields: Fields, name: string, expected: string): Field | undefined {
    const field = fields.byName.get(name);
    if (field !== undefined || !fields.isComplete || fields.misspelt.has(name)) return field;
    return this.report(fields.node, { id: "HG125", message: `"${name}" is missing`, expected });
  }

  /**
   * Reads a text, never empty. Whole numbers, true and false are accepted as they are written, as
   * envoyproxy/ratelimit does. Fractions are not, because `1.0` and `1.00` are the same number.
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

  /** Reads a whole number within bounds, written in digits without quotes. */
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

  /** Reads true or false; in the `ratelimit` dialect also the YAML 1.1 words (`yes`, `off`). */
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

  /** Reads one of a few words, in any case if `ignoreCase` is given. */
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

  /** Reports a name that the shape does not have. Returns the name that was probably meant. */
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
    // Aliases are reported when they are resolved.
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

  /** Undefined for a value that is empty or null, here or at the target of its alias. */
  #filledValue(value: ParsedNode | null): ParsedNode | undefined {
    if (value === null) return undefined;
    const node = this.contentAt(value);
    return isScalar(node) && node.value === null ? undefined : value;
  }
}
