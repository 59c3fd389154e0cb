import type { DescriptorEntry } from "../../core/limits/key.js";

/**
 * The longest key that what is seen keeps, in UTF-16 units of its JSON; longer ones are not kept,
 * and counted by those that leave them out.
 */
export const seenKeyCharsMax = 512;

/** The entries of a descriptor as one text; undefined for one that is too long to be kept. */
export function seenKey(entries: readonly DescriptorEntry[]): string | undefined {
  let charCount = 0;
  for (const { key, value } of entries) charCount += key.length + value.length;
  if (charCount > seenKeyCharsMax) return undefined;
  const text = JSON.stringify(entries.flatMap(({ key, value }) => [key, value]));
  return text.length > seenKeyCharsMax ? undefined : text;
}

/** The entries that `seenKey` made a text of. */
export function seenEntries(text: string): readonly DescriptorEntry[] {
  const parts: readonly string[] = JSON.parse(text);
  const entries: DescriptorEntry[] = [];
  for (let i = 0; i + 1 < parts.length; i += 2) {
    entries.push({ key: parts[i] ?? "", value: parts[i + 1] ?? "" });
  }
  return entries;
}

/** Of which rules something is asked. */
export interface RuleSelector {
  /** Only of these domains; undefined: of all. */
  readonly domains: readonly string[] | undefined;
  /** Undefined: of all rules. */
  readonly ruleLabel: string | undefined;
}

/** A rule as what is seen knows it: it stays the same when the policy is read again. */
export interface SeenRule {
  readonly domain: string;
  readonly label: string;
}

/** Tells rules apart. */
export function ruleName({ domain, label }: SeenRule): string {
  return `${domain.length}:${domain}${label}`;
}

/** Whether a rule is one of those that are asked about. */
export function isSelected({ domain, label }: SeenRule, selector: RuleSelector): boolean {
  const { domains, ruleLabel } = selector;
  if (domains !== undefined && !domains.includes(domain)) return false;
  return ruleLabel === undefined || ruleLabel === label;
}
