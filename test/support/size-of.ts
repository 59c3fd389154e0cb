/** About what an object or a list takes, in bytes. */
const objectBytes = 64;

/** About what a value takes, in bytes. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  // A part of the message where it stands, which is no copy.
  if (value instanceof Uint8Array || typeof value !== "object" || value === null) return 0;
  const inner = value instanceof Map ? [...value.entries()].flat() : Object.values(value);
  return inner.reduce<number>((sum, one) => sum + sizeOf(one), objectBytes);
}
