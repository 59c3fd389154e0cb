/** Bounds of a JSON text. */
export interface JsonBounds {
  /** Lists and objects: each one takes as little as two bytes of text, and fifty when parsed. */
  readonly containersMax: number;
  /** Lists, objects, and values after commas. */
  readonly valuesMax: number;
}

/** Reports whether a JSON text, valid or not, is within bounds. Stops reading at the bounds. */
export function isJsonWithin(text: string, { containersMax, valuesMax }: JsonBounds): boolean {
  let containers = 0;
  let commas = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === quote) at = endOfText(text, at + 1);
    else if (unit === comma) commas += 1;
    else if (unit === bracket || unit === brace) containers += 1;
    if (containers > containersMax || containers + commas > valuesMax) return false;
  }
  return true;
}

/** Lists and objects that a text of any length may have. */
const containersFree = 64;

/** Characters of text required for each further list or object. */
const charsPerContainer = 8;

/** Default bounds for a text of any length: as many as 6,000 series of Prometheus have. */
const leanMax: JsonBounds = { containersMax: 32_768, valuesMax: 131_072 };

/**
 * Reports whether a JSON text has so few lists and objects that it takes at most ten times its size
 * when parsed: 64, and one per eight characters. `[[],[],...]` would take twenty times its size.
 *
 * @param max bounds for a text of any length. Default 32,768 lists and objects, 131,072 values
 */
export function isLeanJson(text: string, max: JsonBounds = leanMax): boolean {
  const { containersMax, valuesMax } = max;
  const ownMax = containersFree + text.length / charsPerContainer;
  return isJsonWithin(text, { containersMax: Math.min(containersMax, ownMax), valuesMax });
}

const [quote, comma, bracket, brace, backslash] = [0x22, 0x2c, 0x5b, 0x7b, 0x5c];

/** Returns the index of the quote that ends a string: one after an even number of backslashes. */
function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (before > start && text.charCodeAt(before - 1) === backslash) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}
