import type { LogReader } from "./log-reader.js";
import type { LoggedRequest } from "./logged-request.js";

/** Reads the lines of one log, and counts those that cannot be read. */
export class CountedLog {
  readonly #reader: LogReader;
  readonly #take: (request: LoggedRequest) => void;
  #number = 0;
  /** Lines that are requests, or should be. */
  lineCount = 0;
  unreadableCount = 0;
  /** The number of the first unreadable line, from 1. */
  firstUnreadable: number | undefined;

  /** @param take takes each request in turn */
  constructor(reader: LogReader, take: (request: LoggedRequest) => void) {
    this.#reader = reader;
    this.#take = take;
  }

  /** Reads the next line. Throws what `take` throws. */
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

  /** What is wrong where none of the lines could be read; undefined otherwise. */
  get problem(): string | undefined {
    const { lineCount: count } = this;
    if (count === 0 || this.unreadableCount < count) return undefined;
    const none = count === 1 ? "its only line" : `none of its ${count.toLocaleString("en")} lines`;
    return `${none} could ${count === 1 ? "not " : ""}be read: ${this.#reader.hint}`;
  }
}
