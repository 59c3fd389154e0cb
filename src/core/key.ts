import type { Limit, LimitKey, LimitUnit } from "./limit.js";

/**
 * One entry of a request's descriptor.
 *
 * Source: envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry.
 */
export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** Changes when the stored state changes its meaning, so that old state is never misread. */
const formatVersion = "1";

/** How the bucket under a key is decided; each keeps its state apart. */
const gcraAlgorithm = "g";

/**
 * The key of a policy limit's bucket for the entries of one descriptor.
 *
 * Every part is preceded by its length, so no choice of values makes two identities meet. Rate,
 * burst and position are left out: editing them keeps what was used. A limit without a name is
 * known by its period. Example: `limitKey("shop", [{key: "user", value: "7"}], {…minute})` is
 * `1g4:shop4:user1:7p3:60s`, behind the store's own prefix.
 *
 * Texts must be well-formed UTF-16, which both of the API's encodings see to: a store that keeps
 * UTF-8 cannot tell one lone surrogate from another.
 */
export function limitKey(
  domain: string,
  entries: readonly DescriptorEntry[],
  limit: Pick<Limit, "name" | "periodUs">,
): LimitKey {
  const identity =
    limit.name === undefined ? `p${part(period(limit.periodUs))}` : `n${part(limit.name)}`;
  return (descriptorPrefix(domain, entries) + identity) as LimitKey;
}

/** The key of a limit that the request itself carried; never meets a policy limit's bucket. */
export function overrideKey(
  domain: string,
  entries: readonly DescriptorEntry[],
  unit: { readonly unit: LimitUnit; readonly unitMultiplier: number },
): LimitKey {
  const identity = `o${part(`${unit.unitMultiplier}${unit.unit}`)}`;
  return (descriptorPrefix(domain, entries) + identity) as LimitKey;
}

function descriptorPrefix(domain: string, entries: readonly DescriptorEntry[]): string {
  let prefix = `${formatVersion}${gcraAlgorithm}${part(domain)}`;
  for (const entry of entries) prefix += part(entry.key) + part(entry.value);
  return prefix;
}

function part(text: string): string {
  return `${text.length}:${text}`;
}

function period(periodUs: number): string {
  return `${periodUs / 1_000_000}s`;
}
