import { parseTimestampUs } from "../core/base/timestamp.js";
import {
  callerAddress,
  isLimited,
  type LineReader,
  type LoggedRequest,
  readTiming,
  saidText,
  type WantedFacts,
} from "./logged-request.js";
import {
  createCsvReader,
  createJsonReader,
  type NamedLogOptions,
  timeFields,
} from "./named-log.js";

/** Values of `--format`. */
export const logFormats = ["auto", "envoy", "json", "csv"] as const;

/** Format of a log; `auto`: that of its first readable line. */
export type LogFormat = (typeof logFormats)[number];

/** A line as a request; `titles` for the line with column names of CSV; undefined: unreadable. */
type ReadLine = LoggedRequest | "titles" | undefined;

/** Reads the lines of one log. */
export class LogReader {
  readonly #format: LogFormat;
  readonly #names: NamedLogOptions;
  readonly #text: LineReader;
  readonly #json: LineReader;
  #chosen: LineReader | undefined;
  #isFirst = true;

  constructor(format: LogFormat, names: NamedLogOptions) {
    this.#format = format;
    this.#names = names;
    this.#text = createTextReader(names.wanted);
    this.#json = createJsonReader(names);
    if (format === "envoy") this.#chosen = this.#text;
    if (format === "json") this.#chosen = this.#json;
  }

  /** Reads the next line. */
  read(line: string): ReadLine {
    return this.#chosen === undefined ? this.#readFirst(line) : this.#chosen(line);
  }

  /** The expected format, for a log without a readable line. */
  get hint(): string {
    return hints[this.#format];
  }

  /** Chooses the format by the first readable line: a container's log may start with other text. */
  #readFirst(line: string): ReadLine {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    const isJson = line.startsWith("{");
    if (this.#format === "csv" || (isFirst && !isJson && !line.startsWith("["))) {
      this.#chosen = isFirst ? createCsvReader(line, this.#names) : undefined;
      if (this.#chosen !== undefined) return "titles";
      if (this.#format === "csv") return undefined;
    }
    const reader = isJson ? this.#json : this.#text;
    const request = reader(line);
    if (request !== undefined) this.#chosen = reader;
    return request;
  }
}

const timeHint = `${timeFields.join(", ")}, or the field of --field time=NAME`;

const hints: Readonly<Record<LogFormat, string>> = {
  envoy: "--format envoy is the default text format of Envoy and Istio",
  json: `--format json is one object a line, with a time: ${timeHint}`,
  csv: `--format csv starts with a header line, with a time: ${timeHint}`,
  auto:
    "it is neither Envoy's default text, nor one JSON object a line, nor CSV with " +
    `a header line, or it has no time: ${timeHint}`,
};

/** Separator between two quoted parts. */
const between = '" "';

/** `[TIME] "METHOD PATH PROTOCOL" STATUS FLAGS`, up to the next quote: paths contain no blanks. */
const beginning = /^\[([^"]*)\] "([^ "]*) ([^ "]*) [^ "]*"\s*(\d{1,3})(?: ([^ "]*)([^"]*))?"/;

/** Unquoted parts after the last quote of Istio's format: clusters, addresses, name and route. */
const istioTailCount = 6;
const istioAddressIndex = 3;

/**
 * Creates a reader of Envoy's default text format and of Istio's default text format.
 *
 * Source: Envoy, "Access logging", default format string; Istio, "Getting Envoy's Access Logs".
 */
export function createTextReader({ headers, address, timing }: WantedFacts): LineReader {
  return (text): LoggedRequest | undefined => {
    const line = readLine(text);
    const timeUs = line === undefined ? undefined : parseTimestampUs(line.time);
    if (line === undefined || timeUs === undefined) return undefined;
    const { flags, remoteAddress, said } = line;
    const forwardedFor = said.get("x-forwarded-for") ?? "";
    return {
      timeUs,
      wasLimited: isLimited(flags),
      authority: saidText(said.get(":authority") ?? ""),
      address: address === "wanted" ? callerAddress(remoteAddress, forwardedFor) : "",
      headers: headers.map((header) => saidText(said.get(header) ?? "")),
      ...(timing === "wanted"
        ? { timing: readTiming(line.duration, line.status, line.upstreamHost) }
        : {}),
    };
  };
}

interface TextLine {
  readonly time: string;
  readonly flags: string;
  readonly status: string;
  /** Duration in milliseconds. */
  readonly duration: string;
  readonly upstreamHost: string;
  readonly remoteAddress: string;
  /** Values by the name of the header. */
  readonly said: ReadonlyMap<string, string>;
}

/**
 * Undefined for a line of another format. Callers may send quotes, and Envoy does not escape them,
 * so the quoted parts are located from both ends: the agent is everything in between.
 */
function readLine(text: string): TextLine | undefined {
  const begun = beginning.exec(text);
  if (begun === null) return undefined;
  const [{ length }, time = "", method = "", path = "", status = "", flags = "", rest = ""] = begun;
  const lastQuote = text.lastIndexOf('"');
  const tail = text
    .slice(lastQuote + 1)
    .trim()
    .split(" ");
  const isIstio = tail.length === istioTailCount;
  if (!isIstio && tail.join("") !== "") return undefined;
  // Istio's format has its own quoted part before the caller's parts.
  const ownEnd = text.indexOf('"', length) + 1;
  const start = isIstio ? text.indexOf('"', ownEnd) + 1 : length;
  const forwardedEnd = text.indexOf(between, start);
  const authorityEnd = text.lastIndexOf(between, lastQuote - between.length);
  const idEnd = text.lastIndexOf(between, authorityEnd - between.length);
  const agentEnd = text.lastIndexOf(between, idEnd - between.length);
  if (forwardedEnd === -1 || forwardedEnd + between.length > agentEnd) return undefined;
  // The third of: bytes received and sent, duration, and the time of the upstream.
  const [, , duration = ""] = (isIstio ? text.slice(ownEnd, start - 1) : rest).trim().split(" ");
  return {
    time,
    flags,
    status,
    duration,
    upstreamHost: text.slice(authorityEnd + between.length, lastQuote),
    remoteAddress: isIstio ? (tail[istioAddressIndex] ?? "") : "",
    said: new Map([
      [":method", method],
      [":path", path],
      [":authority", text.slice(idEnd + between.length, authorityEnd)],
      ["x-forwarded-for", text.slice(start, forwardedEnd)],
      ["user-agent", text.slice(forwardedEnd + between.length, agentEnd)],
      ["x-request-id", text.slice(agentEnd + between.length, idEnd)],
    ]),
  };
}
