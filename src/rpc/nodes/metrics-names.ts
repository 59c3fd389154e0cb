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
  readonly byteCount: number;
  /** Its bytes as words of four. The last word overlaps if the length is not a multiple. */
  readonly words: Int32Array;
  readonly meaning: Meaning | undefined;
  /** The name that came after it last. Undefined if unknown, and once it is no longer kept. */
  next: KeptName<Meaning> | undefined;
  isDropped: boolean;
}

/** Slots for hashes of endings: four times as many as endings, so that most hold one or none. */
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
  isWantedEnd(bytes: DataView, end: number): boolean {
    const hash = endHash(bytes, end);
    return this.#ends[slotOf(hash)]?.includes(hash) === true;
  }

  /** Returns the meaning of the name in these bytes. */
  find(bytes: DataView, start: number, end: number): Meaning | undefined {
    const byteCount = end - start;
    const last = this.#last;
    const next = last?.next;
    if (next?.byteCount === byteCount && isAt(next, bytes, start)) {
      this.#last = next;
      return next.meaning;
    }
    if (byteCount < endBytes || byteCount > nameBytesMax) return undefined;
    if (!this.isWantedEnd(bytes, end)) return undefined;
    const found = this.#look(bytes, start, end);
    if (last !== undefined && !last.isDropped) last.next = found;
    this.#last = found;
    return found.meaning;
  }

  #look(bytes: DataView, start: number, end: number): KeptName<Meaning> {
    const hash = hashOf(bytes, start, end);
    const kept = this.#kept.get(hash);
    const byteCount = end - start;
    if (kept?.byteCount === byteCount && isAt(kept, bytes, start)) return kept;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, byteCount).toString();
    const meaning = this.#read(text);
    // A copy: the memory of a message is used again for the next one.
    const words = wordsOf(bytes, start, end);
    const name = { byteCount, words, meaning, next: undefined, isDropped: false };
    this.#keep(hash, name);
    return name;
  }

  #keep(hash: number, name: KeptName<Meaning>): void {
    const before = this.#kept.get(hash);
    const bytes = entryBytes + name.byteCount;
    this.#keptBytes += bytes - (before === undefined ? 0 : entryBytes + before.byteCount);
    if (before !== undefined) drop(before);
    if (this.#keptBytes > keptNamesBytesMax) {
      for (const one of this.#kept.values()) drop(one);
      this.#kept.clear();
      this.#keptBytes = bytes;
    }
    this.#kept.set(hash, name);
  }
}

/** Unlinks a name, because dropped names would otherwise keep each other in memory. */
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
  return endHash(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), bytes.length);
}

function endHash(bytes: DataView, end: number): number {
  const first = bytes.getInt32(end - endBytes, true);
  return Math.imul(first, 0x9e3779b1) ^ bytes.getInt32(end - wordBytes, true);
}

/** Bytes of a word. It is read as fast as a single byte, and a name has only ten of them. */
const wordBytes = 4;

function wordsOf(bytes: DataView, start: number, end: number): Int32Array {
  const words = new Int32Array(Math.ceil((end - start) / wordBytes));
  const last = end - wordBytes;
  for (let i = 0; i < words.length; i += 1) {
    words[i] = bytes.getInt32(Math.min(start + i * wordBytes, last), true);
  }
  return words;
}

/** FNV-1a over words. */
function hashOf(bytes: DataView, start: number, end: number): number {
  let hash = Math.imul(0x811c9dc5 ^ (end - start), 0x01000193);
  const last = end - wordBytes;
  for (let at = start; at < last; at += wordBytes) {
    hash = mixed(hash ^ bytes.getInt32(at, true));
  }
  return mixed(hash ^ bytes.getInt32(last, true));
}

/** Words of text differ in their low bits, which a multiplication alone does not mix downwards. */
function mixed(hash: number): number {
  const product = Math.imul(hash, 0x01000193);
  return product ^ (product >>> 15);
}

/**
 * Whether the cached name is at this position. Its length has been compared before. Backwards: the
 * names of one cluster differ at their ends.
 */
function isAt({ words, byteCount }: KeptName<unknown>, bytes: DataView, start: number): boolean {
  let i = words.length - 1;
  if (bytes.getInt32(start + byteCount - wordBytes, true) !== words[i]) return false;
  for (i -= 1; i >= 0; i -= 1) {
    if (bytes.getInt32(start + i * wordBytes, true) !== words[i]) return false;
  }
  return true;
}
