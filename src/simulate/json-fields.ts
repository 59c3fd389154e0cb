import { blanksEnd, closeBrace, plainTextEnd, plainWordEnd, quote } from "./json-scan.js";
import { JsonLeads } from "./key-prefixes.js";
import type { LineFields } from "./line-fields.js";
import { type LogLine, lineText } from "./log-line.js";

/** Where a value would begin that a line does not have. */
const nowhere = -1;

/**
 * JSON objects. A line as programs write it, flat and without escapes, is read by its bytes, and
 * only what is asked for becomes a text; whatever else a line holds, `JSON.parse` reads it.
 */
export class JsonFields implements LineFields {
  readonly #names: readonly string[];
  readonly #leads: JsonLeads;
  /** Where the values of a plain line stand, by their places; texts without their quotes. */
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;
  /** The texts that were made last, by their places: hosts, plans and flags are often the same. */
  readonly #texts: string[];
  #line: LogLine | undefined;
  /** What `JSON.parse` found in a line that is not plain. */
  #parsed: Readonly<Record<string, unknown>> | undefined;

  constructor(names: readonly string[]) {
    this.#names = names;
    this.#leads = new JsonLeads(names);
    this.#starts = new Int32Array(names.length);
    this.#ends = new Int32Array(names.length);
    this.#texts = names.map(() => "");
  }

  take(line: LogLine): boolean {
    this.#line = line;
    this.#parsed = undefined;
    this.#starts.fill(nowhere);
    if (this.#takePlain(line)) return true;
    this.#parsed = parseObject(lineText(line));
    return this.#parsed !== undefined;
  }

  value(place: number): string | undefined {
    if (this.#parsed !== undefined) return this.#parsedValue(this.#parsed, place);
    const start = this.#starts[place] ?? nowhere;
    if (this.#line === undefined || start === nowhere) return undefined;
    const { bytes } = this.#line;
    const end = this.#ends[place] ?? start;
    let value = this.#texts[place] ?? "";
    if (!isSaidAt(value, bytes, { start, end })) {
      value = bytes.toString("utf8", start, end);
      this.#texts[place] = value;
    }
    if (bytes[start - 1] === quote) return value;
    // A number as `JSON.parse` would tell it; a word says nothing.
    const number = Number(value);
    return Number.isNaN(number) ? undefined : String(number);
  }

  #parsedValue(fields: Readonly<Record<string, unknown>>, place: number): string | undefined {
    const part = fields[this.#names[place] ?? ""];
    return typeof part === "string" || typeof part === "number" ? String(part) : undefined;
  }

  /** False where something is not as plain as it takes it, or no JSON at all. */
  #takePlain(line: LogLine): boolean {
    const { bytes, end: lineEnd } = line;
    let at = line.start;
    this.#leads.begin();
    for (;;) {
      const lead = this.#leads.next(line, at);
      if (lead === undefined) return false;
      const start = at + lead.size;
      const end = lead.isOfText ? plainTextEnd(line, start) : plainWordEnd(line, start);
      if (end === -1) return false;
      if (lead.place !== undefined) {
        this.#starts[lead.place] = start;
        this.#ends[lead.place] = end;
      }
      at = blanksEnd(line, lead.isOfText ? end + 1 : end);
      if (bytes[at] === closeBrace && at < lineEnd) return at === lineEnd - 1;
    }
  }
}

/** Whether the bytes from a place to another are a text in ASCII. From behind: there ids differ. */
function isSaidAt(
  text: string,
  bytes: Uint8Array,
  { start, end }: { readonly start: number; readonly end: number },
): boolean {
  let i = text.length;
  if (i !== end - start) return false;
  while (i > 0) {
    i -= 1;
    const byte = bytes[start + i] ?? 0;
    if (byte >= 0x80 || text.charCodeAt(i) !== byte) return false;
  }
  return true;
}

function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What objects inherit is neither text nor number, so it passes for nothing here. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
