/**
 * The shortest lease of a permit, in milliseconds: four times Envoy's default time-out, which
 * begins only when a request has been read to its end. Callers' deadlines are claims, too: if they
 * could end a lease while the service is still at work, a header would switch its limit off.
 */
export const permitLeaseMsMin = 60_000;

/** What bounds the time that a request may take. */
export interface LeaseBounds {
  /** `timeouts.request` of its service, which is Envoy's; 0: for ever. */
  readonly requestMs: number;
  /** What is left of its caller's time, in milliseconds; undefined where nobody said. */
  readonly remainingMs: number | undefined;
  /** The lease where a service has no time-out, in milliseconds. */
  readonly leaseMsMax: number;
}

/**
 * How long a permit is held for a request of which nobody says how it ended, in milliseconds: until
 * its deadline or its service's time-out, but `permitLeaseMsMin` at least.
 *
 * Example: a time-out of ten minutes and a caller that waits for two: 120,000.
 */
export function permitLeaseMs({ requestMs, remainingMs, leaseMsMax }: LeaseBounds): number {
  const endMs = requestMs === 0 ? leaseMsMax : requestMs;
  const leastMs = Math.min(permitLeaseMsMin, leaseMsMax);
  return Math.max(leastMs, Math.min(endMs, remainingMs ?? endMs));
}
