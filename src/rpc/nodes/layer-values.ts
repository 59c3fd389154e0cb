import type { LayerValue } from "./layer-ledger.js";

/**
 * The keys of a layer in their order. Successive layers with the same keys share one object, so
 * that what is derived from the keys is derived once.
 */
class LayerKeys {
  readonly names: readonly string[];
  #places: ReadonlyMap<string, number> | undefined;
  #encoded: EncodedKeys | undefined;

  constructor(names: readonly string[]) {
    this.names = names;
  }

  /** The position of each key. */
  get places(): ReadonlyMap<string, number> {
    this.#places ??= new Map(this.names.map((name, place) => [name, place]));
    return this.#places;
  }

  /** Returns the encoding of the keys, which all their layers share. Created once. */
  encoded(encode: () => EncodedKeys): EncodedKeys {
    this.#encoded ??= encode();
    return this.#encoded;
  }
}

/** A message with the values of one layer, which those of other layers overwrite. */
export interface EncodedKeys {
  readonly bytes: Uint8Array;
  /** The position of each value: eight bytes of a number, or one of a boolean. */
  readonly places: readonly number[];
  readonly areFlags: readonly boolean[];
}

/** Values by key. A `Map` takes four times the memory, and is created for each Envoy. */
export class LayerValues<Value extends LayerValue> implements ReadonlyMap<string, Value> {
  /** The keys, all different. */
  readonly known: LayerKeys;
  /** The values, in the order of the keys. */
  readonly list: readonly Value[];

  constructor(known: LayerKeys, list: readonly Value[]) {
    this.known = known;
    this.list = list;
  }

  get size(): number {
    return this.list.length;
  }

  get(key: string): Value | undefined {
    const place = this.known.places.get(key);
    return place === undefined ? undefined : this.list[place];
  }

  has(key: string): boolean {
    return this.known.places.has(key);
  }

  forEach(callback: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void): void {
    for (const [key, value] of this) callback(value, key, this);
  }

  keys(): MapIterator<string> {
    return this.known.names.values();
  }

  values(): MapIterator<Value> {
    return this.list.values();
  }

  *entries(): MapIterator<[string, Value]> {
    const { names } = this.known;
    for (const [place, value] of this.list.entries()) yield [names[place] ?? "", value];
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries();
  }
}

/** Collects the values of a layer. */
export class LayerBuilder<Value extends LayerValue> {
  readonly #list: Value[] = [];
  readonly #likely: LayerKeys | undefined;
  /** Undefined as long as all keys are those of the likely layer. */
  #names: string[] | undefined;

  /** @param likely a layer that probably has the same keys */
  constructor(likely?: ReadonlyMap<string, Value>) {
    this.#likely = likely instanceof LayerValues ? likely.known : undefined;
  }

  /** @param key that was not set before */
  set(key: string, value: Value): void {
    const place = this.#list.length;
    this.#list.push(value);
    if (this.#names === undefined) {
      const likely = this.#likely?.names ?? [];
      if (likely[place] === key) return;
      this.#names = likely.slice(0, place);
    }
    this.#names.push(key);
  }

  finish(): ReadonlyMap<string, Value> {
    const { length } = this.#list;
    if (length === 0) return new Map();
    const likely = this.#likely;
    const isLikely = this.#names === undefined && likely?.names.length === length;
    if (isLikely) return new LayerValues(likely, this.#list);
    const names = this.#names ?? likely?.names.slice(0, length) ?? [];
    return new LayerValues(new LayerKeys(names), this.#list);
  }
}

/** Whether two layers have the same values. */
export function areSameValues(
  one: ReadonlyMap<string, LayerValue>,
  other: ReadonlyMap<string, LayerValue>,
): boolean {
  if (one.size !== other.size) return false;
  if (one instanceof LayerValues && other instanceof LayerValues && one.known === other.known) {
    const others: readonly LayerValue[] = other.list;
    return one.list.every((value: LayerValue, place) => value === others[place]);
  }
  for (const [key, value] of one) if (other.get(key) !== value) return false;
  return true;
}
