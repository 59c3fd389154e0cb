import type { Cancel, Clock } from "../../core/base/clock.js";
import type { LogEvent, Logger } from "../base/logger.js";

/** A call of the admin API, or of a guarded page of the debug port. It contains no credentials. */
export interface LoggedCall {
  /** A method or page from a closed set. `none`: it does not exist. */
  readonly method: string;
  /** The caller's name in the audit log. Undefined: not authenticated. */
  readonly caller: string | undefined;
  /** The address that the connection comes from. Empty: this machine. */
  readonly address: string;
}

/** Maximum number of lines of one kind in a minute. Further lines are only counted. */
export const linesPerMinuteMax = 60;

const minuteMs = 60_000;

/**
 * Logs who was refused, and who read callers' values. Identical calls are logged once a minute. The
 * number of omitted lines is logged at the end of the minute.
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

  /** Logs a request for responses with callers' values. */
  noteLook(call: LoggedCall): void {
    this.#looked.note({ event: "adminCallersShown", ...call });
  }

  /** Logs the start of a session of the console. */
  noteSignIn(call: LoggedCall): void {
    this.#signedIn.note({ event: "consoleSignedIn", ...call });
  }

  /** Logs how many lines were omitted so far. */
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

/** Lines of one kind, each at most once a minute. */
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

  /** Ends the minute, and logs how many lines were omitted. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#reported.clear();
    const unloggedCount = this.#unloggedCount;
    this.#unloggedCount = 0;
    if (unloggedCount > 0) this.#lines.tellUnlogged(unloggedCount);
  }
}
