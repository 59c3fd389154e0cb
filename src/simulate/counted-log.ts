import type { LogReader } from "./log-reader.js";
import type { LoggedRequest } from "./logged-request.js";

/** Reads the lines of one log, and counts the unreadable ones. */
export class CountedLog {
  readonly #reader: LogReader;
  readonly #take: (request: LoggedRequest) => void;
  #number = 0;
  /** Number of lines that are requests, or should be. */
  lineCount = 0;
  unreadableCount = 0;
  /** Number of the first unreadable line, from 1. */
  firstUnreadable: number | undefined;

  /** @param take is called with each request in turn */
  constructor(reader: LogReader, take: (request: LoggedRequest) => void) {
    this.#reader = reader;
    this.#take = take;
  }

  /** Reads the next line. Throws the errors of `take`. */
  read(line: string): void {
    this.#number += 1;
    if (line === "") return;
    const request = this.#reader.read(line);
    if (request === "titles") return;
    this.lineCount += 1;
    if (request !== undefined) {
      this.#take(request);
      return;
    }
    this.unreadableCount += 1;
    this.firstUnreadable ??= this.#number;
  }

  /** The problem if no line could be read; undefined otherwise. */
  get problem(): string | undefined {
    const { lineCount: count } = this;
    if (count === 0 || this.unreadableCount < count) return undefined;
    const none = count === 1 ? "its only line" : `none of its ${count.toLocaleString("en")} lines`;
    return `${none} could ${count === 1 ? "not " : ""}be read: ${this.#reader.hint}`;
  }
}
