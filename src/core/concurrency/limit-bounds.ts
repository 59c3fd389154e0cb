/** Bounds of a concurrency limit, in permits. */
export interface LimitBounds {
  /** Initial limit, from `min` to `max`. */
  readonly initial: number;
  /** At least 1. */
  readonly min: number;
  /** At least `min`. */
  readonly max: number;
}

/** Returns the nearest value within bounds, not rounded. `min` overrides `max`, and 1 both. */
export function withinBounds(limits: LimitBounds, value: number): number {
  return Math.max(1, limits.min, Math.min(limits.max, value));
}
