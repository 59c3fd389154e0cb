/** About what an object or a list takes, in bytes. */
const objectBytes = 64;

/** Texts from this length on are counted once: who says one again says the same. */
const sharedCharsMin = 64;

/** About what a value takes, in bytes; what stands in it twice takes its place once. */
export function sizeOf(value: unknown): number {
  const seen = new Set<unknown>();
  const left: unknown[] = [value];
  let size = 0;
  while (left.length > 0) {
    const one = left.pop();
    // A part of the message where it stands is no copy.
    if (one instanceof Uint8Array || seen.has(one)) continue;
    if (typeof one === "string") {
      size += one.length;
      if (one.length >= sharedCharsMin) seen.add(one);
    } else if (typeof one === "object" && one !== null) {
      size += objectBytes;
      seen.add(one);
      for (const inner of one instanceof Map ? [...one].flat() : Object.values(one)) {
        left.push(inner);
      }
    }
  }
  return size;
}
