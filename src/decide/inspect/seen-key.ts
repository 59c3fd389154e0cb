import type { DescriptorEntry } from "../../core/limits/key.js";

/**
 * Maximum length of a recorded key, in UTF-16 units of its JSON. Longer keys are not recorded; the
 * code that skips them counts them.
 */
export const seenKeyCharsMax = 512;

/** Returns the entries of a descriptor as one text. Undefined if it is too long to be recorded. */
export function seenKey(entries: readonly DescriptorEntry[]): string | undefined {
  let charCount = 0;
  for (const { key, value } of entries) charCount += key.length + value.length;
  if (charCount > seenKeyCharsMax) return undefined;
  const text = JSON.stringify(entries.flatMap(({ key, value }) => [key, value]));
  return text.length > seenKeyCharsMax ? undefined : text;
}

/** Returns the entries of a text from `seenKey`. */
export function seenEntries(text: string): readonly DescriptorEntry[] {
  const parts: readonly string[] = JSON.parse(text);
  const entries: DescriptorEntry[] = [];
  for (let i = 0; i + 1 < parts.length; i += 2) {
    entries.push({ key: parts[i] ?? "", value: parts[i + 1] ?? "" });
  }
  return entries;
}

/** Selects rules. */
export interface RuleSelector {
  /** Only rules of these domains. Undefined: of all domains. */
  readonly domains: readonly string[] | undefined;
  /** Undefined: all rules. */
  readonly ruleLabel: string | undefined;
}

/** Identifies a rule. Stays the same when the policy is read again. */
export interface SeenRule {
  readonly domain: string;
  readonly label: string;
}

/** Returns a unique name of a rule. */
export function ruleName({ domain, label }: SeenRule): string {
  return `${domain.length}:${domain}${label}`;
}

/** Whether a rule is selected. */
export function isSelected({ domain, label }: SeenRule, selector: RuleSelector): boolean {
  const { domains, ruleLabel } = selector;
  if (domains !== undefined && !domains.includes(domain)) return false;
  return ruleLabel === undefined || ruleLabel === label;
}
