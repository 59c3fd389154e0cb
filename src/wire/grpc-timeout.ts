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

/**
 * What a `grpc-timeout` says, in milliseconds with fractions: `1S` is 1,000. Undefined for what is
 * none. Zero is let through, as other servers do: such a caller has given up already.
 *
 * Source: gRPC over HTTP2, "Timeout".
 */
export function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit] = timeout.exec(text) ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  const ms = unitMs.get(unit);
  return ms === undefined ? undefined : Number(digits) * ms;
}
