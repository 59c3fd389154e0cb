import { systemClock } from "../../app/base/clock.js";
import { sha256 } from "../../app/base/digest.js";
import { defaultDefaults } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { NamedLogOptions } from "../../simulate/named-log.js";
import { Replay } from "../../simulate/replay.js";
import { Progress } from "../terminal/progress.js";
import { type LogLines, openLog } from "./log-lines.js";
import { type LogFormat, LogReader } from "./log-reader.js";
import type { ReplayOutcome } from "./replay-report.js";

/** What a `LogRun` is made of. */
export interface LogRunParts {
  readonly policy: Policy;
  /** Asks the same limits of every request; undefined: as the policy's services say. */
  readonly forAll: Pick<ServicePolicy, "name" | "rateLimit"> | undefined;
  readonly names: NamedLogOptions;
  readonly format: LogFormat;
}

/** Logs on their way through a policy, one after the other. */
export class LogRun {
  readonly #parts: LogRunParts;
  readonly #replay: Replay;
  #lineCount = 0;
  #unreadableCount = 0;
  #firstUnreadable: string | undefined;

  constructor(parts: LogRunParts) {
    this.#parts = parts;
    const { policy, forAll } = parts;
    const switches = {
      isShadow: false,
      isQuota: false,
      chargesDenied: false,
      defaults: defaultDefaults,
    };
    this.#replay = new Replay({ policy, forAll, switches, digest: sha256 });
  }

  /**
   * Takes a log. Throws what reading it throws.
   *
   * @returns what is wrong where none of its lines could be read; undefined otherwise
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

  /** What came of all of them; nothing may be taken after it. */
  finish(): ReplayOutcome {
    return {
      lineCount: this.#lineCount,
      unreadableCount: this.#unreadableCount,
      ...(this.#firstUnreadable === undefined ? {} : { firstUnreadable: this.#firstUnreadable }),
      ...this.#replay.finish(),
    };
  }

  async #takeLines(path: string, log: LogLines, progress: Progress): Promise<string | undefined> {
    const reader = new LogReader(this.#parts.format, this.#parts.names);
    const [linesBefore, unreadableBefore] = [this.#lineCount, this.#unreadableCount];
    let number = 0;
    for await (const lines of log.batches) {
      for (const line of lines) {
        number += 1;
        if (line.end === line.start) continue;
        const request = reader.read(line);
        if (request === "titles") continue;
        this.#lineCount += 1;
        if (request !== undefined) {
          this.#replay.take(request);
          continue;
        }
        this.#unreadableCount += 1;
        this.#firstUnreadable ??= `${path}:${number}`;
      }
      progress.show(log.bytesRead(), () => `${this.#lineCount.toLocaleString("en")} lines`);
    }
    const count = this.#lineCount - linesBefore;
    if (count === 0 || this.#unreadableCount - unreadableBefore < count) return undefined;
    const none = count === 1 ? "its only line" : `none of its ${count.toLocaleString("en")} lines`;
    return `${none} could ${count === 1 ? "not " : ""}be read: ${reader.hint}`;
  }
}
