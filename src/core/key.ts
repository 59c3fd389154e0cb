import type { Algorithm, Limit, LimitKey, PathStep } from "./limit.js";

/**
 * One entry of a request's descriptor.
 *
 * Source: envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry.
 */
export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** An entry as a key names it: a long value is known by its digest alone. */
export interface KeyEntry extends DescriptorEntry {
  /** Hexadecimal, of one fixed length and strong against collisions; stands for the value. */
  readonly digest?: string;
}

/** The longest value that stands in a key as it is, in UTF-16 units. */
export const keyValueLengthMax = 256;

/** Changes when the stored state changes its meaning, so that old state is never misread. */
const formatVersion = "2";

/** How the bucket under a key is decided; each keeps its state apart. */
const algorithmLetters: Readonly<Record<Algorithm["kind"], string>> = {
  gcra: "g",
  fixed_window: "w",
};

/**
 * The key of a policy limit's bucket for the entries of one descriptor.
 *
 * Every part is preceded by its length, so no choice of values makes two identities meet. Rate,
 * burst and position are left out: editing them keeps what was used. A limit without a name is
 * known by its period. Example: `limitKey("shop", [{key: "user", value: "7"}], {…minute})` is
 * `2g4:shop4:user1:7p3:60s`, behind the store's own prefix.
 *
 * Texts must be well-formed UTF-16, which both of the API's encodings see to: a store that keeps
 * UTF-8 cannot tell one lone surrogate from another.
 */
export function limitKey(
  domain: string,
  entries: readonly KeyEntry[],
  limit: LimitIdentity,
): LimitKey {
  return (descriptorPrefix({ domain, limit }, entries) + limitIdentity(limit)) as LimitKey;
}

/** What of a limit goes into keys. */
export type LimitIdentity = Pick<Limit, "name" | "periodUs" | "algorithm">;

/**
 * The key of the one bucket that new keys of a rule share while there are too many of them. It is
 * made of the rule's path, not of a caller's values, and never meets the key of an entry.
 */
export function overflowKey(
  domain: string,
  path: readonly PathStep[],
  limit: LimitIdentity,
): LimitKey {
  let key = `${domainPrefix({ domain, limit })}x`;
  for (const { key: name, value } of path)
    key += part(name) + (value === undefined ? "*" : part(value));
  return (key + limitIdentity(limit)) as LimitKey;
}

function limitIdentity({ name, periodUs }: LimitIdentity): string {
  return name === undefined ? `p${part(period(periodUs))}` : `n${part(name)}`;
}

/** The key of a limit that the request itself carried; never meets a policy limit's bucket. */
export function overrideKey(
  domain: string,
  entries: readonly KeyEntry[],
  limit: Pick<Limit, "unit" | "unitMultiplier" | "algorithm">,
): LimitKey {
  const identity = `o${part(`${limit.unitMultiplier}${limit.unit}`)}`;
  return (descriptorPrefix({ domain, limit }, entries) + identity) as LimitKey;
}

/** Where a key begins: whose limit it is, and how it is decided. */
interface Place {
  readonly domain: string;
  readonly limit: Pick<Limit, "algorithm">;
}

function descriptorPrefix(place: Place, entries: readonly KeyEntry[]): string {
  let prefix = domainPrefix(place);
  for (const { key, value, digest } of entries) {
    // A part begins with its length, so what begins with # is nobody's value.
    prefix += part(key) + (digest === undefined ? part(value) : `#${digest}`);
  }
  return prefix;
}

function domainPrefix({ domain, limit }: Place): string {
  const algorithm = limit.algorithm?.kind ?? "gcra";
  return `${formatVersion}${algorithmLetters[algorithm]}${part(domain)}`;
}

function part(text: string): string {
  return `${text.length}:${text}`;
}

function period(periodUs: number): string {
  return `${periodUs / 1_000_000}s`;
}
