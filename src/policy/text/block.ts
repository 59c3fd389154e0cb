import { isMap, type ParsedNode } from "yaml";
import { listWords, quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import type { Field, Fields, NodeReader } from "./node-reader.js";
import { kindOf } from "./scalars.js";
import type { Shape } from "./shapes.js";

/**
 * A map of settings, most of them optional. A wrong setting is reported and reads as the default: a
 * policy with problems is never used.
 */
export class Block {
  readonly reader: NodeReader;
  readonly fields: Fields;

  constructor(reader: NodeReader, fields: Fields) {
    this.reader = reader;
    this.fields = fields;
  }

  /** Reads the map at a node; undefined, and reported, if it is not a map. */
  static at(reader: NodeReader, place: ParsedNode, shape: Shape): Block | undefined {
    const fields = reader.readMap(place, shape);
    return fields && new Block(reader, fields);
  }

  /** Returns the field of that name; undefined if it is left out. */
  field(name: string): Field | undefined {
    return this.fields.byName.get(name);
  }

  /** Returns the field of that name. If it is required and missing, it is reported. */
  declared(name: string, needs: string | undefined): Field | undefined {
    if (needs === undefined) return this.field(name);
    return this.reader.requiredField(this.fields, name, needs);
  }

  /** Reports whether a name is absent and no misspelt or refused name may stand for it. */
  isLeftOut(name: string): boolean {
    const { byName, isComplete, misspelt } = this.fields;
    return !byName.has(name) && isComplete && !misspelt.has(name);
  }

  /** Reports whether the map is empty. */
  get isEmpty(): boolean {
    const { node } = this.fields;
    return isMap(node) && node.items.length === 0;
  }

  /** Reports a finding at a name, or at the block itself if the name is left out. */
  report(name: string, finding: Finding): undefined {
    return this.reader.report(this.field(name)?.key ?? this.fields.node, finding);
  }

  /** Reports two values in the wrong order, at the first of the names that is present. */
  refuseOrder(names: readonly string[], message: string, expected: string): undefined {
    const name = names.find((each) => this.field(each) !== undefined) ?? "";
    return this.report(name, { id: "HG240", message, expected });
  }

  /** Reports two names that exclude each other; the first must be present. */
  refusePair(name: string, other: string): undefined {
    const message = `"${name}" and "${other}" exclude each other`;
    return this.report(name, { id: "HG126", message, expected: "one of the two" });
  }
}

/** Reads a list of distinct words from a set of choices; undefined if it is not a list. */
export function readWords<Word extends string>(
  reader: NodeReader,
  field: Field,
  choices: readonly Word[],
): readonly Word[] | undefined {
  const items = reader.readList(field, `a list of ${listWords(choices)}`);
  const finding = { id: "HG133", what: "a choice here" } as const;
  const found = items?.flatMap(
    (item) => reader.readChoice(itemField(field, item, reader), choices, finding) ?? [],
  );
  return found && [...new Set(found)];
}

/** Reads the items of a list of single values, each with its place; undefined if it is wrong. */
export function readItems(
  reader: NodeReader,
  field: Field,
  { expected, countMax }: { readonly expected: string; readonly countMax: number },
): readonly Field[] | undefined {
  const items = reader.readList(field, expected);
  if (items === undefined) return undefined;
  if (items.length > countMax) {
    const message = `${quoteText(field.name)} cannot hold more than ${countMax} items`;
    return reader.report(field.key, { id: "HG160", message });
  }
  return items.map((item) => itemField(field, item, reader));
}

/** Returns an item of a list as a field with the name of the list. */
function itemField(list: Field, item: ParsedNode, reader: NodeReader): Field {
  const content = reader.contentAt(item);
  const isEmpty = content !== undefined && kindOf(content) === "empty";
  return { name: list.name, key: item, value: isEmpty ? undefined : item };
}
