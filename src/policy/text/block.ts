import { isMap, type ParsedNode } from "yaml";
import { listWords, quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import type { Field, Fields, NodeReader } from "./node-reader.js";
import { kindOf } from "./scalars.js";
import type { Shape } from "./shapes.js";

/**
 * A map of settings, most of which may be left out. What is wrong is reported, and reads as
 * the default: a policy with problems is never used.
 */
export class Block {
  readonly reader: NodeReader;
  readonly fields: Fields;

  constructor(reader: NodeReader, fields: Fields) {
    this.reader = reader;
    this.fields = fields;
  }

  /** The map at a place; undefined, and reported, where there is none. */
  static at(reader: NodeReader, place: ParsedNode, shape: Shape): Block | undefined {
    const fields = reader.readMap(place, shape);
    return fields && new Block(reader, fields);
  }

  /** The field of that name; undefined where it is left out. */
  field(name: string): Field | undefined {
    return this.fields.byName.get(name);
  }

  /** The field of that name; one that needs to be there, and is not, is reported. */
  declared(name: string, needs: string | undefined): Field | undefined {
    if (needs === undefined) return this.field(name);
    return this.reader.requiredField(this.fields, name, needs);
  }

  /** Whether a name is not there: neither it nor what may have been meant to be it. */
  isLeftOut(name: string): boolean {
    const { byName, isComplete, misspelt } = this.fields;
    return !byName.has(name) && isComplete && !misspelt.has(name);
  }

  /** Whether nothing at all is written in the map. */
  get isEmpty(): boolean {
    const { node } = this.fields;
    return isMap(node) && node.items.length === 0;
  }

  /** Reports a finding at a name, or at the block itself where the name is left out. */
  report(name: string, finding: Finding): undefined {
    return this.reader.report(this.field(name)?.key ?? this.fields.node, finding);
  }

  /** Reports two values that stand in the wrong order, at the first of the names that is there. */
  refuseOrder(names: readonly string[], message: string, expected: string): undefined {
    const name = names.find((each) => this.field(each) !== undefined) ?? "";
    return this.report(name, { id: "HG240", message, expected });
  }

  /** Reports two names that cannot stand together; the first must be there. */
  refusePair(name: string, other: string): undefined {
    const message = `"${name}" and "${other}" exclude each other`;
    return this.report(name, { id: "HG126", message, expected: "one of the two" });
  }
}

/** Reads a list of different words out of a few; undefined where it is no list. */
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

/** The items of a list of single values, each with its place; undefined where it is wrong. */
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

/** An item of a list as if it had a name: that of the list. */
function itemField(list: Field, item: ParsedNode, reader: NodeReader): Field {
  const content = reader.contentAt(item);
  const isEmpty = content !== undefined && kindOf(content) === "empty";
  return { name: list.name, key: item, value: isEmpty ? undefined : item };
}
