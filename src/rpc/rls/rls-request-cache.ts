import type { Random } from "../../core/base/clock.js";
import { DigestTable, type TableSlot } from "../../core/collections/digest-table.js";
import { GenerationalMap } from "../../core/collections/generational-map.js";
import { createSecret, type Digest, KeyedHash } from "../../core/collections/keyed-hash.js";
import { readShortKey } from "../../core/limits/key.js";
import { type PreparedQuery, preparedBytes } from "../../decide/rate-limit/prepared-query.js";
import {
  type QueryShape,
  QueryShapes,
  shapedAsksMax,
} from "../../decide/rate-limit/query-shapes.js";
import type { RequestIdentity } from "./rls-scanner.js";

/** What `RequestCache` needs of a decider. */
export interface RehydratesQueries {
  /** Whether what was prepared is still the active policy. */
  isCurrent(prepared: PreparedQuery): boolean;
  /**
   * A query of this shape with the short keys of these digests, which are good until it returns.
   * Undefined where the store knows buckets by their whole keys.
   */
  readonly rehydrate?:
    | ((shape: QueryShape, keys: readonly Readonly<Digest>[]) => PreparedQuery)
    | undefined;
}

/** Bounds of `RequestCache`; smaller ones for tests. */
export interface RequestCacheBounds {
  /** The most requests that are known by a shape and short keys, in 38 to 43 bytes a key. */
  readonly shapedMax?: number;
  /** The most bytes of queries that are kept, with what they meet. Default 64 MiB. */
  readonly keptBytesMax?: number;
  /**
   * Places for the last requests, each with its query as it is: those that are repeated within a
   * turn meet in one query, and are asked once. A power of two.
   */
  readonly recentMax?: number;
}

/** See `RequestCacheBounds`: a fifth above the keys that the embedded store holds by default. */
const shapedRequestsMax = 1_200_000;

/** See `RequestCacheBounds`. */
const keptRequestsBytesMax = 67_108_864;

/**
 * See `RequestCacheBounds`. Of more some live through two rounds of the collector, and are moved
 * to where only a round over everything frees them: with 1,024 that was 0.2 MB a round, of 12.
 */
const recentRequestsMax = 256;

/** Words of an entry: its shape with `usedBit`, and the digest of its key. */
const fields = { shape: 0, key: 1 } as const;

/** Whether an entry was used since looked at. Shapes are fewer. */
const usedBit = 1 << 30;

/** Places that are passed in search of an entry to give up; then the last one seen goes. */
const looksMax = 64;

/** A query that is kept, and the digest of its request. */
interface Kept {
  readonly digest: Readonly<Digest>;
  readonly prepared: PreparedQuery;
}

/**
 * Requests by a digest of their bytes without their hits, so that what many calls ask is matched
 * once. The digest is made under a secret of this process (`KeyedHash` says how seldom two
 * meet), so neither the bytes nor a text of them is kept.
 *
 * Where the store knows buckets by short keys, all that is kept of a request is the number of its
 * shape and those keys, in arrays that the collector does not look into; its query is made anew for
 * the call. A million requests that were kept whole would take 760 MB.
 */
export class RequestCache {
  readonly #decider: RehydratesQueries;
  readonly #hash: KeyedHash;
  readonly #cutHash: KeyedHash;
  readonly #shapedMax: number;
  readonly #shaped = new DigestTable();
  readonly #kept: GenerationalMap<number, Kept>;
  readonly #recent: (PreparedQuery | undefined)[];
  readonly #recentDigests: Int32Array;
  readonly #scratch: Digest = noDigest();
  /** The keys of the request in hand. */
  readonly #keys: readonly Digest[] = Array.from({ length: shapedAsksMax }, noDigest);
  #shapes = new QueryShapes();
  /** Any query of the policy that all that is known was matched against. */
  #sample: PreparedQuery | undefined;

