import { lineText } from "./log-line.js";
import { LogTimes } from "./log-times.js";
import {
  callerAddress,
  isLimited,
  type LineReader,
  type LoggedRequest,
  saidText,
  type WantedFacts,
} from "./logged-request.js";

/** What stands between two quoted parts. */
const between = '" "';
const [quote, blank] = [0x22, 0x20];

/** Unquoted parts behind the last quote of Istio's format: clusters, addresses, name and route. */
const istioTailCount = 6;
const istioAddressIndex = 3;

/** What the format says of a request, by the header that has it. */
const readers: ReadonlyMap<string, (line: TextLine) => string> = new Map([
  [":method", (line: TextLine) => line.method()],
  [":path", (line: TextLine) => line.path()],
  [":authority", (line: TextLine) => line.authority()],
  ["x-forwarded-for", (line: TextLine) => line.forwardedFor()],
  ["user-agent", (line: TextLine) => line.userAgent()],
  ["x-request-id", (line: TextLine) => line.requestId()],
]);

/**
 * Reads the text format that Envoy writes where nobody says otherwise, and Istio's default text.
 *
 * Callers may send quotes, and Envoy writes them as they are. So the quoted parts are told apart
 * from both ends: what is in between is the user agent, whatever it holds.
 *
 * Source: Envoy, "Access logging", default format string; Istio, "Getting Envoy's Access Logs".
 */
export function createTextReader({ headers, address }: WantedFacts): LineReader {
  const line = new TextLine();
  const times = new LogTimes();
  const wanted = headers.map((header) => readers.get(header));
  return (logLine): LoggedRequest | undefined => {
    if (!line.take(lineText(logLine))) return undefined;
    const timeUs = times.read(line.time());
    if (timeUs === undefined) return undefined;
    return {
      timeUs,
      wasLimited: isLimited(line.flags()),
      authority: saidText(line.authority()),
      address: address === "wanted" ? callerAddress(line.remoteAddress(), line.forwardedFor()) : "",
      headers: wanted.map((read) => (read === undefined ? "" : saidText(read(line)))),
    };
  };
}

/** A line at a time, as the places where its parts begin and end: few of them are ever made. */
class TextLine {
  #text = "";
  #timeEnd = 0;
  #methodEnd = 0;
  #pathEnd = 0;
  #flagsStart = 0;
  #flagsEnd = 0;
  /** Where the quoted parts begin, the opening quote passed. */
  #quotedStart = 0;
  /** The ends of the first quoted part, of the agent, of the id and of the authority. */
  #forwardedEnd = 0;
  #agentEnd = 0;
  #idEnd = 0;
  #authorityEnd = 0;
  #tail: readonly string[] = noTail;

