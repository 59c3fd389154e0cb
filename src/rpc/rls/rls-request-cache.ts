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

/** The part of a decider that `RequestCache` uses. */
export interface RehydratesQueries {
  /** Reports whether the policy that a query was prepared under is still active. */
  isCurrent(prepared: PreparedQuery): boolean;
  /**
   * Rebuilds a query from its shape and the digests of its short keys, which are valid until it
   * returns. Undefined if the store identifies buckets by complete keys.
   */
  readonly rehydrate?:
    | ((shape: QueryShape, keys: readonly Readonly<Digest>[]) => PreparedQuery)
    | undefined;
}

/** Bounds of `RequestCache`. Tests use smaller ones. */
export interface RequestCacheBounds {
  /** Maximum number of requests stored as shape and short keys, in 38 to 43 bytes per key. */
  readonly shapedMax?: number;
  /** Maximum size of complete queries with their key records, in bytes. Default 64 MiB. */
  readonly keptBytesMax?: number;
  /**
   * Slots for the most recent requests, each with its query. Identical calls of one event loop turn
   * get the same query, so the store is asked once. A power of two.
   */
  readonly recentMax?: number;
}

/** See `RequestCacheBounds`: a fifth above the keys that the embedded store holds by default. */
const shapedRequestsMax = 1_200_000;

/** See `RequestCacheBounds`. */
const keptRequestsBytesMax = 67_108_864;

/**
 * See `RequestCacheBounds`. With more, some queries survive two minor garbage collections, after
 * which only a full one frees them: with 1,024, that was 0.2 of 12 MB per minor collection.
 */
const recentRequestsMax = 256;

/** Indexes of an entry's words: its shape with `usedBit`, and the digest of its key. */
const fields = { shape: 0, key: 1 } as const;

/** Set if an entry was used since the last eviction scan. Indexes of shapes are smaller. */
const usedBit = 1 << 30;

/** Maximum number of entries scanned for eviction. After that, the last one seen is evicted. */
const looksMax = 64;

/** A cached query, and the digest of its request. */
interface Kept {
  readonly digest: Readonly<Digest>;
  readonly prepared: PreparedQuery;
}

/**
 * Caches the queries of requests, so that identical requests are matched only once. A request is
 * identified by a digest of its bytes without its hits. The digest uses a secret of this process
 * (`KeyedHash` says how rarely two collide), so neither the bytes nor their text are kept.
 *
 * If the store identifies buckets by short keys, a request is stored as the index of its shape and
 * these keys, in arrays that the garbage collector does not scan. Its query is rebuilt for each
 * call. A million complete queries would take 760 MB.
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
  /** The keys of the current request. */
  readonly #keys: readonly Digest[] = Array.from({ length: shapedAsksMax }, noDigest);
  #shapes = new QueryShapes();
  /** A query of the policy that all cached requests were matched against. */
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

  /** Requests stored as shape and keys: one entry per key. */
  get shapedCount(): number {
    return this.#shaped.size;
  }

  /** Returns the digest of a request's identity. Valid until the next call. */
  digestOf({ bytes, end, isCut }: RequestIdentity): Readonly<Digest> {
    return (isCut ? this.#cutHash : this.#hash).ofBytes(bytes, 0, end);
  }

  /** Returns the cached query of a request. Clears the cache if the policy has changed. */
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
   * Reports whether the query of an unknown request should be kept, as `GenerationalMap.wantsMore`
   * does. If queries are rehydrated, `add` decides, once there is a query.
   */
  wantsKept(): boolean {
    return this.#decider.rehydrate === undefined && this.#kept.wantsMore();
  }

  /**
   * Adds a request.
   *
   * @param isKept the result of `wantsKept` for it
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
    // Two digests may share the first word. Then the later one has replaced the other.
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
      // It was evicted separately.
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

  /** Evicts an entry not used for a whole round, if one is near (the clock algorithm, one hand). */
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

  /** Returns the digest for the key of a further limit of a request. No request has this digest. */
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
