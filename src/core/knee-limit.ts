import type { LimitBounds } from "./admission-settings.js";
import { withHeadroom } from "./class-counts.js";
import type { ConcurrencyLimit, ConcurrencySample, WindowedSample } from "./concurrency-limit.js";
import { withinBounds } from "./limit-bounds.js";
import { LatencyByLevel } from "./latency-by-level.js";

const P = (globalThis as any).process?.env ?? {};
const num = (name: string, usual: number): number => Number(P[name] ?? usual);
const windowMsMin = num("K_WIN", 500);
const windowCountMin = 10;
const probeRatio = num("K_PROBE", 0.7);
const marginRatio = num("K_MARGIN", 1.1);
const resolvedRatio = num("K_RES", 0.65);
const idleRatio = 0.005;
const loadRatioMin = 1.03;
const queueMin = num("K_QMIN", 1.5);
const queueExtraMax = num("K_QEXTRA", 8);

export class KneeLimit implements ConcurrencyLimit {
  readonly #limits: LimitBounds;
  readonly #levels = new LatencyByLevel();
  #limit: number;
  #probe: number | undefined;
  #probeCount = 0;
  #isFound = false;
  #serviceMs: number | undefined;
  #knee = Number.NaN;
  #lowest = Number.NaN;
  #highest = Number.NaN;
  #loadRatio: number | undefined;
  #firstMs: number | undefined;
  #count = 0;
  #ratioSum = 0;
  #ratioCount = 0;
  #changeCount = 0;
  #dispersion = 1;
  #inFlightMax = 0;
  #startedMs = Number.NEGATIVE_INFINITY;

  constructor(limits: LimitBounds) {
    this.#limits = limits;
    this.#limit = withinBounds(limits, limits.initial);
  }

  get limit(): number {
    return Math.max(1, Math.floor(this.#probe ?? this.#limit));
  }

  get steadyLimit(): number {
    return Math.floor(this.#limit);
  }

  get baselineMs(): number | undefined {
    return this.#serviceMs;
  }

  criticalLimit(demandRatio: number): number {
    if (demandRatio >= 0.95) return this.limit;
    const base = this.#isFound ? this.#limit : (this.#probe ?? this.#limit);
    return Math.floor(withHeadroom(base, demandRatio));
  }

  shedRatio(): number {
    return 0;
  }

  dropsQueued(): boolean {
    return false;
  }

  record(sample: ConcurrencySample): void {
    const { startMs, endMs, inFlight, outcome, loadRatio } = sample;
    if (outcome === "ignore") return;
    const model = this.#serviceMs === undefined ? 0 : this.#serviceMs * Math.max(1, inFlight / this.#knee);
    if (model > 0) {
      this.#ratioSum += (endMs - startMs) / model;
      this.#ratioCount += 1;
      const off = this.#ratioSum / this.#ratioCount;
      const chance = num("K_Z", 3) * Math.sqrt(this.#dispersion / this.#ratioCount);
      if (this.#ratioCount >= 20 && (off > 1.3 * (1 + chance) || off * 1.3 * (1 + chance) < 1)) {
        this.#levels.forgetAbove(num("K_KEEP", 0.5) * this.#knee);
        this.#ratioSum = 0;
        this.#ratioCount = 0;
        this.#changeCount += 1;
      }
      if (this.#ratioCount >= 60) { this.#ratioSum = 0; this.#ratioCount = 0; }
    }
    this.#levels.add(inFlight, endMs - startMs);
    this.#loadRatio = loadRatio;
    // What began before met another limit.
    if (startMs < this.#startedMs) return;
    this.#firstMs ??= endMs;
    this.#count += 1;
    this.#inFlightMax = Math.max(this.#inFlightMax, inFlight);
    const lengthMs = endMs - this.#firstMs;
    if (this.#count < windowCountMin || lengthMs < windowMsMin) return;
    this.#step(lengthMs, endMs);
    this.#firstMs = undefined;
    this.#count = 0;
    this.#inFlightMax = 0;
  }

  update(_window: WindowedSample): void {}

  read(): void {}

  facts(): Readonly<Record<string, number>> {
    return {
      probeCount: this.#probeCount,
      knee: this.#knee,
      lowest: this.#lowest,
      highest: this.#highest,
      loadRatio: this.#loadRatio ?? 0,
      changeCount: this.#changeCount,
      phi: this.#dispersion,
      ...(this.#serviceMs === undefined ? {} : { serviceMs: this.#serviceMs }),
    };
  }

  #step(lengthMs: number, nowMs: number): void {
    const fit = this.#levels.fit();
    this.#levels.forget(lengthMs, this.#count, fit.knee);
    this.#knee = fit.knee;
    this.#dispersion = fit.dispersion;
    this.#lowest = fit.lowest;
    this.#highest = fit.highest;
    const isReached = this.#inFlightMax >= 0.8 * this.#limit;
    const isBusy = isReached || (this.#loadRatio ?? 0) > 1.1;
    const isUnknown = fit.lowest < resolvedRatio * fit.knee;
    if (fit.isFlat || (fit.highest === Number.POSITIVE_INFINITY && !isBusy)) {
      // No queue is seen.
      this.#probe = undefined;
      this.#serviceMs = fit.serviceMs;
      if (isReached) this.#limit *= this.#limit < 10 ? 2 : 1.5;
      else this.#limit = Math.min(this.#limit, Math.max(50, 4 * this.#inFlightMax));
      this.#limit = withinBounds(this.#limits, this.#limit);
      return;
    }
    if (isUnknown || fit.highest === Number.POSITIVE_INFINITY) {
      // How long a request takes without a queue is not known: less is looked at.
      if (this.#probe === undefined) this.#probeCount += 1;
      this.#probe = Math.max(this.#limits.min, probeRatio * Math.min(this.#probe ?? this.#limit, this.#inFlightMax || 1));
      this.#startedMs = nowMs;
      return;
    }
    this.#probe = undefined;
    this.#isFound = true;
    this.#serviceMs = fit.serviceMs;
    const target = marginRatio * fit.knee + this.#queue(fit.knee);
    this.#limit = withinBounds(this.#limits, target);
  }

  #queue(capacity: number): number {
    if (this.#loadRatio === undefined) return Math.sqrt(capacity);
    const load = Math.max(loadRatioMin, this.#loadRatio);
    const queue = Math.log((1 - 1 / load) / idleRatio) / Math.log(load);
    return Math.max(queueMin, Math.min(queue, capacity + queueExtraMax));
  }
}
