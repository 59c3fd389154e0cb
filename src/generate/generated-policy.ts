import type { ParsedPolicy, PolicyText } from "../policy/parse.js";
import type { GeneratedPolicy } from "./base/generator.js";

/** What a policy is called whose files give it no name. */
const defaultName = "policy";

/** What a policy was read from. */
export interface PolicySourceTexts {
  readonly texts: readonly PolicyText[];
  /** A short hash, by which people know policies. */
  readonly hashOf: (texts: readonly PolicyText[]) => string;
}

/** A policy that was understood, as generators take it. */
export function generatedPolicy(
  parsed: Extract<ParsedPolicy, { kind: "policy" }>,
  { texts, hashOf }: PolicySourceTexts,
): GeneratedPolicy {
  const { name = defaultName, domains, rules, services, quotas, proxies } = parsed;
  const meaning = { name, domains, rules, services, quotas, proxies };
  // Another comment, or another order of fields, makes no file stale.
  return { ...meaning, hash: hashOf([{ file: name, text: textOf(meaning) }]), texts };
}

function textOf(meaning: Omit<GeneratedPolicy, "hash" | "texts">): string {
  return JSON.stringify(meaning, (_, value: unknown) => {
    if (value instanceof Map || value instanceof Set) return [...value];
    if (value instanceof RegExp) return value.source;
    return typeof value === "bigint" ? String(value) : value;
  });
}
