/** Milliseconds of each unit. Source: gRPC over HTTP2, "TimeoutUnit". */
const unitMs: ReadonlyMap<string, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1_000],
  ["m", 1],
  ["u", 0.001],
  ["n", 0.000_001],
]);

/** Source: gRPC over HTTP2, "TimeoutValue": at most eight digits. */
const timeout = /^([0-9]{1,8})([HMSmun])$/;

/** The largest number with eight digits. */
const timeoutValueMax = 99_999_999;

/**
 * Parses a `grpc-timeout` into milliseconds with fractions: `1S` is 1,000. Undefined if invalid.
 * Zero is accepted, as in other servers: such a caller has given up already.
 *
 * Source: gRPC over HTTP2, "Timeout".
 */
export function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit] = timeout.exec(text) ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  const ms = unitMs.get(unit);
  return ms === undefined ? undefined : Number(digits) * ms;
}

/**
 * Formats a time as a `grpc-timeout`: in milliseconds, or in the smallest larger unit whose number
 * fits. Rounded down, so that it never promises more, but at least 1 ms, because 0 is not valid.
 *
 * Example: 250.9 is `250m`; 200,000,000 (56 hours) is `200000S`.
 *
 * @param ms above 0, at most 99,999,999 hours
 */
export function formatGrpcTimeout(ms: number): string {
  for (const [unit, lengthMs] of wholeUnits) {
    const value = Math.floor(ms / lengthMs);
    if (value <= timeoutValueMax) return `${Math.max(1, value)}${unit}`;
  }
  return `${timeoutValueMax}H`;
}

/** Units of at least a millisecond, smallest first. */
const wholeUnits: readonly (readonly [unit: string, lengthMs: number])[] = [
  ["m", 1],
  ["S", 1_000],
  ["M", 60_000],
  ["H", 3_600_000],
];
