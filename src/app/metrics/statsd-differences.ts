import {
  type DecisionCounters,
  type HitCounters,
  latencyBoundsMs,
} from "../../decide/rate-limit/counters.js";
import {
  countedMethod,
  hitStats,
  hitsPrefix,
  namedHits,
  type StatsSources,
  serviceStats,
} from "./stats.js";
import { type StatChange, statNameLengthMax } from "./statsd-lines.js";

/**
 * What has changed since it was told last. Names are made only for what has changed: a large policy
 * has hundreds of thousands.
 *
 * What a rule counts between the last flush and its end in a reload is never told.
 */
export class StatDifferences {
  readonly #sources: StatsSources;
  /** Hits as they were told; ends with the rule that they belong to. */
  readonly #reportedHits = new WeakMap<HitCounters, HitCounters>();
  readonly #reportedCounts = new Map<string, number>();
  #reportedTimes: readonly number[] = [];

  constructor(sources: StatsSources) {
    this.#sources = sources;
  }

  /**
   * The changes until now; what is taken from here counts as told.
   *
   * @param onDropped told of every name that is too long for any packet
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

  /** Times are kept in buckets: each is told by its upper bound, the last one by its lower. */
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
