import type { LineReader, LoggedRequest } from "./logged-request.js";
import {
  createCsvReader,
  createJsonReader,
  type NamedLogOptions,
  timeFields,
} from "./named-log.js";
import { createTextReader } from "./text-log.js";

/** What `--format` may say. */
export const logFormats = ["auto", "envoy", "json", "csv"] as const;

/** What a log is written in; `auto`: whatever its first line is that can be read. */
export type LogFormat = (typeof logFormats)[number];

/** A line as a request; `titles` for one that names the columns of CSV; undefined: unreadable. */
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

  /** What would have to be different in a log of which no line could be read. */
  get hint(): string {
    return hints[this.#format];
  }

  /** Logs of containers begin with what their programs say before: that decides nothing. */
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
