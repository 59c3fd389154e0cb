import { isMap, isScalar, isSeq, Scalar } from "yaml";
import { quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import type { ContentNode } from "./aliases.js";

/** Returns a string, or a whole number, true or false as written; undefined for anything else. */
export function scalarText(node: ContentNode): string | undefined {
  if (!isScalar(node)) return undefined;
  if (typeof node.value === "string") return node.value;
  const written = String(node.source ?? "");
  if (typeof node.value === "boolean") return written;
  return /^[-+]?[0-9]+$|^0[xo]/.test(written) ? written : undefined;
}

/** Digits that YAML 1.1 and 1.2 read alike. YAML 1.1 reads a leading zero as octal. */
export const wholeNumber = /^[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$/;

/** Returns the problem of a scalar that is not a whole number. */
export function wrongWhole(node: Scalar.Parsed, written: string, expected: string): Finding {
  const quoted = quoteText(written);
  if (node.type === Scalar.PLAIN) {
    const isOctal = /^[-+]?0[0-9]+$/.test(written);
    const message = `${quoted} ${isOctal ? "begins with a zero" : "is not a whole number"}`;
    return { id: "HG140", message, expected };
  }
  const message = `${quoted} is text, not a number`;
  const suggestion = /^(?:0|[1-9][0-9]{0,9})$/.test(written) ? written : undefined;
  return { id: "HG140", message, expected, suggestion };
}

/**
 * Returns the meaning of a plain word in YAML 1.1, as envoyproxy/ratelimit reads it: `yes` is true.
 * Undefined for other words, and for texts in quotes.
 *
 * Source: https://yaml.org/type/bool.html
 */
export function ratelimitBoolean(node: Scalar.Parsed): boolean | undefined {
  if (node.type !== Scalar.PLAIN || typeof node.value !== "string") return undefined;
  if (/^(?:[yY]|yes|Yes|YES|on|On|ON)$/.test(node.value)) return true;
  return /^(?:[nN]|no|No|NO|off|Off|OFF)$/.test(node.value) ? false : undefined;
}

/** Returns the flag that a wrong one probably meant. */
export function suggestedFlag(written: string): string | undefined {
  return meantFlags.get(written.toLowerCase());
}

const meantFlags: ReadonlyMap<string, string> = new Map([
  ...["yes", "on", "y", "true", "1"].map((word) => [word, "true"] as const),
  ...["no", "off", "n", "false", "0"].map((word) => [word, "false"] as const),
]);

/** Describes the kind of a node, for messages. */
export function kindOf(node: ContentNode): string {
  if (isMap(node)) return "a map";
  if (isSeq(node)) return "a list";
  return isScalar(node) && node.value === null ? "empty" : "a single value";
}
