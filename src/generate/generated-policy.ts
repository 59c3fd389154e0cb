import type { ParsedPolicy, PolicyText } from "../policy/parse.js";
import type { GeneratedPolicy } from "./generator.js";

/** What a policy is called whose files give it no name. */
const usualName = "policy";

/**
 * A policy that was understood, as generators take it.
 *
 * @param sources the texts that it was read from, and the short hash of them all
 */
export function generatedPolicy(
  parsed: Extract<ParsedPolicy, { kind: "policy" }>,
  { texts, hash }: { readonly texts: readonly PolicyText[]; readonly hash: string },
): GeneratedPolicy {
  const { name = usualName, domains, rules, services, quotas, proxies } = parsed;
  return { name, hash, texts, domains, rules, services, quotas, proxies };
}
