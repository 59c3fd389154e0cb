/** Longest readable part of a name, in characters. */
const slugCharsMax = 21;

/**
 * A text as part of a path or an id: lower case, digits and `-`. One that is not so by itself ends
 * in a hash of the whole, so that two texts stay two.
 */
export function slug(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const cut = plain.slice(0, slugCharsMax).replaceAll(/^-+|-+$/g, "");
  if (cut === text) return text;
  return [...(cut === "" ? [] : [cut]), hash(text)].join("-");
}

/** 32 bits in hexadecimal. Source: Fowler, Noll and Vo, FNV-1a. */
function hash(text: string): string {
  let bits = 0x811c9dc5;
  for (const character of text) {
    bits ^= character.codePointAt(0) ?? 0;
    bits = Math.imul(bits, 0x01000193) >>> 0;
  }
  return bits.toString(16).padStart(8, "0");
}

/** Longest id of a dashboard that Grafana takes, in characters. */
export const uidCharsMax = 40;

/** The id of a dashboard: the same for the same policy's name and what it is of. */
export function dashboardUid(policy: string, of: string): string {
  return `headgate-${slug(of)}`.slice(0, uidCharsMax - 9).concat("-", hash(`${policy}\n${of}`));
}
