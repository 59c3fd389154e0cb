import { assert } from "../../core/base/errors.js";
import type { Tree, TreeMap } from "../base/document.js";
import { type ValueName, type ValueNameOf, valueNames, valueRow } from "./value-rows.js";

/** The choices of an installation: one value for each row. */
export type KubernetesValues = ReadonlyMap<ValueName, Tree>;

type ScalarName = ValueNameOf<"text" | "number">;
type CollectionName = ValueNameOf<"texts" | "map" | "list">;

/**
 * Source of the values in which installations differ. Plain manifests and the chart are built from
 * the same trees: one source returns values, the other returns Helm actions that insert them.
 */
export interface ValueSource {
  readonly namespace: Tree;
  /** Returns a value in other text: `text("name", "@-pods")` is `headgate-pods`. Default `@`. */
  text(name: ScalarName, around?: string): Tree;
  /** Returns text with several values, one for each `@`. `\\@` is the character itself. */
  joined(around: string, names: readonly ScalarName[]): Tree;
  /** Returns the first tree if the condition is true, otherwise the second. */
  either(condition: ValueCondition, trees: readonly [Tree, Tree]): Tree;
  /** Returns the DNS name of a Service whose name is `around` the installation's. */
  serviceHost(around: string): Tree;
  number(name: ValueNameOf<"number">): Tree;
  /** Returns half of a number, rounded down, within other text. */
  half(name: ValueNameOf<"number">, around: string): Tree;
  /** Returns the sum of numbers of milliseconds in seconds, rounded up, plus more seconds. */
  seconds(names: readonly ValueNameOf<"number">[], moreSeconds: number): Tree;
  /** Returns a map or a list unchanged. */
  collection(name: CollectionName): Tree;
  /** Returns the map if the condition is true, otherwise an empty map. */
  mapIf(condition: ValueCondition, map: TreeMap): TreeMap;
  /** Returns the items if the condition is true, otherwise an empty list. */
  listIf(condition: ValueCondition, items: readonly Tree[]): readonly Tree[];
  /** Returns all items of a list, to be placed among others. */
  itemsOf(name: ValueNameOf<"list">): readonly Tree[];
  /** Returns all entries of a map, to be placed among others. */
  entriesOf(name: ValueNameOf<"texts" | "map">): TreeMap;
}

/** A switch that is on, or a text, map or list that is not empty; or the opposite. */
export interface ValueCondition {
  readonly name: ValueName;
  readonly isNot?: boolean;
}

/** Returns the default values of the rows, replaced by the given values. */
export function valuesWith(given: Readonly<Partial<Record<ValueName, Tree>>>): KubernetesValues {
  return new Map(valueNames.map((name) => [name, given[name] ?? valueRow(name).defaultValue]));
}

/** Evaluates a condition as Helm does: undefined, zero and empty values are false. */
export function holds({ name, isNot = false }: ValueCondition, values: KubernetesValues): boolean {
  const value = values.get(name);
  const isThere =
    typeof value === "object" ? Object.keys(value).length > 0 : value !== undefined && !!value;
  return isThere !== isNot;
}

/** Returns the values themselves. */
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

/** Replaces each `@` with a text. `\\@` becomes the character itself. */
export function fillIn(around: string, next: () => string): string {
  return around.replaceAll(/\\?@/g, (found) => (found === "@" ? next() : "@"));
}
