import type { Clock } from "../../core/base/clock.js";
import { systemClock } from "../../host/clock.js";
import { CountedLog } from "../../simulate/counted-log.js";
import { type LogFormat, LogReader } from "../../simulate/log-reader.js";
import type { LoggedRequest } from "../../simulate/logged-request.js";
import type { NamedLogOptions } from "../../simulate/named-log.js";
import { type LogLines, openLog } from "./log-lines.js";

/** Numbers of all lines and of unreadable lines. */
export interface LogCounts {
  readonly lineCount: number;
  readonly unreadableCount: number;
  /** Position of the first unreadable line. */
  readonly firstUnreadable?: string;
}

interface LogRunParts {
  readonly names: NamedLogOptions;
  readonly format: LogFormat;
  /** Called with each request in turn. */
  readonly take: (request: LoggedRequest) => void;
}

/** Reads logs one after the other. */
export class LogRun {
  readonly #parts: LogRunParts;
  #lineCount = 0;
  #unreadableCount = 0;
  #firstUnreadable: string | undefined;

  constructor(parts: LogRunParts) {
    this.#parts = parts;
  }

  /**
   * Reads a log. Throws the errors of reading.
   *
   * @returns the problem if no line could be read; undefined otherwise
   */
  async take(path: string): Promise<string | undefined> {
    const log = await openLog(path);
    const draw = process.stderr.isTTY
      ? (text: string) => void process.stderr.write(text)
      : undefined;
    const progress = new Progress({ clock: systemClock, draw, total: log.bytesTotal });
    try {
      return await this.#takeLines(path, log, progress);
    } finally {
      progress.end();
    }
  }

  /** Counts of all logs so far. */
  get counts(): LogCounts {
    return {
      lineCount: this.#lineCount,
      unreadableCount: this.#unreadableCount,
      ...(this.#firstUnreadable === undefined ? {} : { firstUnreadable: this.#firstUnreadable }),
    };
  }

  async #takeLines(path: string, log: LogLines, progress: Progress): Promise<string | undefined> {
    const { format, names, take } = this.#parts;
    const counted = new CountedLog(new LogReader(format, names), take);
    const linesBefore = this.#lineCount;
    for await (const lines of log.batches) {
      for (const line of lines) counted.read(line);
      this.#lineCount = linesBefore + counted.lineCount;
      progress.show(log.bytesRead(), () => `${this.#lineCount.toLocaleString("en")} lines`);
    }
    this.#unreadableCount += counted.unreadableCount;
    const { firstUnreadable: first } = counted;
    if (first !== undefined) this.#firstUnreadable ??= `${path}:${first}`;
    return counted.problem;
  }
}

/**
 * Returns the time of a log's first request, in microseconds since 1970; undefined: no line is
 * readable. Throws the errors of reading.
 */
export async function firstTimeUs(
  path: string,
  { format, names }: Omit<LogRunParts, "take">,
): Promise<number | undefined> {
  const reader = new LogReader(format, names);
  for await (const lines of (await openLog(path)).batches) {
    for (const line of lines) {
      const request = line === "" ? undefined : reader.read(line);
      if (request !== undefined && request !== "titles") return request.timeUs;
    }
  }
  return undefined;
}

/** Output and timing of a progress bar. */
interface ProgressParts {
  readonly clock: Clock;
  /** Writes parts of lines; undefined: there is no terminal, and nothing is drawn. */
  readonly draw: ((text: string) => void) | undefined;
  /** Amount at the end; undefined: unknown. */
  readonly total: number | undefined;
}

const drawEveryMs = 100;
const barColumns = 30;

/** A progress bar for long work. */
class Progress {
  readonly #parts: ProgressParts;
  readonly #startMs: number;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #isDrawn = false;

  constructor(parts: ProgressParts) {
    this.#parts = parts;
    this.#startMs = parts.clock.monotonicMs();
  }

  /** Shows the amount done, with `words` after the bar. */
  show(done: number, words: () => string): void {
    const { clock, draw, total } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (draw === undefined || nowMs - this.#drawnMs < drawEveryMs) return;
    this.#drawnMs = nowMs;
    this.#isDrawn = true;
    const ratio = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
    const bar = ratio === undefined ? "" : `${barOf(ratio)} ${Math.floor(ratio * 100)} %  `;
    draw(`\r${bar}${words()}${this.#left(ratio, nowMs)}\u001b[K`);
  }

  /** Removes the bar. */
  end(): void {
    if (this.#isDrawn) this.#parts.draw?.("\r\u001b[K");
  }

  #left(ratio: number | undefined, nowMs: number): string {
    const elapsedMs = nowMs - this.#startMs;
    if (ratio === undefined || ratio === 0 || elapsedMs < 1_000) return "";
    return `, ${Math.ceil((elapsedMs / ratio - elapsedMs) / 1_000)} s left`;
  }
}

function barOf(ratio: number): string {
  const full = Math.round(ratio * barColumns);
  return "█".repeat(full) + "░".repeat(barColumns - full);
}
