/** Bytes that each field counts in addition to its name and value. Source: RFC 7541, 4.1. */
export const fieldOverheadBytes = 32;

/** Fields that both sides know: 1 to 61. Source: RFC 7541, appendix A. */
const staticFields: readonly (readonly [name: string, value: string])[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language", ""],
  ["accept-ranges", ""],
  ["accept", ""],
  ["access-control-allow-origin", ""],
  ["age", ""],
  ["allow", ""],
  ["authorization", ""],
  ["cache-control", ""],
  ["content-disposition", ""],
  ["content-encoding", ""],
  ["content-language", ""],
  ["content-length", ""],
  ["content-location", ""],
  ["content-range", ""],
  ["content-type", ""],
  ["cookie", ""],
  ["date", ""],
  ["etag", ""],
  ["expect", ""],
  ["expires", ""],
  ["from", ""],
  ["host", ""],
  ["if-match", ""],
  ["if-modified-since", ""],
  ["if-none-match", ""],
  ["if-range", ""],
  ["if-unmodified-since", ""],
  ["last-modified", ""],
  ["link", ""],
  ["location", ""],
  ["max-forwards", ""],
  ["proxy-authenticate", ""],
  ["proxy-authorization", ""],
  ["range", ""],
  ["referer", ""],
  ["refresh", ""],
  ["retry-after", ""],
  ["server", ""],
  ["set-cookie", ""],
  ["strict-transport-security", ""],
  ["transfer-encoding", ""],
  ["user-agent", ""],
  ["vary", ""],
  ["via", ""],
  ["www-authenticate", ""],
];

// One array each, because a field is read by its index on every call.
const staticNames: readonly string[] = staticFields.map(([name]) => name);
const staticValues: readonly string[] = staticFields.map(([, value]) => value);

/** First position of a name among the static fields. Others of that name follow directly. */
const firstStatic: ReadonlyMap<string, number> = new Map(
  staticFields.map(([name], i) => [name, i] as const).reverse(),
);

/**
 * The fields that one side of a connection may refer to by an index: the static ones, then those of
 * the dynamic table, the youngest first. When full, it evicts the oldest.
 *
 * Source: RFC 7541, sections 2.3 and 4.
 */
export class HpackTable {
  /** A ring: the youngest field is at `#youngest`, and older ones follow. */
  readonly #names: string[];
  readonly #values: string[];
  readonly #mask: number;
  #youngest = 0;
  #fieldCount = 0;
  #bytes = 0;
  #limitBytes: number;
  #generation = 0;

  /** @param bytesMax maximum of `setLimit`, and the initial limit */
  constructor(bytesMax: number) {
    const fieldsMax = Math.floor(bytesMax / fieldOverheadBytes);
    let room = 1;
    while (room < fieldsMax) room *= 2;
    this.#names = new Array<string>(room).fill("");
    this.#values = new Array<string>(room).fill("");
    this.#mask = room - 1;
    this.#limitBytes = bytesMax;
  }

  /** Size of the dynamic table in bytes, as RFC 7541, section 4.1, counts it. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Maximum size of the dynamic table, in bytes. */
  get limitBytes(): number {
    return this.#limitBytes;
  }

  /** Changes whenever an index may refer to another field than before. */
  get generation(): number {
    return this.#generation;
  }

  /** Reports whether an index refers to a field. The smallest is 1. */
  has(index: number): boolean {
    return index > 0 && index <= staticNames.length + this.#fieldCount;
  }

  /** Returns the name of a field that the table has. */
  name(index: number): string {
    if (index <= staticNames.length) return staticNames[index - 1] ?? "";
    return this.#names[this.#place(index)] ?? "";
  }

  /** Returns the value of a field that the table has. */
  value(index: number): string {
    if (index <= staticValues.length) return staticValues[index - 1] ?? "";
    return this.#values[this.#place(index)] ?? "";
  }

  /** Adds a field as the youngest. A field that is larger than the limit leaves an empty table. */
  add(name: string, value: string): void {
    const bytes = name.length + value.length + fieldOverheadBytes;
    this.#generation += 1;
    this.#evict(this.#limitBytes - bytes);
    if (bytes > this.#limitBytes) return;
    this.#youngest = (this.#youngest - 1) & this.#mask;
    this.#names[this.#youngest] = name;
    this.#values[this.#youngest] = value;
    this.#fieldCount += 1;
    this.#bytes += bytes;
  }

  /** Sets the limit of the dynamic table, and evicts what does not fit. */
  setLimit(bytes: number): void {
    this.#generation += 1;
    this.#limitBytes = bytes;
    this.#evict(bytes);
  }

  /** Returns the index of a field. Undefined if the table has none with that name and value. */
  indexOf(name: string, value: string): number | undefined {
    const first = firstStatic.get(name);
    if (first !== undefined) {
      for (let i = first; staticNames[i] === name; i += 1) {
        if (staticValues[i] === value) return i + 1;
      }
    }
    for (let i = 0; i < this.#fieldCount; i += 1) {
      const place = (this.#youngest + i) & this.#mask;
      if (this.#names[place] !== name || this.#values[place] !== value) continue;
      return staticNames.length + i + 1;
    }
    return undefined;
  }

  /** Returns the index of a field with that name. Undefined if there is none. */
  indexOfName(name: string): number | undefined {
    const first = firstStatic.get(name);
    if (first !== undefined) return first + 1;
    for (let i = 0; i < this.#fieldCount; i += 1) {
      const place = (this.#youngest + i) & this.#mask;
      if (this.#names[place] === name) return staticNames.length + i + 1;
    }
    return undefined;
  }

  /** Returns the position of a dynamic index in the ring. */
  #place(index: number): number {
    return (this.#youngest + index - staticNames.length - 1) & this.#mask;
  }

  /** Evicts the oldest fields until at most this many bytes are left. */
  #evict(bytesMax: number): void {
    while (this.#bytes > bytesMax && this.#fieldCount > 0) {
      const oldest = (this.#youngest + this.#fieldCount - 1) & this.#mask;
      const bytes = (this.#names[oldest] ?? "").length + (this.#values[oldest] ?? "").length;
      this.#bytes -= bytes + fieldOverheadBytes;
      // What a caller sent must not stay in memory.
      this.#names[oldest] = "";
      this.#values[oldest] = "";
      this.#fieldCount -= 1;
    }
  }
}