  constructor(decider: RehydratesQueries, random: Random, bounds: RequestCacheBounds = {}) {
    this.#decider = decider;
    this.#hash = new KeyedHash(createSecret(random));
    this.#cutHash = new KeyedHash(createSecret(random));
    this.#shapedMax = bounds.shapedMax ?? shapedRequestsMax;
    this.#kept = new GenerationalMap(
      bounds.keptBytesMax ?? keptRequestsBytesMax,
      (_, { prepared }) => preparedBytes(prepared),
    );
    const recentMax = bounds.recentMax ?? recentRequestsMax;
    this.#recent = new Array(recentMax).fill(undefined);
    this.#recentDigests = new Int32Array(4 * recentMax);
  }

  /** Requests known by shape and keys: one entry a key. */
  get shapedCount(): number {
    return this.#shaped.size;
  }

  /** The digest of a request's identity; good until the next one. */
  digestOf({ bytes, end, isCut }: RequestIdentity): Readonly<Digest> {
    return (isCut ? this.#cutHash : this.#hash).ofBytes(bytes, 0, end);
  }

  /** The query of a request that is known; everything is forgotten when the policy has changed. */
  find(digest: Readonly<Digest>): PreparedQuery | undefined {
    if (this.#sample === undefined) return undefined;
    if (!this.#decider.isCurrent(this.#sample)) {
      this.#forgetAll();
      return undefined;
    }
    const recent = this.#findRecent(digest);
    if (recent !== undefined) return recent;
    const prepared = this.#rehydrate(digest) ?? this.#findKept(digest);
    if (prepared !== undefined) this.#noteRecent(digest, prepared);
    return prepared;
  }

  /**
   * Whether the query of a request that is not known is to be kept, as `GenerationalMap.wantsMore`
   * says. Where queries are rehydrated, that shows when there is one.
   */
  wantsKept(): boolean {
    return this.#decider.rehydrate === undefined && this.#kept.wantsMore();
  }

  /**
   * Remembers a request.
   *
   * @param isKept what `wantsKept` said of it
   */
  add(digest: Readonly<Digest>, prepared: PreparedQuery, isKept: boolean): void {
    if (!prepared.isKeepable) return;
    const isRehydrated = this.#decider.rehydrate !== undefined;
    const shape = isRehydrated ? this.#shapes.shapeOf(prepared) : undefined;
    if (shape !== undefined) this.#addShaped(digest, shape, prepared);
    else if (!isKept && !(isRehydrated && this.#kept.wantsMore())) return;
    else this.#kept.set(digest.a, { digest: { ...digest }, prepared });
    this.#sample = prepared;
    this.#noteRecent(digest, prepared);
  }

  #findRecent({ a, b, c, d }: Readonly<Digest>): PreparedQuery | undefined {
    const index = a & (this.#recent.length - 1);
    const digests = this.#recentDigests;
    const at = 4 * index;
    if (digests[at] !== a || digests[at + 1] !== b) return undefined;
    if (digests[at + 2] !== c || digests[at + 3] !== d) return undefined;
    return this.#recent[index];
  }

  #noteRecent({ a, b, c, d }: Readonly<Digest>, prepared: PreparedQuery): void {
    const index = a & (this.#recent.length - 1);
    const digests = this.#recentDigests;
    const at = 4 * index;
    digests[at] = a;
    digests[at + 1] = b;
    digests[at + 2] = c;
    digests[at + 3] = d;
    this.#recent[index] = prepared;
  }

  #findKept(digest: Readonly<Digest>): PreparedQuery | undefined {
    const kept = this.#kept.get(digest.a);
    // Two may share a word; then the later one has pushed out the other.
    return kept !== undefined && isSame(kept.digest, digest) ? kept.prepared : undefined;
  }

  #rehydrate(digest: Readonly<Digest>): PreparedQuery | undefined {
    const { rehydrate } = this.#decider;
    const table = this.#shaped;
    const place = table.find(digest);
    if (place === undefined || rehydrate === undefined) return undefined;
    const shape = this.#shapes.at(table.word(place, fields.shape) & ~usedBit);
    if (shape === undefined) return undefined;
    const { length } = shape.ownChecks;
    this.#readKey(place, 0);
    for (let i = 1; i < length; i += 1) {
      const further = table.find(this.#digestOfFurther(digest, i));
      // It was given up on its own.
      if (further === undefined) return undefined;
      this.#readKey(further, i);
    }
    return rehydrate(shape, this.#keys);
  }

  #readKey(place: TableSlot, index: number): void {
    const table = this.#shaped;
    const shape = table.word(place, fields.shape);
    if ((shape & usedBit) === 0) table.setWord(place, fields.shape, shape | usedBit);
    const key = this.#keys[index];
    if (key === undefined) return;
    key.a = table.word(place, fields.key);
    key.b = table.word(place, fields.key + 1);
    key.c = table.word(place, fields.key + 2);
    key.d = table.word(place, fields.key + 3);
  }

  #addShaped(digest: Readonly<Digest>, shape: QueryShape, { asks }: PreparedQuery): void {
    for (let i = 0; i === 0 || i < shape.ownChecks.length; i += 1) {
      const place = this.#placeFor(i === 0 ? digest : this.#digestOfFurther(digest, i));
      this.#shaped.setWord(place, fields.shape, shape.index);
      const key = asks[shape.ownChecks[i] ?? 0]?.charge.key;
      const words = this.#scratch;
      if (key === undefined || !readShortKey(key, words)) continue;
      this.#shaped.setWord(place, fields.key, words.a);
      this.#shaped.setWord(place, fields.key + 1, words.b);
      this.#shaped.setWord(place, fields.key + 2, words.c);
      this.#shaped.setWord(place, fields.key + 3, words.d);
    }
  }

  #placeFor(digest: Readonly<Digest>): TableSlot {
    const known = this.#shaped.find(digest);
    if (known !== undefined) return known;
    if (this.#shaped.size >= this.#shapedMax) this.#giveUpOne();
    return this.#shaped.add(digest);
  }

  /** Forgets one that was not used for a whole round, if one is near: a clock with one hand. */
  #giveUpOne(): void {
    const table = this.#shaped;
    let last: TableSlot | undefined;
    for (let looks = 0; looks < looksMax; looks += 1) {
      const place = table.next(looksMax);
      if (place === undefined) continue;
      last = place;
      const shape = table.word(place, fields.shape);
      if ((shape & usedBit) === 0) break;
      table.setWord(place, fields.shape, shape & ~usedBit);
    }
    if (last !== undefined) table.deleteFound(last);
  }

  /** Where the key of a further limit of a request lies: under a digest that no request has. */
  #digestOfFurther({ a, b, c, d }: Readonly<Digest>, index: number): Readonly<Digest> {
    const further = this.#scratch;
    further.a = a;
    further.b = b;
    further.c = (c + index) | 0;
    further.d = d;
    return further;
  }

  #forgetAll(): void {
    this.#sample = undefined;
    this.#shapes = new QueryShapes();
    this.#shaped.clear();
    this.#kept.clear();
    this.#recent.fill(undefined);
    this.#recentDigests.fill(0);
  }
}

function noDigest(): Digest {
  return { a: 0, b: 0, c: 0, d: 0 };
}

function isSame(one: Readonly<Digest>, other: Readonly<Digest>): boolean {
  return one.a === other.a && one.b === other.b && one.c === other.c && one.d === other.d;
}
