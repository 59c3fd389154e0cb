import { blanksEnd, colon, comma, openBrace, plainTextEnd, quote } from "./json-scan.js";
import { type LogLine, viewOf } from "./log-line.js";

/** Leads that are remembered in their order; of lines with more of them it begins anew. */
export const orderedLeadsMax = 256;

/** So many leads may be missing in a line at once: programs leave out what they do not know. */
export const missedLeadsMax = 16;

const wordBytes = 4;

/** What stands before a value, from the one before on: `,"method":"`, or without the last quote. */
export interface JsonLead {
  /** Of the key among the names; undefined: nobody asks for it. */
  readonly place: number | undefined;
  readonly isOfText: boolean;
  /** A brace begins the first lead of a line, a comma every other one. */
  readonly isFirst: boolean;
  /** In bytes, at least `wordBytes`. */
  readonly size: number;
  /** The bytes, four at a time, and the last four. */
  readonly words: Int32Array;
  readonly lastWord: number;
}

/**
 * What stands between the values of lines, found again where it stood in the lines before: programs
 * write keys in the same order, with the same blanks.
 */
export class JsonLeads {
  readonly #places: ReadonlyMap<string, number>;
  #order: JsonLead[] = [];
  /** Where in the order the next lead is looked for. */
  #turn = 0;

  constructor(names: readonly string[]) {
    this.#places = new Map(names.map((name, place) => [name, place]));
  }

  /** How many are remembered now. */
  get size(): number {
    return this.#order.length;
  }

  /** Another line begins. */
  begin(): void {
    this.#turn = 0;
  }

  /** The lead at a place of a line; undefined: none that is plain. */
  next(line: LogLine, start: number): JsonLead | undefined {
    const last = Math.min(this.#order.length, this.#turn + missedLeadsMax);
    for (let i = this.#turn; i < last; i += 1) {
      const usual = this.#order[i];
      if (usual === undefined || !isLeadAt(usual, line, start)) continue;
      this.#turn = i + 1;
      return usual;
    }
    const lead = readLead(line, start, this.#places);
    if (lead === undefined) return undefined;
    if (this.#order.length >= orderedLeadsMax) this.#order = [];
    this.#order.splice(this.#turn, 0, lead);
    this.#turn += 1;
    return lead;
  }
}

function isLeadAt(lead: JsonLead, line: LogLine, start: number): boolean {
  const { size, words, lastWord } = lead;
  const { view, bytes, end } = line;
  if (lead.isFirst !== (start === line.start)) return false;
  // Behind it there is at least a byte more, which begins a value.
  if (start + size >= end) return false;
  let at = start;
  for (let i = 0; i < words.length; i += 1) {
    if (view.getInt32(at) !== words[i]) return false;
    at += wordBytes;
  }
  if (view.getInt32(start + size - wordBytes) !== lastWord) return false;
  // Where there was a number before, there may be a text now.
  return lead.isOfText || bytes[start + size] !== quote;
}

/** Reads a lead by its characters: the first one of a line begins with a brace. */
function readLead(
  line: LogLine,
  start: number,
  places: ReadonlyMap<string, number>,
): JsonLead | undefined {
  const { bytes, end } = line;
  const isFirst = start === line.start;
  const mark = blanksEnd(line, start);
  if (bytes[mark] !== (isFirst ? openBrace : comma)) return undefined;
  const keyStart = blanksEnd(line, mark + 1);
  if (bytes[keyStart] !== quote) return undefined;
  const keyEnd = plainTextEnd(line, keyStart + 1);
  if (keyEnd === -1 || bytes[keyEnd + 1] !== colon) return undefined;
  const valueStart = blanksEnd(line, keyEnd + 2);
  if (valueStart >= end) return undefined;
  const isOfText = bytes[valueStart] === quote;
  const size = (isOfText ? valueStart + 1 : valueStart) - start;
  const own = viewOf(new Uint8Array(bytes.subarray(start, start + size)));
  return {
    place: places.get(bytes.toString("utf8", keyStart + 1, keyEnd)),
    isOfText,
    isFirst,
    size,
    words: Int32Array.from({ length: Math.floor(size / wordBytes) }, (_, i) => {
      return own.getInt32(wordBytes * i);
    }),
    lastWord: own.getInt32(size - wordBytes),
  };
}
