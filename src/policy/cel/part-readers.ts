import type { RequestFacts } from "./request-facts.js";

/** The value of a part; undefined if the request does not contain it (an error in CEL). */
type PartValue = string | number | boolean;

/** Reads a part of a condition from a request. Never throws. */
export type PartReader = (facts: RequestFacts) => PartValue | undefined;

/** Tests of a text by another one, by their names in CEL. */
export const textTests: ReadonlyMap<string, (whole: string, part: string) => boolean> = new Map([
  ["startsWith", (whole, part) => whole.startsWith(part)],
  ["endsWith", (whole, part) => whole.endsWith(part)],
  ["contains", (whole, part) => whole.includes(part)],
]);

/** Comparison operators. */
type ComparisonOperator = "==" | "!=" | "<" | "<=" | ">" | ">=";

/** Their results for two values of one type; texts are ordered by UTF-16 units. */
export const comparisons: Readonly<
  Record<ComparisonOperator, (left: PartValue, right: PartValue) => boolean>
> = {
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
};

/** Maps a value; unknown if the value is unknown. */
export function mapOne(
  reader: PartReader | undefined,
  map: (value: PartValue) => PartValue,
): PartReader | undefined {
  return (
    reader &&
    ((facts) => {
      const value = reader(facts);
      return value === undefined ? undefined : map(value);
    })
  );
}

/** Combines two values; unknown if one of them is unknown. */
export function mapTwo(
  left: PartReader | undefined,
  right: PartReader | undefined,
  map: (left: PartValue, right: PartValue) => PartValue,
): PartReader | undefined {
  if (left === undefined || right === undefined) return undefined;
  return (facts) => {
    const one = left(facts);
    const other = right(facts);
    return one === undefined || other === undefined ? undefined : map(one, other);
  };
}

/**
 * Joins by `||` if `isAny`, else by `&&`. A side that decides alone does so even if the other side
 * is unknown. Source: CEL language definition, "Logical Operators".
 */
export function joinReaders(
  left: PartReader | undefined,
  right: PartReader | undefined,
  isAny: boolean,
): PartReader | undefined {
  if (left === undefined || right === undefined) return undefined;
  return (facts) => {
    const one = left(facts);
    if (one === isAny) return isAny;
    const other = right(facts);
    if (other === isAny) return isAny;
    return one === undefined || other === undefined ? undefined : !isAny;
  };
}

/** Counts code points, as CEL does. */
export function characterCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Returns the text with A to Z in lower case, and everything else unchanged. */
export function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
