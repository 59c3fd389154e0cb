/**
 * Names to search for in bytes, compiled once. No text is created of unwanted names, which are most
 * of those in a request.
 */
export class WantedNames {
  readonly #byLength: readonly (readonly WantedName[] | undefined)[];

  /** @param names compared byte by byte, in UTF-8 */
  constructor(names: ReadonlySet<string>) {
    const byLength: WantedName[][] = [];
    for (const name of names) {
      const bytes = Buffer.from(name, "utf8");
      const sameLength = byLength[bytes.length] ?? [];
      sameLength.push({ name, bytes });
      byLength[bytes.length] = sameLength;
    }
    this.#byLength = byLength;
  }

  /** Returns the name between `start` and `end`. Undefined if it is not wanted. */
  find(bytes: Buffer, start: number, end: number): string | undefined {
    const candidates = this.#byLength[end - start];
    if (candidates === undefined) return undefined;
    for (const candidate of candidates) {
      if (isAt(candidate.bytes, bytes, start)) return candidate.name;
    }
    return undefined;
  }
}

interface WantedName {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Compares from the end, where names of equal length differ sooner (`x-envoy-...`). */
function isAt(wanted: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = wanted.length - 1; i >= 0; i -= 1) {
    if (wanted[i] !== bytes[start + i]) return false;
  }
  return true;
}
