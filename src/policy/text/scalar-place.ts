import { Scalar } from "yaml";
import type { TextRange } from "../problems/source-text.js";

/**
 * Where a part of a scalar's value stands in the file's text, so that a caret can show it. Known
 * for scalars whose characters stand in the text as they are: plain and single-quoted ones of one
 * line, double-quoted ones without escapes, and block scalars (`|`). Of others it is the whole
 * scalar.
 *
 * @param text the file's text
 * @param part of the value, in UTF-16 units; one that is empty marks the character after it
 */
export function placeInScalar(text: string, node: Scalar.Parsed, part: TextRange): TextRange {
  const [start, end] = node.range;
  const places = placesOf(text.slice(start, end), node);
  const from = places?.[part.start];
  if (places === undefined || from === undefined) return { start, end };
  const last = places[Math.max(part.start, part.end - 1)] ?? from;
  return { start: start + from, end: start + last + 1 };
}

/** The offset of each character of the value within the scalar's text, and of what follows. */
function placesOf(written: string, { type, value }: Scalar.Parsed): readonly number[] | undefined {
  if (typeof value !== "string") return undefined;
  const places = findPlaces(written, type, value);
  // What the characters say must be what they mean; anything else is shown as a whole.
  const isSame = places?.every((place, i) => i === value.length || written[place] === value[i]);
  return isSame === true && places?.length === value.length + 1 ? places : undefined;
}

function findPlaces(
  written: string,
  type: Scalar.Parsed["type"],
  value: string,
): readonly number[] | undefined {
  if (type === Scalar.PLAIN) return Array.from({ length: value.length + 1 }, (_, i) => i);
  if (type === Scalar.QUOTE_DOUBLE)
    return Array.from({ length: value.length + 1 }, (_, i) => i + 1);
  if (type === Scalar.QUOTE_SINGLE) return singleQuotedPlaces(written, value);
  return type === Scalar.BLOCK_LITERAL ? literalPlaces(written, value) : undefined;
}

/** A quote in it is written twice. */
function singleQuotedPlaces(written: string, value: string): readonly number[] {
  const places = [1];
  for (const character of value.split("")) {
    const last = places[places.length - 1] ?? 0;
    places.push(last + (character === "'" && written[last + 1] === "'" ? 2 : 1));
  }
  return places;
}

/**
 * Lines of the value are lines of the text behind the header, each after the indentation that is
 * not part of it: of `|2` lines some of the spaces are.
 */
function literalPlaces(written: string, value: string): readonly number[] {
  const lines = value.split("\n");
  const writtenIndent = /\n( *)[^\s]/.exec(written)?.[1]?.length ?? 0;
  const valueIndent = lines.find((line) => line.trim() !== "")?.search(/[^ ]/) ?? 0;
  const indent = writtenIndent - valueIndent;
  const places: number[] = [];
  let lineStart = written.indexOf("\n") + 1;
  for (const line of lines) {
    const first = line === "" ? lineStart : lineStart + indent;
    for (let i = 0; i <= line.length; i += 1) places.push(first + i);
    lineStart = written.indexOf("\n", lineStart) + 1;
  }
  return places;
}
