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
 * Where a probe confirms the baseline, a limit for which the measured capacity bears more than this
 * part stays: steps have found it by that very baseline, and not all of it is in use all the time,
 * least of all where a fleet shares it.
 */
const farRatio = 0.75;

/** What a law that goes by a baseline sees of a window, as things stood when it came. */
export interface BaselineView {
  readonly window: WindowedSample;
  /** The law's limit before the window, not whole, without a probe. */
  readonly limit: number;
  readonly limits: LimitBounds;
  /** The baseline in milliseconds; undefined before anybody was served. */
  readonly minRttMs: number | undefined;
}

/** What somebody else has measured of a service. */
export interface KnownBaseline {
  /** In milliseconds, above 0. */
  readonly minRttMs: number;
  /** Now, on the monotonic clock of the windows that follow. */
  readonly nowMs: number;
}

/**
 * What laws have in common that hold latency against a baseline (`MinRtt`): windows, probes, and
 * samples that say nothing because they met another limit. A law adds how it steps; where more than
 * half of a window was dropped, the limit is halved at least.
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

  /** Begins with a baseline that somebody else has measured, before anything is learned. */
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
    // Envoys do not tell of callers who have left: there may be some at any time.
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

  /** Whether it sees more queueing than it can steer against step by step. */
  protected abstract isSuspect(view: BaselineView): boolean;

  /** The permits for a measured capacity where there are far more; see `MinRttFinding`. */
  protected abstract mostFor(capacity: number): number;

  /** The limit after the window, which the bounds are laid on. */
  protected abstract next(view: BaselineView): number;

  /** What it believes besides the baseline. */
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
