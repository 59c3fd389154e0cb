/**
 * Maximum memory for cached names, with the overhead of their entries: 50,000 names of 100 bytes.
 * When it is exceeded, the cache is cleared.
 */
export const keptNamesBytesMax = 16_777_216;

/** Approximate overhead of an entry besides its name. */
const entryBytes = 200;

/** Names longer than this are ignored; those of clusters and listeners are shorter. */
export const nameBytesMax = 1_024;

/** The number of bytes at the end of a name that are compared first. */
const endBytes = 8;

interface KeptName<Meaning> {
  readonly bytes: Uint8Array;
  readonly meaning: Meaning | undefined;
  /** The name that came after it last. Undefined if unknown, and once it is no longer kept. */
  next: KeptName<Meaning> | undefined;
  isDropped: boolean;
}

/** Slots for hashes of endings: four times as many as there are, so that most hold one or none. */
const endSlotCount = 64;

/**
 * Caches the meaning of statistic names by their bytes. An Envoy sends the same hundreds of names
 * every second, most of which are irrelevant. Decoding each as text was the largest part of the
 * cost. It sends them in the same order too, so the name that followed last time is compared first.
 */
export class NameTable<Meaning> {
  readonly #read: (name: string) => Meaning | undefined;
  readonly #ends: readonly (readonly number[])[];
  /** By a hash of the name. Of two names with the same hash, the later one is kept. */
  readonly #kept = new Map<number, KeptName<Meaning>>();
  #keptBytes = 0;
  #last: KeptName<Meaning> | undefined;

  /**
   * @param ends the endings of relevant names, each at least eight bytes long
   * @param read returns the meaning of a name; undefined if it is irrelevant
   */
  constructor(ends: Iterable<string>, read: (name: string) => Meaning | undefined) {
    this.#read = read;
    const hashes = [...new Set([...ends].map(endOf))];
    this.#ends = Array.from({ length: endSlotCount }, (_, slot) =>
      hashes.filter((hash) => slotOf(hash) === slot),
    );
  }

  get keptCount(): number {
    return this.#kept.size;
  }

  /** Whether a name that ends here may be relevant. */
  isWantedEnd(bytes: Uint8Array, end: number): boolean {
    const hash = endHash(bytes, end);
    return this.#ends[slotOf(hash)]?.includes(hash) === true;
  }

  /** Returns the meaning of the name in these bytes. A bound function that can be passed on. */
  readonly find = (bytes: Uint8Array, start: number, end: number): Meaning | undefined => {
    const byteCount = end - start;
    const last = this.#last;
    const next = last?.next;
    if (next?.bytes.length === byteCount && isAt(next.bytes, bytes, start)) {
      this.#last = next;
      return next.meaning;
    }
    if (byteCount < endBytes || byteCount > nameBytesMax) return undefined;
    if (!this.isWantedEnd(bytes, end)) return undefined;
    const found = this.#look(bytes, start, end);
    if (last !== undefined && !last.isDropped) last.next = found;
    this.#last = found;
    return found.meaning;
  };

  #look(bytes: Uint8Array, start: number, end: number): KeptName<Meaning> {
    const hash = hashOf(bytes, start, end);
    const kept = this.#kept.get(hash);
    if (kept?.bytes.length === end - start && isAt(kept.bytes, bytes, start)) return kept;
    const own = bytes.slice(start, end);
    const meaning = this.#read(Buffer.from(own).toString());
    const name = { bytes: own, meaning, next: undefined, isDropped: false };
    this.#keep(hash, name);
    return name;
  }

  #keep(hash: number, name: KeptName<Meaning>): void {
    const before = this.#kept.get(hash);
    const bytes = entryBytes + name.bytes.length;
    this.#keptBytes += bytes - (before === undefined ? 0 : entryBytes + before.bytes.length);
    if (before !== undefined) drop(before);
    if (this.#keptBytes > keptNamesBytesMax) {
      for (const one of this.#kept.values()) drop(one);
      this.#kept.clear();
      this.#keptBytes = bytes;
    }
    this.#kept.set(hash, name);
  }
}

/** Else names that are no longer kept would hold each other, one after the other. */
function drop(name: KeptName<unknown>): void {
  name.next = undefined;
  name.isDropped = true;
}

function slotOf(hash: number): number {
  return hash & (endSlotCount - 1);
}

function endOf(name: string): number {
  const bytes = Buffer.from(name);
  if (bytes.length < endBytes) throw new Error(`${name} is too short an end of names`);
  return endHash(bytes, bytes.length);
}

function endHash(bytes: Uint8Array, end: number): number {
  return Math.imul(wordAt(bytes, end - endBytes), 0x9e3779b1) ^ wordAt(bytes, end - 4);
}

/** FNV-1a over words, because it runs a hundred thousand times per second. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = Math.imul(0x811c9dc5 ^ (end - start), 0x01000193);
  let at = start;
  for (; at + 4 <= end; at += 4) hash = mixed(hash ^ wordAt(bytes, at));
  for (; at < end; at += 1) hash = mixed(hash ^ (bytes[at] ?? 0));
  return hash;
}

/** Words of text differ in their low bits, which a multiplication alone does not mix downwards. */
function mixed(hash: number): number {
  const product = Math.imul(hash, 0x01000193);
  return product ^ (product >>> 15);
}

function wordAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
  return low | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
}

/** Whether the cached name is at this position. Its length has been compared before. */
function isAt(kept: Uint8Array, bytes: Uint8Array, start: number): boolean {
  for (let i = 0; i < kept.length; i += 1) if (kept[i] !== bytes[start + i]) return false;
  return true;
}
