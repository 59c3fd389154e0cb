import type { RequestFacts } from "./request-facts.js";

/** What a part of a condition can be; undefined: the request does not say it (an error in CEL). */
type PartValue = string | number | boolean;

/** Reads a part of a condition from a request. Never throws. */
export type PartReader = (facts: RequestFacts) => PartValue | undefined;

/** Tests of a text by another one, by their names in CEL. */
export const textTests: ReadonlyMap<string, (whole: string, part: string) => boolean> = new Map([
  ["startsWith", (whole, part) => whole.startsWith(part)],
  ["endsWith", (whole, part) => whole.endsWith(part)],
  ["contains", (whole, part) => whole.includes(part)],
]);

/** Operators that compare. */
type ComparisonOperator = "==" | "!=" | "<" | "<=" | ">" | ">=";

/** What they say of two values of one type; texts are ordered by their UTF-16 units. */
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

/** A value made of another one; not known where that is not known. */
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

/** A value made of two others; not known where one of them is not known. */
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
 * `||` where `isAny`, else `&&`: what decides alone does so beside what is not known, on either
 * side. Source: CEL language definition, "Logical Operators".
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

/** Code points, as CEL counts them. */
export function characterCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The text with A to Z in lower case, and all else as it is. */
export function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
