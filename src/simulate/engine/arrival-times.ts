import type { RatePoint, ScenarioRate } from "../../policy/scenario/scenario-rate.js";

/** A period in which a rate is multiplied. */
export interface RateFactor {
  readonly fromMs: number;
  readonly toMs: number;
  readonly factor: number;
}

interface ArrivalTimesParts {
  readonly rate: ScenarioRate;
  /** Rates in the file of each trace. */
  readonly traces: ReadonlyMap<string, readonly number[]>;
  readonly factors: readonly RateFactor[];
  readonly untilMs: number;
}

/** A period in which the rate changes linearly. */
interface Piece {
  readonly startMs: number;
  readonly endMs: number;
  readonly startPerSecond: number;
  readonly endPerSecond: number;
}

/**
 * Converts gaps at a rate of one into arrival times at a changing rate. The times are exact: it
 * inverts the expected number of arrivals until a time instead of sampling in steps.
 */
export class ArrivalTimes {
  readonly #pieces: readonly Piece[];
  readonly #untilMs: number;
  #index = 0;
  #atMs = 0;

  constructor(parts: ArrivalTimesParts) {
    this.#pieces = piecesOf(parts);
    this.#untilMs = parts.untilMs;
  }

  /** Returns the time by which `units` more arrivals are expected; Infinity if after the end. */
  next(units: number): number {
    let left = units;
    for (;;) {
      const piece = this.#pieces[this.#index];
      if (piece === undefined) return Number.POSITIVE_INFINITY;
      const { startMs, endMs, startPerSecond, endPerSecond } = piece;
      const slope = (endPerSecond - startPerSecond) / (endMs - startMs);
      const perSecond = startPerSecond + slope * (this.#atMs - startMs);
      const restMs = endMs - this.#atMs;
      const expected = (restMs * (perSecond + endPerSecond)) / 2_000;
      if (expected >= left) {
        this.#atMs = Math.min(endMs, this.#atMs + timeFor(left * 1_000, perSecond, slope));
        return this.#atMs < this.#untilMs ? this.#atMs : Number.POSITIVE_INFINITY;
      }
      left -= expected;
      this.#index += 1;
      this.#atMs = endMs;
    }
  }
}

/** Returns the time until `area` is reached: perSecond x + slope x^2 / 2 = area. */
function timeFor(area: number, perSecond: number, slope: number): number {
  if (area === 0) return 0;
  const root = Math.sqrt(Math.max(0, perSecond * perSecond + 2 * slope * area));
  return (2 * area) / (perSecond + root);
}

function piecesOf({ rate, traces, factors, untilMs }: ArrivalTimesParts): readonly Piece[] {
  const points = pointsOf(rate, traces);
  const periodMs = rate.kind === "points" ? rate.periodMs : undefined;
  const edges = new Set([0, untilMs]);
  for (const { fromMs, toMs } of factors) edges.add(fromMs).add(toMs);
  for (let startMs = 0; startMs < untilMs; startMs += periodMs ?? Number.POSITIVE_INFINITY) {
    for (const { atMs } of points) edges.add(startMs + atMs);
  }
  const sorted = [...edges].filter((ms) => ms <= untilMs).sort((one, other) => one - other);
  const pieces: Piece[] = [];
  for (const [i, startMs] of sorted.entries()) {
    const endMs = sorted[i + 1];
    if (endMs === undefined) break;
    const localMs = periodMs === undefined ? startMs : startMs % periodMs;
    const factor = factors.reduce(
      (product, one) =>
        startMs >= one.fromMs && startMs < one.toMs ? product * one.factor : product,
      1,
    );
    const [startPerSecond, endPerSecond] = ratesIn(points, localMs, localMs + endMs - startMs);
    const ends = { startPerSecond: factor * startPerSecond, endPerSecond: factor * endPerSecond };
    pieces.push({ startMs, endMs, ...ends });
  }
  return pieces;
}

/** Returns the rates at both ends of a period that contains no point. */
function ratesIn(
  points: readonly RatePoint[],
  startMs: number,
  endMs: number,
): readonly [start: number, end: number] {
  const index = lastIndexAt(points, startMs);
  const [before, after] = [points[index] ?? points[0], points[index + 1]];
  if (before === undefined) return [0, 0];
  if (after === undefined || index === -1) return [before.perSecond, before.perSecond];
  const spanMs = after.atMs - before.atMs;
  const rateAt = (ms: number): number =>
    before.perSecond + ((after.perSecond - before.perSecond) * (ms - before.atMs)) / spanMs;
  return [rateAt(startMs), rateAt(endMs)];
}

/** Returns the index of the last point at or before a time; -1 if there is none. */
function lastIndexAt(points: readonly RatePoint[], ms: number): number {
  let low = -1;
  let high = points.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((points[middle]?.atMs ?? 0) <= ms) low = middle;
    else high = middle - 1;
  }
  return low;
}

function pointsOf(rate: ScenarioRate, traces: ArrivalTimesParts["traces"]): readonly RatePoint[] {
  if (rate.kind === "points") return rate.points;
  const rates = traces.get(rate.file) ?? [];
  return rates.flatMap((perSecond, i) => [
    { atMs: i * rate.stepMs, perSecond },
    { atMs: (i + 1) * rate.stepMs, perSecond },
  ]);
}
