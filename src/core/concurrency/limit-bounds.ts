import type { LimitBounds } from "../settings/admission-settings.js";

/** The nearest value within bounds, not rounded; `min` wins over `max`, and 1 over both. */
export function withinBounds(limits: LimitBounds, value: number): number {
  return Math.max(1, limits.min, Math.min(limits.max, value));
}
