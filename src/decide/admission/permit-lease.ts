/**
 * Minimum lease of a permit, in milliseconds: four times Envoy's default timeout, which starts only
 * when a request has been read to its end. Callers' deadlines are only claims: if they could end a
 * lease while the service still works, a header would disable its limit.
 */
export const permitLeaseMsMin = 60_000;

/** Bounds of the duration of a request. */
export interface LeaseBounds {
  /** `timeouts.request` of its service, which is Envoy's timeout. 0: none. */
  readonly requestMs: number;
  /** Remaining time of the caller, in milliseconds. Undefined without a deadline. */
  readonly remainingMs: number | undefined;
  /** The lease if a service has no timeout, in milliseconds. */
  readonly leaseMsMax: number;
}

/**
 * Returns how long a request whose end is never reported may hold a permit, in milliseconds: until
 * its deadline or its service's timeout, but at least `permitLeaseMsMin`.
 *
 * Example: a timeout of ten minutes and a caller that waits for two: 120,000.
 */
export function permitLeaseMs({ requestMs, remainingMs, leaseMsMax }: LeaseBounds): number {
  const endMs = requestMs === 0 ? leaseMsMax : requestMs;
  const leastMs = Math.min(permitLeaseMsMin, leaseMsMax);
  return Math.max(leastMs, Math.min(endMs, remainingMs ?? endMs));
}
