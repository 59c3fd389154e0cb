import type { LimitBounds, RttStatistic } from "./admission-settings.js";
import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { withinBounds } from "./limit-bounds.js";
import { MinRtt } from "./min-rtt.js";
import { SampleWindow } from "./sample-window.js";

/** What a law that goes by a baseline sees of a window, as things stood when it came. */
export interface BaselineView {
  readonly window: WindowedSample;
  /** The law's limit before the window, not whole, without a dip. */
  readonly limit: number;
  readonly limits: LimitBounds;
  /** The baseline in milliseconds; undefined before anybody was served. */
  readonly minRttMs: number | undefined;
}

/**
 * What laws have in common that hold latency against a baseline (`MinRtt`): windows, dips, and
 * samples that say nothing because they met another limit. A law adds how it steps.
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

  get limit(): number {
    return Math.floor(Math.min(this.#limit, this.#minRtt.dipLimit ?? this.#limit));
  }

  shedRatio(): number {
    return 0;
  }

  dropsQueued(): boolean {
    return false;
  }

  record(sample: ConcurrencySample): void {
    const { dipLimit, settledMs } = this.#minRtt;
    if (sample.endMs < settledMs) return;
    if (dipLimit !== undefined && sample.inFlight > dipLimit) return;
    const window = this.#window.add(sample);
    if (window !== undefined) this.update(window);
  }

  update(window: WindowedSample): void {
    const limits = this.#limits;
    const view = { window, limit: this.#limit, limits, minRttMs: this.#minRtt.minRttMs };
    const finding = this.#minRtt.observe(window, {
      limit: this.#limit,
      limitMin: limits.min,
      isSuspect: this.isSuspect(view),
    });
    if (finding.kind === "measured") {
      const most = this.mostFor(finding.capacity);
      this.#limit = withinBounds(limits, Math.min(this.#limit, most));
    }
    if (finding.kind !== "steady") return;
    this.#rttMs = window.rttMs;
    this.#limit = withinBounds(limits, this.next(view));
  }

  read(): void {}

  facts(): Readonly<Record<string, number>> {
    const { minRttMs, dipCount } = this.#minRtt;
    return {
      ...this.ownFacts(),
      dipCount,
      ...(minRttMs === undefined ? {} : { minRttMs }),
      ...(this.#rttMs === undefined ? {} : { rttMs: this.#rttMs }),
    };
  }

  /** Whether it sees more queueing than it can steer against step by step. */
  protected abstract isSuspect(view: BaselineView): boolean;

  /** The most permits for a measured capacity; see `MinRttFinding`. */
  protected abstract mostFor(capacity: number): number;

  /** The limit after the window, which the bounds are laid on. */
  protected abstract next(view: BaselineView): number;

  /** What it believes besides the baseline. */
  protected abstract ownFacts(): Readonly<Record<string, number>>;
}
