import { policyContent } from "../policy/format/format-policy.js";
import type { ParsedPolicy, PolicyText } from "../policy/parse.js";
import type { GeneratedPolicy } from "./base/generator.js";

/** Name of a policy whose files do not name it. */
const defaultName = "policy";

interface PolicySourceTexts {
  readonly texts: readonly PolicyText[];
  /** Returns the short hash by which people identify a policy. */
  readonly hashOf: (texts: readonly PolicyText[]) => string;
}

/** Converts a parsed policy into the form that generators take. */
export function generatedPolicy(
  parsed: Extract<ParsedPolicy, { kind: "policy" }>,
  { texts, hashOf }: PolicySourceTexts,
): GeneratedPolicy {
  const {
    name = defaultName,
    domains,
    rules,
    services,
    quotas,
    waitingRooms,
    budgets,
    proxies,
  } = parsed;
  // Changed comments, reordered names or another version of Headgate must not make a file stale.
  const hash = hashOf(texts.map(({ text }) => ({ file: "", text: policyContent(text) })));
  return {
    name,
    domains,
    rules,
    services,
    quotas,
    waitingRooms,
    budgets,
    proxies,
    hash,
    texts,
  };
}
