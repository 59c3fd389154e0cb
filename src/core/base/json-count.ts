/** How much a JSON text may have. */
export interface JsonBounds {
  /** Lists and objects: each is made of two bytes, and takes fifty. */
  readonly containersMax: number;
  /** Those, and the values behind commas. */
  readonly valuesMax: number;
}

/** Whether a JSON text, right or wrong, is within bounds; it is read no further than to these. */
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

/** Lists and objects that any text may have, however short it is. */
const containersFree = 64;

/** Characters of a text for each further list or object. */
const charsPerContainer = 8;

/** The most of any text, however long: six thousand series of Prometheus have as many. */
const leanMax: JsonBounds = { containersMax: 32_768, valuesMax: 131_072 };

/**
 * Whether a JSON text has so few lists and objects that it takes no more than ten times its bytes:
 * one for each eight characters, and 64. `[[],[],...]` would take twenty times.
 *
 * @param max the most of any text, however long. Default 32,768 lists and objects, 131,072 values
 */
export function isLeanJson(text: string, max: JsonBounds = leanMax): boolean {
  const { containersMax, valuesMax } = max;
  const ownMax = containersFree + text.length / charsPerContainer;
  return isJsonWithin(text, { containersMax: Math.min(containersMax, ownMax), valuesMax });
}

const [quote, comma, bracket, brace, backslash] = [0x22, 0x2c, 0x5b, 0x7b, 0x5c];

/** Where the quote is that ends a text: one behind an even number of backslashes. */
function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (before > start && text.charCodeAt(before - 1) === backslash) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}
