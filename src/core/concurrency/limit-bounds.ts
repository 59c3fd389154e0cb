/** Bounds of a concurrency limit, in permits. */
export interface LimitBounds {
  /** Where a law starts, within the others. */
  readonly initial: number;
  /** At least 1. */
  readonly min: number;
  /** At least `min`. */
  readonly max: number;
}

/** The nearest value within bounds, not rounded; `min` wins over `max`, and 1 over both. */
export function withinBounds(limits: LimitBounds, value: number): number {
  return Math.max(1, limits.min, Math.min(limits.max, value));
}
