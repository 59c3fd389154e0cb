import { isMap, type ParsedNode } from "yaml";
import type { WaitBound } from "../../core/settings/admission-settings.js";
import { quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import type { Field, Fields, NodeReader } from "./node-reader.js";
import {
  type DurationBounds,
  type NumberBounds,
  readBytes,
  readDuration,
  readNumber,
  readWaitBound,
} from "./quantities.js";
import { kindOf, listWords } from "./scalars.js";
import type { Shape } from "./shapes.js";
import type { TextRule } from "./text-rules.js";

/** Words of which a name takes one. */
interface Choice<Word extends string> {
  readonly usual: Word;
  readonly words: readonly Word[];
  /** What is right, where it is more than the words. */
  readonly expected?: string;
}

/**
 * A map of settings, most of which may be left out. What is wrong is reported, and reads as what
 * is usual: a policy with problems is never used.
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

  /** Whether a name is not there: neither it nor what may have been meant to be it. */
  isLeftOut(name: string): boolean {
    const { byName, isComplete, misspelt } = this.fields;
    return !byName.has(name) && isComplete && !misspelt.has(name);
  }

  /** The map under a name; undefined where it is left out, or wrong and reported. */
  block(name: string, shape: Shape): Block | undefined {
    const field = this.field(name);
    const place = field && this.reader.required(field, `${shape.title}; {} for what is usual`);
    return place && Block.at(this.reader, place, shape);
  }

  /** Whether a name says `off` instead of a map; another word is reported. */
  isOff(name: string): boolean {
    const field = this.field(name);
    if (field?.value === undefined || isMap(this.reader.contentOf(field))) return false;
    const expected = "a map of names, or off";
    return this.choice(name, { usual: "off", words: ["off"], expected }) === "off";
  }

  /** The map under a name, or that it is switched off; undefined as in `block`. */
  blockOrOff(name: string, shape: Shape): Block | "off" | undefined {
    const field = this.field(name);
    if (field?.value === undefined || isMap(this.reader.contentOf(field))) {
      return this.block(name, shape);
    }
    return this.isOff(name) ? "off" : undefined;
  }

  /** A whole number. */
  whole<Usual extends number | undefined>(
    name: string,
    usual: Usual,
    bounds: { readonly min: number; readonly max: number },
  ): number | Usual {
    const field = this.field(name);
    return (field && this.reader.readWhole(field, bounds)) ?? usual;
  }

  /** A number that may have a fraction. */
  number<Usual extends number | undefined>(
    name: string,
    usual: Usual,
    bounds: NumberBounds,
  ): number | Usual {
    const field = this.field(name);
    return (field && readNumber(this.reader, field, bounds)) ?? usual;
  }

  /** A duration, in milliseconds. */
  durationMs<Usual extends number | undefined>(
    name: string,
    usual: Usual,
    bounds: DurationBounds,
  ): number | Usual {
    const field = this.field(name);
    return (field && readDuration(this.reader, field, bounds)) ?? usual;
  }

  /** A quantity of bytes, such as `512Mi`. */
  bytes<Usual extends number | undefined>(
    name: string,
    usual: Usual,
    bounds: NumberBounds,
  ): number | Usual {
    const field = this.field(name);
    return (field && readBytes(this.reader, field, bounds)) ?? usual;
  }

  /** A duration, or a multiple of the service time. */
  waitBound(name: string, bounds: DurationBounds): WaitBound | undefined {
    const field = this.field(name);
    return field && readWaitBound(this.reader, field, bounds);
  }

  /** True or false; usually false. */
  flag(name: string): boolean {
    const field = this.field(name);
    return field !== undefined && this.reader.readFlag(field, "headgate") === true;
  }

  /** One of a few words. */
  choice<Word extends string>(name: string, { usual, words, expected }: Choice<Word>): Word {
    const field = this.field(name);
    const finding = { id: "HG133", what: "a choice here", expected } as const;
    return (field && this.reader.readChoice(field, words, finding)) ?? usual;
  }

  /** A list of different words out of a few. */
  words<Word extends string>(
    name: string,
    usual: readonly Word[],
    choices: readonly Word[],
  ): readonly Word[] {
    const field = this.field(name);
    const expected = `a list of ${listWords(choices)}`;
    const items = field && this.reader.readList(field, expected);
    if (field === undefined || items === undefined) return usual;
    const what = "a choice here";
    const found = new Set<Word>();
    for (const item of items) {
      const word = this.reader.readChoice(itemField(field, item, this.reader), choices, {
        id: "HG133",
        what,
      });
      if (word !== undefined) found.add(word);
    }
    return [...found];
  }

  /** A text; undefined where it is left out. */
  text(name: string, rule: TextRule): string | undefined {
    const field = this.field(name);
    return field && this.reader.readText(field, rule);
  }

  /** A list of single values, each with its place; empty where it is left out. */
  items(name: string, expected: string, countMax: number): readonly Field[] {
    const field = this.field(name);
    const items = field && this.reader.readList(field, expected);
    if (field === undefined || items === undefined) return [];
    if (items.length > countMax) {
      const message = `${quoteText(name)} cannot hold more than ${countMax} items`;
      this.reader.report(field.key, { id: "HG160", message });
      return [];
    }
    return items.map((item) => itemField(field, item, this.reader));
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

/** An item of a list as if it had a name: that of the list. */
function itemField(list: Field, item: ParsedNode, reader: NodeReader): Field {
  const content = reader.contentAt(item);
  const isEmpty = content !== undefined && kindOf(content) === "empty";
  return { name: list.name, key: item, value: isEmpty ? undefined : item };
}
