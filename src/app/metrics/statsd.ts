import type { Cancel, Clock } from "../../core/base/clock.js";
import type { Logger } from "../base/logger.js";
import type { StatsdChoice } from "../config/stats-choice.js";
import type { StatsSources } from "./stats.js";
import { openStatsdChannel, type StatsdPlace } from "./statsd-channel.js";
import { StatDifferences } from "./statsd-differences.js";
import {
  dogStatsdFormat,
  type LineFormat,
  packLines,
  type StatChange,
  statsdFormat,
} from "./statsd-lines.js";

interface StatsdParts {
  readonly choice: StatsdChoice;
  readonly sources: StatsSources;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How long one flush may take in all, in milliseconds. */
const flushMsMax = 5_000;

/**
 * Tells a StatsD, again and again, what has changed. It never holds anybody up: a receiver that is
 * not there costs one log line, and what it missed is in the next flush that finds it.
 */
export class StatsdReporter {
  readonly #parts: StatsdParts;
  readonly #format: LineFormat;
  readonly #place: StatsdPlace;
  readonly #differences: StatDifferences;
  #cancel: Cancel | undefined;
  #flushing: Promise<void> | undefined;
  #isAway = false;
  #hasDropped = false;
  #isStopped = false;

  constructor(parts: StatsdParts) {
    const { choice, sources } = parts;
    const { host, port } = choice;
    this.#parts = parts;
    this.#place = { protocol: choice.kind === "statsd" ? choice.protocol : "udp", host, port };
    this.#format =
      choice.kind === "statsd"
        ? statsdFormat(choice.tags)
        : dogStatsdFormat(choice.tags, choice.mogrifiers);
    this.#differences = new StatDifferences(sources);
  }

  /** Flushes from now on, each interval after the end of the flush before. */
  start(): void {
    const { clock, choice } = this.#parts;
    this.#cancel = clock.schedule(choice.flushMs, () => {
      this.#flush().finally(() => {
        if (!this.#isStopped) this.start();
      });
    });
  }

  /** Flushes what is left, and no more. Takes `flushMsMax` twice at most; never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#flushing;
    await this.#flush();
  }

  #flush(): Promise<void> {
    this.#flushing = this.#tryFlush().then(
      () => this.#noteBack(),
      (thrown: unknown) => this.#noteAway(thrown),
    );
    return this.#flushing;
  }

  async #tryFlush(): Promise<void> {
    const abort = new AbortController();
    const late = new Error("it took too long");
    const cancel = this.#parts.clock.schedule(flushMsMax, () => abort.abort(late));
    try {
      const channel = await openStatsdChannel(this.#place, abort.signal);
      try {
        const onDropped = (): void => this.#noteDropped();
        const lines = formatAll(this.#differences.take(onDropped), this.#format);
        for (const packet of packLines(lines, onDropped)) await channel.send(packet);
      } finally {
        await channel.close();
      }
    } finally {
      cancel();
    }
  }

  #noteAway(thrown: unknown): void {
    if (this.#isAway) return;
    this.#isAway = true;
    const code: unknown = Reflect.get(Object(thrown), "code");
    const cause = typeof code === "string" ? code : "UNKNOWN";
    this.#parts.logger.warn(
      { event: "statsdAway", ...this.#place, cause },
      "StatsD cannot be reached: check STATSD_HOST and STATSD_PORT. Each flush tries again.",
    );
  }

  #noteBack(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#parts.logger.info(
      { event: "statsdBack", ...this.#place },
      "StatsD can be reached again.",
    );
  }

  #noteDropped(): void {
    if (this.#hasDropped) return;
    this.#hasDropped = true;
    const event = { event: "statsdNameTooLong" };
    this.#parts.logger.warn(
      event,
      "Some statistics have names that are too long for StatsD; skipped.",
    );
  }
}

function* formatAll(changes: Iterable<StatChange>, format: LineFormat): Generator<string> {
  for (const change of changes) yield format(change);
}
