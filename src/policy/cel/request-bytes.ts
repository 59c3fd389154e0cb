/** Bounds of HEADGATE_REQUEST_BYTES_MAX, in bytes. The default fits Envoy's 60 KiB of headers. */
export const requestBytesBounds = { min: 65_536, defaultValue: 262_144, max: 1_048_576 } as const;

/** A message repeats a header for each descriptor, attribute or header field that names it. */
const bytesPerHeaderByte = 4;

/** Maximum KiB of a request's headers for which messages can be made large enough. */
export const headersKibReadMax = requestBytesBounds.max / (bytesPerHeaderByte * 1_024);

/**
 * Returns the HEADGATE_REQUEST_BYTES_MAX for requests with that many KiB of headers; 96 KiB need
 * 393,216.
 *
 * @param headersKib Undefined: the default of Envoy, 60
 */
export function requestBytesFor(headersKib: number | undefined): number {
  const { defaultValue, max } = requestBytesBounds;
  const bytes = headersKib === undefined ? defaultValue : bytesPerHeaderByte * 1_024 * headersKib;
  return Math.min(Math.max(bytes, defaultValue), max);
}
