import type { Cancel, Clock } from "../../core/base/clock.js";
import {
  type DecisionCounters,
  type HitCounters,
  latencyBoundsMs,
} from "../../decide/rate-limit/counters.js";
import type { Logger } from "../base/logger.js";
import type { StatsdChoice } from "../config/stats-choice.js";
import { type Mogrifier, mogrify } from "../config/statsd-mogrifier.js";
import type { StatTag } from "../options/stats-names.js";
import {
  countedMethod,
  hitStats,
  hitsPrefix,
  namedHits,
  type StatsSources,
  serviceStats,
} from "./stats.js";
import { openStatsdChannel, type StatsdPlace } from "./statsd-channel.js";

interface StatsdParts {
  readonly choice: StatsdChoice;
  readonly sources: StatsSources;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Maximum total time of one flush, in milliseconds. */
const flushMsMax = 5_000;

/**
 * Sends changes to a StatsD periodically. It never delays other work: an unreachable receiver
 * causes one log line, and the next successful flush includes what it missed.
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

  /** Starts flushing, each time one interval after the end of the previous flush. */
  start(): void {
    const { clock, choice } = this.#parts;
    this.#cancel = clock.schedule(choice.flushMs, () => {
      this.#flush().finally(() => {
        if (!this.#isStopped) this.start();
      });
    });
  }

  /** Flushes the rest, and stops. Takes at most twice `flushMsMax`. Never rejects. */
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

/**
 * Computes changes since the last report. Names are created only for changes: a large policy has
 * hundreds of thousands.
 *
 * Counts of a rule between the last flush and its removal by a reload are never reported.
 */
export class StatDifferences {
  readonly #sources: StatsSources;
  /** Hits as last reported. An entry ends with its rule. */
  readonly #reportedHits = new WeakMap<HitCounters, HitCounters>();
  readonly #reportedCounts = new Map<string, number>();
  #reportedTimes: readonly number[] = [];

  constructor(sources: StatsSources) {
    this.#sources = sources;
  }

  /**
   * Yields the changes until now. Each that is taken counts as reported.
   *
   * @param onDropped called for every name that is too long for any packet
   */
  *take(onDropped: () => void): Generator<StatChange, void, undefined> {
    for (const stat of serviceStats(this.#sources)) {
      if (stat.kind === "gauge") {
        yield stat;
        continue;
      }
      const increase = stat.value - (this.#reportedCounts.get(stat.name) ?? 0);
      this.#reportedCounts.set(stat.name, stat.value);
      if (increase > 0) yield { kind: "counter", name: stat.name, increase };
    }
    yield* this.#takeTimes(this.#sources.counters);
    for (const named of namedHits(this.#sources)) {
      const reported = this.#reportedHits.get(named.hits);
      if (reported !== undefined && isSame(reported, named.hits)) continue;
      const now = { ...named.hits };
      this.#reportedHits.set(named.hits, now);
      const prefix = hitsPrefix(named);
      if (prefix.length > statNameLengthMax) {
        onDropped();
        continue;
      }
      for (const { name, field } of hitStats) {
        const increase = now[field] - (reported?.[field] ?? 0);
        if (increase > 0) yield { kind: "counter", name: `${prefix}.${name}`, increase };
      }
    }
  }

  /** Takes times, which are kept in buckets: reported by upper bound, the last by its lower. */
  *#takeTimes({ latencyCounts }: DecisionCounters): Generator<StatChange, void, undefined> {
    const reported = this.#reportedTimes;
    const now = [...latencyCounts];
    this.#reportedTimes = now;
    for (const [index, count] of now.entries()) {
      const more = count - (reported[index] ?? 0);
      const timeMs = latencyBoundsMs[index] ?? latencyBoundsMs.at(-1) ?? 0;
      const name = `ratelimit_server.${countedMethod}.response_time`;
      if (more > 0) yield { kind: "times", name, timeMs, count: more };
    }
  }
}

function isSame(a: HitCounters, b: HitCounters): boolean {
  return hitStats.every(({ field }) => a[field] === b[field]);
}

/** A change to report: an increase, a current value, or a time that `count` calls took. */
export type StatChange =
  | { readonly kind: "counter"; readonly name: string; readonly increase: number }
  | { readonly kind: "gauge"; readonly name: string; readonly value: number }
  | {
      readonly kind: "times";
      readonly name: string;
      readonly timeMs: number;
      readonly count: number;
    };

/** Formats a line. */
type LineFormat = (change: StatChange) => string;

/** Maximum length of a name that is sent, in characters. Longer ones do not fit into a packet. */
export const statNameLengthMax = 1_200;

/** Maximum size of a packet in bytes: unfragmented in a network with frames of 1,500 bytes. */
export const packetBytesMax = 1_432;

/** Formats lines for StatsD. Tags become parts of the name, as in envoyproxy/ratelimit. */
export function statsdFormat(tags: readonly StatTag[]): LineFormat {
  const suffix = [...tags]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, value }) => `.__${name}=${value.replace(/[.:]/g, "_")}`)
    .join("");
  return (change) => `${change.name}${suffix}:${written(change)}`;
}

/** Formats lines for DogStatsD. It has tags, some of which are extracted from the name. */
export function dogStatsdFormat(
  tags: readonly StatTag[],
  mogrifiers: readonly Mogrifier[],
): LineFormat {
  return (change) => {
    const mogrified = mogrify(change.name, mogrifiers);
    const all = [...tags, ...mogrified.tags].map(({ name, value }) => `${name}:${value}`);
    const suffix = all.length === 0 ? "" : `|#${all.join(",")}`;
    return `${mogrified.name}:${written(change)}${suffix}`;
  };
}

/** Source: StatsD, "Metric types"; DogStatsD, "Datagram format". */
function written(change: StatChange): string {
  switch (change.kind) {
    case "counter":
      return `${change.increase}|c`;
    case "gauge":
      return `${change.value}|g`;
    case "times":
      return `${change.timeMs}|ms${weight(change.count)}`;
  }
}

/**
 * Writes one line for many calls: a sample rate of 1/n counts it n times. Receivers invert the rate
 * and cut off the fraction, so it is a little lower: 1/93 would become 92.99...
 */
function weight(count: number): string {
  return count === 1 ? "" : `|@${1 / (count + 0.001)}`;
}

/** Packs lines into packets. A line that is too long for a packet is reported, and left out. */
export function* packLines(
  lines: Iterable<string>,
  onDropped: () => void,
): Generator<Buffer, void, undefined> {
  let packet: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    const lineBytes = Buffer.byteLength(line) + 1;
    if (lineBytes > packetBytesMax) {
      onDropped();
      continue;
    }
    if (bytes + lineBytes > packetBytesMax) {
      yield Buffer.from(`${packet.join("\n")}\n`);
      packet = [];
      bytes = 0;
    }
    packet.push(line);
    bytes += lineBytes;
  }
  if (packet.length > 0) yield Buffer.from(`${packet.join("\n")}\n`);
}
