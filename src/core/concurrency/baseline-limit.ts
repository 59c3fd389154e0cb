import {
  type ConcurrencyLimit,
  type ConcurrencySample,
  type WindowedSample,
  withHeadroom,
} from "./concurrency-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { MinRtt } from "./min-rtt.js";
import type { RttStatistic } from "./rtt-statistic.js";
import { SampleWindow } from "./sample-window.js";

/**
 * If a probe confirms the baseline, the limit stays unless the measured capacity allows less than
 * this part of it. Steps found the limit with the same baseline, and a limit is rarely in use as a
 * whole, least of all if a fleet shares it.
 */
const farRatio = 0.75;

/** What an algorithm with a baseline sees of a window. */
export interface BaselineView {
  readonly window: WindowedSample;
  /** The limit before the window, not rounded, without a probe. */
  readonly limit: number;
  readonly limits: LimitBounds;
  /** The baseline in milliseconds; undefined until a request was served. */
  readonly minRttMs: number | undefined;
}

/** A baseline that another process measured. */
export interface KnownBaseline {
  /** In milliseconds, above 0. */
  readonly minRttMs: number;
  /** Now, on the monotonic clock of the windows that follow. */
  readonly nowMs: number;
}

/**
 * The common part of the algorithms that compare latency with a baseline (`MinRtt`): windows,
 * probes, and samples that do not count because they describe another limit. An algorithm adds its
 * steps. If more than half of a window was dropped, the limit falls to half or less.
 */
export abstract class BaselineLimit implements ConcurrencyLimit {
  readonly #limits: LimitBounds;
  readonly #window: SampleWindow;
  readonly #minRtt = new MinRtt();
  #limit: number;
  #rttMs: number | undefined;

  constructor(limits: LimitBounds, statistic: RttStatistic) {
    this.#limits = limits;
    this.#window = new SampleWindow(statistic);
    this.#limit = withinBounds(limits, limits.initial);
  }

  /** Begins with a baseline that another process measured, before the first sample. */
  begin({ minRttMs, nowMs }: KnownBaseline): this {
    this.#minRtt.begin(minRttMs, nowMs);
    return this;
  }

  get limit(): number {
    return Math.floor(Math.min(this.#limit, this.#minRtt.probeLimit ?? this.#limit));
  }

  get criticalLimit(): number {
    const most = withHeadroom(this.#limit);
    return Math.floor(Math.min(most, this.#minRtt.criticalProbeLimit ?? most));
  }

  record(sample: ConcurrencySample): void {
    const { probeLimit, settledMs } = this.#minRtt;
    if (sample.outcome !== "success") this.#minRtt.noteLeft(sample.endMs);
    if (sample.endMs < settledMs) return;
    if (probeLimit !== undefined && sample.inFlight > probeLimit) {
      this.#minRtt.noteAbove(sample.endMs);
      return;
    }
    const window = this.#window.add(sample);
    if (window !== undefined) this.#learn(window);
  }

  update(window: WindowedSample): void {
    // Envoys do not report callers who left, so there may be some at any time.
    this.#minRtt.noteLeft(window.endMs);
    this.#learn(window);
  }

  facts(): Readonly<Record<string, number>> {
    const { minRttMs, probeCount } = this.#minRtt;
    return {
      ...this.ownFacts(),
      probeCount,
      ...(minRttMs === undefined ? {} : { minRttMs }),
      ...(this.#rttMs === undefined ? {} : { rttMs: this.#rttMs }),
    };
  }

  /** Whether there is more queueing than steps can correct. */
  protected abstract isSuspect(view: BaselineView): boolean;

  /** The limit for a measured capacity, if the current one is far higher; see `MinRttFinding`. */
  protected abstract mostFor(capacity: number): number;

  /** The limit after the window, before the bounds apply. */
  protected abstract next(view: BaselineView): number;

  /** Its own state besides the baseline. */
  protected abstract ownFacts(): Readonly<Record<string, number>>;

  #learn(window: WindowedSample): void {
    const limits = this.#limits;
    const view = { window, limit: this.#limit, limits, minRttMs: this.#minRtt.minRttMs };
    const finding = this.#minRtt.observe(window, {
      limit: this.#limit,
      limitMin: Math.max(limits.min, Math.ceil(window.keptCount ?? 0)),
      isSuspect: this.isSuspect(view),
    });
    if (finding.kind === "measured") {
      const most = this.mostFor(finding.capacity);
      const borne = finding.isConfirmed ? farRatio * this.#limit : this.#limit;
      if (most < borne) this.#limit = withinBounds(limits, most);
    }
    if (finding.kind !== "steady") return;
    this.#rttMs = window.rttMs;
    const next = this.next(view);
    this.#limit = withinBounds(limits, isLost(window) ? Math.min(next, this.#limit / 2) : next);
  }
}

/** Whether more than half were dropped: the limit is far too high for smooth steps. */
function isLost({ sampleCount, droppedCount }: WindowedSample): boolean {
  return droppedCount > sampleCount;
}