  /** Takes a line; false for one of another format. */
  take(text: string): boolean {
    this.#text = text;
    this.#timeEnd = text.indexOf('] "');
    if (this.#timeEnd === -1 || !text.startsWith("[")) return false;
    const requestEnd = this.#takeRequest();
    const lastQuote = text.lastIndexOf('"');
    if (requestEnd === undefined || lastQuote < requestEnd) return false;
    const tail = lastQuote === text.length - 1 ? "" : text.slice(lastQuote + 1).trim();
    this.#tail = tail === "" ? noTail : tail.split(" ");
    if (this.#tail.length !== 0 && this.#tail.length !== istioTailCount) return false;
    const quote = firstQuote(text, requestEnd, this.#tail.length > 0);
    if (quote === -1 || !this.#takeQuoted(quote + 1, lastQuote)) return false;
    return this.#takeStatus(requestEnd, quote);
  }

  time(): string {
    return this.#text.slice(1, this.#timeEnd);
  }

  method(): string {
    return this.#text.slice(this.#timeEnd + between.length, this.#methodEnd);
  }

  path(): string {
    return this.#text.slice(this.#methodEnd + 1, this.#pathEnd);
  }

  flags(): string {
    return this.#text.slice(this.#flagsStart, this.#flagsEnd);
  }

  forwardedFor(): string {
    return this.#text.slice(this.#quotedStart, this.#forwardedEnd);
  }

  userAgent(): string {
    return this.#text.slice(this.#forwardedEnd + between.length, this.#agentEnd);
  }

  requestId(): string {
    return this.#text.slice(this.#agentEnd + between.length, this.#idEnd);
  }

  authority(): string {
    return this.#text.slice(this.#idEnd + between.length, this.#authorityEnd);
  }

  remoteAddress(): string {
    return this.#tail[istioAddressIndex] ?? "";
  }

  /** `"METHOD PATH PROTOCOL"`: a path holds no blank, and no quote. @returns what is behind it */
  #takeRequest(): number | undefined {
    const text = this.#text;
    const end = text.indexOf('"', this.#timeEnd + between.length);
    if (end === -1) return undefined;
    this.#methodEnd = text.indexOf(" ", this.#timeEnd + between.length);
    if (this.#methodEnd === -1 || this.#methodEnd >= end) return undefined;
    this.#pathEnd = text.indexOf(" ", this.#methodEnd + 1);
    if (this.#pathEnd === -1 || this.#pathEnd >= end) return undefined;
    // After the quote there is another blank, so that this looks no further than to it.
    const next = text.indexOf(" ", this.#pathEnd + 1);
    return next !== -1 && next < end ? undefined : end + 1;
  }

  /** Takes the quoted parts apart; false where there are fewer than five. */
  #takeQuoted(start: number, lastQuote: number): boolean {
    const text = this.#text;
    this.#quotedStart = start;
    this.#authorityEnd = lastBetween(text, start, lastQuote);
    this.#idEnd = lastBetween(text, start, this.#authorityEnd);
    this.#agentEnd = lastBetween(text, start, this.#idEnd);
    this.#forwardedEnd = text.indexOf(between, start);
    return this.#agentEnd !== -1 && this.#forwardedEnd + between.length <= this.#agentEnd;
  }

  /** Takes ` STATUS FLAGS`; false where the status is no number of at most three digits. */
  #takeStatus(start: number, end: number): boolean {
    const text = this.#text;
    let from = start;
    while (from < end && isSpace(text.charCodeAt(from))) from += 1;
    const statusEnd = endOfWord(text, from, end);
    const digits = statusEnd - from;
    if (digits < 1 || digits > 3) return false;
    for (let i = from; i < statusEnd; i += 1) {
      const digit = text.charCodeAt(i) - 0x30;
      if (digit < 0 || digit > 9) return false;
    }
    this.#flagsStart = Math.min(end, statusEnd + 1);
    this.#flagsEnd = endOfWord(text, this.#flagsStart, end);
    return true;
  }
}

const noTail: readonly string[] = [];

/** Where the callers' headers begin; Istio has one quoted part of its own before. */
function firstQuote(text: string, from: number, isIstio: boolean): number {
  const first = text.indexOf('"', from);
  if (!isIstio || first === -1) return first;
  const end = text.indexOf('"', first + 1);
  return end === -1 ? -1 : text.indexOf('"', end + 1);
}

/** A blank, or what moves to a column or a line. */
function isSpace(unit: number): boolean {
  return unit === blank || (unit >= 0x09 && unit <= 0x0d);
}

function endOfWord(text: string, start: number, end: number): number {
  const found = text.indexOf(" ", start);
  return found === -1 ? end : Math.min(end, found);
}

/** The last `between` that ends at a place or before it, and begins not before another; or -1. */
function lastBetween(text: string, start: number, end: number): number {
  for (let i = end - between.length; i >= start; i -= 1) {
    if (
      text.charCodeAt(i) === quote &&
      text.charCodeAt(i + 1) === blank &&
      text.charCodeAt(i + 2) === quote
    ) {
      return i;
    }
  }
  return -1;
}
