import type { NodeShare } from "./feedback.js";

/** Node names by place, and places by name. */
export class NodeNames {
  readonly names: readonly string[];
  #places: Map<string, number> | undefined;

  constructor(names: readonly string[]) {
    this.names = names;
  }

  /** Returns the place of a name, or undefined. The index is built on the first call. */
  placeOf(name: string): number | undefined {
    this.#places ??= new Map(this.names.map((one, place) => [one, place]));
    return this.#places.get(name);
  }
}

/** The columns of a `ShareTable`, of equal length. */
export interface ShareColumns {
  /** Places of the nodes, in ascending order. */
  readonly places: Uint32Array;
  readonly defaults: Uint32Array;
  readonly highs: Uint32Array;
}

/** All rows of a `ShareTable`, without an object for each of them. */
export interface ShareRows extends ShareColumns {
  /** By place. */
  readonly names: readonly string[];
}

function areSame(one: Uint32Array, other: Uint32Array): boolean {
  return one.every((value, i) => value === other[i]);
}

/**
 * Shares by node, in columns: a fleet has hundreds of thousands of new ones each second, and as
 * many objects would pause the process for garbage collection. Never modified.
 */
export class ShareTable implements ReadonlyMap<string, NodeShare> {
  readonly #names: NodeNames;
  readonly #columns: ShareColumns;

  constructor(names: NodeNames, columns: ShareColumns) {
    this.#names = names;
    this.#columns = columns;
  }

  /** Returns the next table, for the nodes given, or this one if nothing has changed. */
  next(nodeIds: readonly string[], { defaults, highs }: Omit<ShareColumns, "places">): ShareTable {
    const { names } = this.#names;
    const isOfSame = nodeIds.length === this.size && nodeIds.every((id, i) => id === names[i]);
    if (!isOfSame) {
      const places = Uint32Array.from(nodeIds.keys());
      return new ShareTable(new NodeNames(nodeIds), { places, defaults, highs });
    }
    const known = this.#columns;
    const isSame = areSame(defaults, known.defaults) && areSame(highs, known.highs);
    return isSame ? this : new ShareTable(this.#names, { places: known.places, defaults, highs });
  }

  get size(): number {
    return this.#columns.places.length;
  }

  has(nodeId: string): boolean {
    return this.#rowOf(nodeId) !== undefined;
  }

  get(nodeId: string): NodeShare | undefined {
    const row = this.#rowOf(nodeId);
    return row === undefined ? undefined : this.#share(row);
  }

  /** The columns as they are needed for writing: names by place, and shares by row. */
  get rows(): ShareRows {
    const { places, defaults, highs } = this.#columns;
    return { names: this.#names.names, places, defaults, highs };
  }

  *entries(): MapIterator<[string, NodeShare]> {
    for (let row = 0; row < this.size; row += 1) yield [this.#name(row), this.#share(row)];
  }

  *keys(): MapIterator<string> {
    for (let row = 0; row < this.size; row += 1) yield this.#name(row);
  }

  *values(): MapIterator<NodeShare> {
    for (let row = 0; row < this.size; row += 1) yield this.#share(row);
  }

  [Symbol.iterator](): MapIterator<[string, NodeShare]> {
    return this.entries();
  }

  forEach(call: (share: NodeShare, nodeId: string, all: this) => void): void {
    for (const [nodeId, share] of this) call(share, nodeId, this);
  }

  #name(row: number): string {
    return this.#names.names[this.#columns.places[row] ?? 0] ?? "";
  }

  #share(row: number): NodeShare {
    const { defaults, highs } = this.#columns;
    return { default: defaults[row] ?? 0, high: highs[row] ?? 0 };
  }

  #rowOf(nodeId: string): number | undefined {
    const place = this.#names.placeOf(nodeId);
    if (place === undefined) return undefined;
    const { places } = this.#columns;
    // If all nodes of the table have a share, the row of each is its place.
    if (places[place] === place) return place;
    let from = 0;
    let to = places.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((places[middle] ?? 0) < place) from = middle + 1;
      else to = middle;
    }
    return places[from] === place ? from : undefined;
  }
}

/** A table without nodes. */
export const noShares = new ShareTable(new NodeNames([]), {
  places: new Uint32Array(),
  defaults: new Uint32Array(),
  highs: new Uint32Array(),
});
