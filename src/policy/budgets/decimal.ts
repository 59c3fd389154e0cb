import { isScalar } from "yaml";
import { quoteText } from "../problems/problem.js";
import { any, readBy, text } from "../text/form.js";
import { type PlacedValue, placed } from "../text/object.js";

/** A decimal number, exactly as written. */
export interface Decimal {
  /** All digits, without the point. */
  readonly digits: bigint;
  /** Number of digits after the point. */
  readonly scale: number;
}

const decimalPattern = /^(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,12})?$/;

const decimalExpected = "a number in digits, such as 2.50";

/** Parses a decimal number in digits, without sign and exponent. */
export function parseDecimal(written: string): Decimal | undefined {
  if (!decimalPattern.test(written)) return undefined;
  const [whole = "", fraction = ""] = written.split(".");
  return { digits: BigInt(whole + fraction), scale: fraction.length };
}

/** Converts units to whole parts; undefined if the number is finer than the parts. */
export function countOfParts({ digits, scale }: Decimal, partsPerUnit: bigint): bigint | undefined {
  const divisor = 10n ** BigInt(scale);
  const parts = digits * partsPerUnit;
  return parts % divisor === 0n ? parts / divisor : undefined;
}

/** A decimal number, with or without quotes. */
export const decimal = placed(
  readBy<Decimal>(
    any({ kind: "number", bounds: { min: 0, max: 1e16 } }, text({ charsMax: 32 }, decimalPattern)),
    (reader, place) => {
      const node = reader.required(place, decimalExpected);
      const content = reader.contentOf(place);
      if (node === undefined || content === undefined) return undefined;
      const written = isScalar(content) ? String(content.source ?? "") : "";
      const read = parseDecimal(written);
      if (read !== undefined) return read;
      const message = isScalar(content)
        ? `${quoteText(written)} is not a number in digits`
        : "this is not a number";
      return reader.reportContent(node, { id: "HG202", message, expected: decimalExpected });
    },
  ),
);

/** A decimal number and its place. */
export type PlacedDecimal = PlacedValue<Decimal>;
