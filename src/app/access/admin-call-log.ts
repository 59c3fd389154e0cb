import type { Cancel, Clock } from "../../core/base/clock.js";
import type { LogEvent, Logger } from "../base/logger.js";

/** A call of the admin API, or of a guarded page of the debug port. It holds no credentials. */
export interface LoggedCall {
  /** A method or a page, of a closed set; `none`: there is no such. */
  readonly method: string;
  /** What the audit log calls who asks; undefined: nobody known. */
  readonly caller: string | undefined;
  /** Where the connection comes from; empty: this machine. */
  readonly address: string;
}

/** The most lines of one kind in a minute; what is more is counted. */
export const linesPerMinuteMax = 60;

const minuteMs = 60_000;

/**
 * Tells the log who was refused, and who looked at what callers send. Calls that are alike are told
 * once a minute; how many were left out is told at its end.
 */
export class AdminCallLog {
  readonly #refused: MinuteLog;
  readonly #looked: MinuteLog;
  readonly #signedIn: MinuteLog;

  constructor(clock: Pick<Clock, "schedule">, logger: Logger) {
    this.#refused = new MinuteLog(clock, {
      tell: (event) => logger.warn(event, "The admin API refused a call."),
      tellUnlogged: (count) => logger.warn(unlogged("refused", count), unloggedSentence),
    });
    this.#looked = new MinuteLog(clock, {
      tell: (event) => logger.info(event, "An operator reads callers' values."),
      tellUnlogged: (count) => logger.info(unlogged("looked", count), unloggedSentence),
    });
    this.#signedIn = new MinuteLog(clock, {
      tell: (event) => logger.info(event, "Somebody signs in to the console."),
      tellUnlogged: (count) => logger.info(unlogged("signedIn", count), unloggedSentence),
    });
  }

  /** @param code of Connect, such as `permission_denied` */
  noteRefused(call: LoggedCall, code: string): void {
    this.#refused.note({ event: "adminCallRefused", ...call, code });
  }

  /** Somebody asks for answers with callers' values. */
  noteLook(call: LoggedCall): void {
    this.#looked.note({ event: "adminCallersShown", ...call });
  }

  /** Somebody begins a session of the console. */
  noteSignIn(call: LoggedCall): void {
    this.#signedIn.note({ event: "consoleSignedIn", ...call });
  }

  /** Tells what was left out so far. */
  close(): void {
    this.#signedIn.end();
    this.#refused.end();
    this.#looked.end();
  }
}

const unloggedSentence =
  "Admin calls of the last minute without a log line: repeated, or too many.";

function unlogged(kind: "refused" | "looked" | "signedIn", unloggedCount: number): LogEvent {
  return { event: "adminCallsUnlogged", kind, unloggedCount };
}

interface MinuteLines {
  readonly tell: (event: LogEvent) => void;
  readonly tellUnlogged: (count: number) => void;
}

/** Lines of one kind, each once a minute. */
class MinuteLog {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #lines: MinuteLines;
  readonly #reported = new Set<string>();
  #unloggedCount = 0;
  #cancel: Cancel | undefined;

  constructor(clock: Pick<Clock, "schedule">, lines: MinuteLines) {
    this.#clock = clock;
    this.#lines = lines;
  }

  note(event: LogEvent): void {
    this.#cancel ??= this.#clock.schedule(minuteMs, () => this.end());
    const id = JSON.stringify(event);
    if (this.#reported.has(id) || this.#reported.size >= linesPerMinuteMax) {
      this.#unloggedCount += 1;
      return;
    }
    this.#reported.add(id);
    this.#lines.tell(event);
  }

  /** Ends the minute. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#reported.clear();
    const unloggedCount = this.#unloggedCount;
    this.#unloggedCount = 0;
    if (unloggedCount > 0) this.#lines.tellUnlogged(unloggedCount);
  }
}
