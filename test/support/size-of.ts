/** What something takes in memory, about, and how many objects, lists and texts it is made of. */
export interface Size {
  readonly bytes: number;
  readonly objectCount: number;
}

/** Texts from this length on are counted once: who says one again says the same. */
const sharedCharsMin = 64;

/** A view of bytes that stand elsewhere, which are counted where they are no part of the input. */
const viewBytes = 104;

/**
 * About what a value takes on V8's heap of a 64-bit build without compressed pointers; what stands
 * in it twice takes its place once. Lists that were filled by `push` have room for half as much
 * again. `npm run bench -- --decoders` holds it against the true heap.
 *
 * Source: V8, src/objects: a header of three words and a word a property; a text has two words and
 * its characters, a number that is no small whole one two words, a map room for a power of two.
 *
 * @param input bytes that the value was made of: views of them are no copies
 */
export function measureSize(value: unknown, input?: Uint8Array): Size {
  const seen = new Set<unknown>(input === undefined ? [] : [input.buffer]);
  const left: unknown[] = [value];
  let bytes = 0;
  let objectCount = 0;
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === "number") bytes += isSmall(one) ? 0 : 16;
    else if (typeof one === "bigint") bytes += 24;
    if ((typeof one !== "string" && typeof one !== "object") || one === null || seen.has(one)) {
      continue;
    }
    // Of no characters or one, V8 has each text once.
    if (typeof one === "string" && one.length < 2) continue;
    objectCount += 1;
    if (typeof one !== "string" || one.length >= sharedCharsMin) seen.add(one);
    bytes += ownBytes(one, left, seen);
  }
  return { bytes, objectCount };
}

/** See `measureSize`. */
export function sizeOf(value: unknown, input?: Uint8Array): number {
  return measureSize(value, input).bytes;
}

/** What an object or a text takes by itself; what is in it is put on the list. */
function ownBytes(one: object | string, left: unknown[], seen: Set<unknown>): number {
  if (typeof one === "string") return 24 + (isLatin1(one) ? 1 : 2) * one.length;
  if (ArrayBuffer.isView(one)) {
    if (seen.has(one.buffer)) return viewBytes;
    seen.add(one.buffer);
    return viewBytes + one.byteLength;
  }
  if (Array.isArray(one)) {
    pushAll(left, one);
    return one.length === 0 ? 32 : 48 + 12 * one.length;
  }
  if (one instanceof Map || one instanceof Set) {
    for (const entry of one instanceof Map ? one : one.values()) {
      if (Array.isArray(entry)) pushAll(left, entry);
      else left.push(entry);
    }
    return 80 + 28 * 2 ** Math.ceil(Math.log2(Math.max(4, one.size)));
  }
  if (!("$typeName" in one)) {
    const values = Object.values(one);
    pushAll(left, values);
    return 24 + 8 * values.length;
  }
  const entries = Object.entries(one);
  // All messages of a type have the one name of it, and about two words of room each.
  for (const [key, value] of entries) if (key !== "$typeName") left.push(value);
  return 40 + 8 * entries.length;
}

function pushAll(left: unknown[], values: readonly unknown[]): void {
  for (const value of values) left.push(value);
}

/** A whole number that stands in the word itself. */
function isSmall(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

function isLatin1(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of one byte are meant
  return /^[\u0000-\u00ff]*$/.test(text);
}
