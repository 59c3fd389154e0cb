import { grpcTimeoutHeader } from "../../../core/admission/deadline.js";

/**
 * What Headgate sets in every policy, of requests and of refusals: patterns, shorter than the names
 * `grpc-status-details-bin` and `x-headgate-reason`.
 */
const alwaysSet: readonly string[] = [
  grpcTimeoutHeader,
  "grpc-status-[a-z-]+",
  "x-headgate-[a-z]+",
  "retry-after",
  "content-type",
];

/**
 * The length of a pattern that Envoy surely takes. It refuses programs of more than 100 steps, and
 * one of 103 characters has 94. Source: Envoy, `re2.max_program_size.error_level`.
 */
const patternLengthMax = 104;

/**
 * A pattern for the headers that Headgate sets: those of every policy, and the names that a policy
 * chose. Beginnings that several share stand once. Undefined where it would be too long for Envoy.
 *
 * @param names in lower case; of the letters that header names are made of
 */
export function mutableHeaderPattern(names: readonly string[]): string | undefined {
  const byBeginning = new Map<string, string[]>();
  for (const name of [...new Set([...alwaysSet, ...names.map(literal)])].sort()) {
    const end = name.indexOf("-") + 1;
    const rest = byBeginning.get(name.slice(0, end));
    if (rest === undefined) byBeginning.set(name.slice(0, end), [name.slice(end)]);
    else rest.push(name.slice(end));
  }
  const parts = [...byBeginning].map(([beginning, rests]) =>
    rests.length === 1 ? beginning + rests.join("") : `${beginning}(${rests.join("|")})`,
  );
  const pattern = parts.join("|");
  return pattern.length > patternLengthMax ? undefined : pattern;
}

/** Header names may hold a few signs that mean something in a pattern. Source: RFC 9110, token. */
function literal(text: string): string {
  return text.replace(/[.*+^$|?(){}[\]\\]/g, "\\$&");
}
