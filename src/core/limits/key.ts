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

/** An entry as part of a key. A long value is represented by its digest. */
export interface KeyEntry extends DescriptorEntry {
  /** Hexadecimal, of a fixed length and collision-resistant. Replaces the value. */
  readonly digest?: string;
}

/** Maximum length of a value that is part of a key as it is, in UTF-16 units. */
export const keyValueLengthMax = 256;

/** Changes when the meaning of stored state changes, so that old state is never misread. */
const formatVersion = "2";

/** Marks the algorithm of a bucket, so that each has its own state. Never `t`: `throttleKey`. */
const algorithmLetters: Readonly<Record<Algorithm["kind"], string>> = {
  gcra: "g",
  fixed_window: "w",
};

/**
 * Returns the key of a policy limit's bucket for the entries of one descriptor.
 *
 * Each part is preceded by its length, so that different entries always have different keys. Rate,
 * burst and position are not part of the key: editing them keeps the usage. A limit without a name
 * is identified by its period. Example: `limitKey("shop", [{key: "user", value: "7"}], {…minute})`
 * is `2g4:shop4:user1:7p3:60s`, after the store's own prefix.
 *
 * Texts must be well-formed UTF-16, which both encodings of the API ensure: a store that keeps
 * UTF-8 cannot distinguish lone surrogates.
 */
export function limitKey(
  domain: string,
  entries: readonly KeyEntry[],
  limit: LimitIdentity,
): LimitKey {
  return (descriptorPrefix({ domain, limit }, entries) + limitIdentity(limit)) as LimitKey;
}

/** The part of a limit that is included in keys. */
type LimitIdentity = Pick<Limit, "name" | "periodUs" | "algorithm">;

/**
 * Returns the key of the bucket that new keys of a rule share while there are too many. It is built
 * from the rule's path, not from a caller's values, and never equals the key of an entry.
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

/** A text of a key as it is, or the hexadecimal digest of one that cannot be part of a key. */
export type KeyPart = { readonly value: string } | { readonly digest: string };

/**
 * Returns the key of the bucket of a `CL.THROTTLE`, which has a namespace of its own: it never
 * equals a key of a policy, because no algorithm has its letter. Example: `2t4:ip:7`.
 */
export function throttleKey(key: KeyPart): LimitKey {
  return named(`${formatVersion}t${"value" in key ? part(key.value) : `#${key.digest}`}`);
}

function limitIdentity({ name, periodUs }: LimitIdentity): string {
  return name === undefined ? `p${part(period(periodUs))}` : `n${part(name)}`;
}

/**
 * Returns the key shared by all limits that requests carry for one descriptor and period, whatever
 * their size. Never equals the key of a policy limit.
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
 * Returns the key of one size among the limits that share a key, or, without a size, the key of
 * those that are too many to have their own.
 */
export function sizedKey(shared: LimitKey, hits?: number): LimitKey {
  return named(`${shared}h${hits === undefined ? "*" : part(String(hits))}`);
}

/**
 * Returns the key that was passed to `sizedKey`. For a few keys that it did not make, a part of
 * them.
 */
export function withoutSize(key: LimitKey): LimitKey {
  return named(key.replace(/h(?:\*|\d+:\d+)$/, ""));
}

function named(text: string): LimitKey {
  return text as LimitKey;
}

/** The parts of a limit that its key starts with: the domain and the algorithm. */
interface Place {
  readonly domain: string;
  readonly limit: Pick<Limit, "algorithm">;
}

/**
 * The first unit of short keys: a lone surrogate, which other keys cannot contain because their
 * texts are well-formed.
 */
const shortKeyMark = 0xdc00;

/** Length of a short key in UTF-16 units: the mark, and two for each word of the digest. */
const shortKeyLength = 9;

/**
 * Returns a key that consists of its digest, for stores that keep only that. Never equals a
 * spelled-out key.
 */
export function shortKey({ a, b, c, d }: Readonly<Digest>): LimitKey {
  // Takes 30 ns. A separate call for each unit would take five times as long.
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

/** Reads a short key's digest into `digest`. Returns false for a spelled-out key. */
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
    // A part starts with its length, so a value cannot start with #.
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

/** The total length of all keys and values, in UTF-16 units. */
export function charCountOf(entries: readonly DescriptorEntry[]): number {
  return entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}
