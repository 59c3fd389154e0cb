import type { Digest } from "../collections/keyed-hash.js";
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
type LimitIdentity = Pick<Limit, "name" | "periodUs" | "algorithm">;

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

/**
 * The key that all limits share which requests carry for one descriptor and period, whatever their
 * size; never meets a policy limit's bucket.
 */
export function overrideKey(
  domain: string,
  entries: readonly KeyEntry[],
  limit: Pick<Limit, "unit" | "unitMultiplier" | "algorithm">,
): LimitKey {
  const identity = `o${part(`${limit.unitMultiplier}${limit.unit}`)}`;
  return named(descriptorPrefix({ domain, limit }, entries) + identity);
}

/**
 * The key of one size among the limits that share a key; without a size, that of all which are too
 * many to have one each.
 */
export function sizedKey(shared: LimitKey, hits?: number): LimitKey {
  return named(`${shared}h${hits === undefined ? "*" : part(String(hits))}`);
}

/** The key that was given to `sizedKey`; a part of the key for a few that it never made. */
export function withoutSize(key: LimitKey): LimitKey {
  return named(key.replace(/h(?:\*|\d+:\d+)$/, ""));
}

function named(text: string): LimitKey {
  return text as LimitKey;
}

/** Where a key begins: whose limit it is, and how it is decided. */
interface Place {
  readonly domain: string;
  readonly limit: Pick<Limit, "algorithm">;
}

/**
 * Where short keys begin: half of a character, which no key of the others holds, since their texts
 * are well-formed.
 */
const shortKeyMark = 0xdc00;

/** UTF-16 units of a short key: the mark, and two for each word of the digest. */
const shortKeyLength = 9;

/**
 * A key that is known by its digest alone, for stores that keep no more of it. It never meets a key
 * that is spelled out.
 */
export function shortKey({ a, b, c, d }: Readonly<Digest>): LimitKey {
  // 30 ns: a call of its own for each unit would take five times that.
  return String.fromCharCode(
    shortKeyMark,
    a & 0xffff,
    a >>> 16,
    b & 0xffff,
    b >>> 16,
    c & 0xffff,
    c >>> 16,
    d & 0xffff,
    d >>> 16,
  ) as LimitKey;
}

/** Reads a short key's digest into `digest`; false when the key is spelled out. */
export function readShortKey(key: LimitKey, digest: Digest): boolean {
  if (key.length !== shortKeyLength || key.charCodeAt(0) !== shortKeyMark) return false;
  digest.a = key.charCodeAt(1) | (key.charCodeAt(2) << 16);
  digest.b = key.charCodeAt(3) | (key.charCodeAt(4) << 16);
  digest.c = key.charCodeAt(5) | (key.charCodeAt(6) << 16);
  digest.d = key.charCodeAt(7) | (key.charCodeAt(8) << 16);
  return true;
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

/** UTF-16 units of all keys and values. */
export function charCountOf(entries: readonly DescriptorEntry[]): number {
  return entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}
