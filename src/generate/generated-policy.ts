import { policyContent } from "../policy/format/format-policy.js";
import type { ParsedPolicy, PolicyText } from "../policy/parse.js";
import type { GeneratedPolicy } from "./base/generator.js";

/** What a policy is called whose files give it no name. */
const defaultName = "policy";

interface PolicySourceTexts {
  readonly texts: readonly PolicyText[];
  /** A short hash, by which people know policies. */
  readonly hashOf: (texts: readonly PolicyText[]) => string;
}

/** A policy that was understood, as generators take it. */
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
  // Another comment, or another order of names, makes no file stale; nor does another Headgate.
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
