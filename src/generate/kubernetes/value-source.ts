import { assert } from "../../core/base/errors.js";
import type { Tree, TreeMap } from "../base/document.js";
import { type ValueName, type ValueNameOf, valueNames, valueRow } from "./value-rows.js";

/** What an installation chooses: one value for each row. */
export type KubernetesValues = ReadonlyMap<ValueName, Tree>;

type ScalarName = ValueNameOf<"text" | "number">;
type CollectionName = ValueNameOf<"texts" | "map" | "list">;

/**
 * Where the trees of objects get what installations differ in. The plain manifests and the chart
 * come from the same trees: one source answers with values, the other one with what makes Helm put
 * them there.
 */
export interface ValueSource {
  readonly namespace: Tree;
  /** Text between other text: `text("name", "@-pods")` is `headgate-pods`. Default as it is. */
  text(name: ScalarName, around?: string): Tree;
  /** Several texts, one for each `@`; `\\@` is the character itself. */
  joined(around: string, names: readonly ScalarName[]): Tree;
  /** The first where the condition holds, else the second. */
  either(condition: ValueCondition, trees: readonly [Tree, Tree]): Tree;
  /** The DNS name of a Service whose own name is `around` the installation's. */
  serviceHost(around: string): Tree;
  number(name: ValueNameOf<"number">): Tree;
  /** Half of a number, rounded down, between other text. */
  half(name: ValueNameOf<"number">, around: string): Tree;
  /** Whole seconds of several numbers of milliseconds, rounded up, and more seconds. */
  seconds(names: readonly ValueNameOf<"number">[], moreSeconds: number): Tree;
  /** A map or a list as it is. */
  collection(name: CollectionName): Tree;
  /** Names and values that are there only if. */
  mapIf(condition: ValueCondition, map: TreeMap): TreeMap;
  /** Items that are there only if. */
  listIf(condition: ValueCondition, items: readonly Tree[]): readonly Tree[];
  /** All items of a list, among others. */
  itemsOf(name: ValueNameOf<"list">): readonly Tree[];
  /** All names of a map, among others. */
  entriesOf(name: ValueNameOf<"texts" | "map">): TreeMap;
}

/** A switch that is on, or a text, map or list that is not empty; or the opposite. */
export interface ValueCondition {
  readonly name: ValueName;
  readonly isNot?: boolean;
}

/** The default values of the rows, and what is given in their place. */
export function valuesWith(given: Readonly<Partial<Record<ValueName, Tree>>>): KubernetesValues {
  return new Map(valueNames.map((name) => [name, given[name] ?? valueRow(name).defaultValue]));
}

/** Whether a condition holds: nothing, zero, and what is empty do not, as Helm has it. */
export function holds({ name, isNot = false }: ValueCondition, values: KubernetesValues): boolean {
  const value = values.get(name);
  const isThere =
    typeof value === "object" ? Object.keys(value).length > 0 : value !== undefined && !!value;
  return isThere !== isNot;
}

/** Answers with values themselves. */
export class LiteralSource implements ValueSource {
  readonly namespace: string;
  readonly #values: KubernetesValues;

  constructor(namespace: string, values: KubernetesValues) {
    this.namespace = namespace;
    this.#values = values;
  }

  text(name: ScalarName, around = "@"): Tree {
    return this.joined(around, [name]);
  }

  joined(around: string, names: readonly ScalarName[]): Tree {
    const texts = names.map((name) => String(this.#value(name)));
    return fillIn(around, () => texts.shift() ?? "");
  }

  either(condition: ValueCondition, [first, second]: readonly [Tree, Tree]): Tree {
    return holds(condition, this.#values) ? first : second;
  }

  serviceHost(around: string): Tree {
    return this.text("name", `${around}.${this.namespace}.svc.cluster.local`);
  }

  number(name: ValueNameOf<"number">): number {
    return Number(this.#value(name));
  }

  half(name: ValueNameOf<"number">, around: string): Tree {
    return around.replace("@", () => String(Math.floor(this.number(name) / 2)));
  }

  seconds(names: readonly ValueNameOf<"number">[], moreSeconds: number): Tree {
    const sumMs = names.reduce((sum, name) => sum + this.number(name), 0);
    return Math.ceil(sumMs / 1_000) + moreSeconds;
  }

  collection(name: CollectionName): Tree {
    return this.#value(name);
  }

  mapIf(condition: ValueCondition, map: TreeMap): TreeMap {
    return holds(condition, this.#values) ? map : {};
  }

  listIf(condition: ValueCondition, items: readonly Tree[]): readonly Tree[] {
    return holds(condition, this.#values) ? items : [];
  }

  itemsOf(name: ValueNameOf<"list">): readonly Tree[] {
    const value = this.#value(name);
    return Array.isArray(value) ? value : [];
  }

  entriesOf(name: ValueNameOf<"texts" | "map">): TreeMap {
    return Object.fromEntries(Object.entries(this.#value(name)));
  }

  #value(name: ValueName): Tree {
    const value = this.#values.get(name);
    assert(value !== undefined, "every row has a value");
    return value;
  }
}

/** Puts a text in the place of each `@`; `\\@` becomes the character itself. */
export function fillIn(around: string, next: () => string): string {
  return around.replaceAll(/\\?@/g, (found) => (found === "@" ? next() : "@"));
}
