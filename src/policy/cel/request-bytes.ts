/** The bounds of HEADGATE_REQUEST_BYTES_MAX, in bytes; by default for Envoy's 60 KiB. */
export const requestBytesBounds = { min: 65_536, defaultValue: 262_144, max: 1_048_576 } as const;

/** A message holds a header as often as descriptors, attributes or header fields name it. */
const bytesPerHeaderByte = 4;

/** The most KiB of a request's headers that messages can be made large enough for. */
export const headersKibReadMax = requestBytesBounds.max / (bytesPerHeaderByte * 1_024);

/**
 * The HEADGATE_REQUEST_BYTES_MAX that holds requests with so many KiB of headers; 96 KiB need
 * 393,216.
 *
 * @param headersKib Undefined: the default of Envoy, 60
 */
export function requestBytesFor(headersKib: number | undefined): number {
  const { defaultValue, max } = requestBytesBounds;
  const bytes = headersKib === undefined ? defaultValue : bytesPerHeaderByte * 1_024 * headersKib;
  return Math.min(Math.max(bytes, defaultValue), max);
}
