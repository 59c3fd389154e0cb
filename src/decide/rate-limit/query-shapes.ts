import type { Digest } from "../../core/collections/keyed-hash.js";
import { readShortKey, shortKey } from "../../core/limits/key.js";
import type { LimitKey } from "../../core/limits/limit.js";
import { createSlot } from "./batcher.js";
import type { LimitCheck, PreparedDescriptor, PreparedQuery } from "./prepared-query.js";

/**
 * What queries that match the same limits in the same way have in common: everything except the
 * keys of their callers. Keys that many callers share, such as those of a plan or a path, belong to
 * the shape: each one that is not looked up for the call saves a quarter of its check.
 */
export interface QueryShape {
  /** Its index among the shapes of its policy. */
  readonly index: number;
  /** The first query of this shape. Others differ only in the keys of `ownChecks`. */
  readonly sample: PreparedQuery;
  /** The checks whose keys are not those of the sample: indexes of its `asks`, ascending. */
  readonly ownChecks: readonly number[];
}

/** Maximum number of shapes of one policy, about 1 KiB each. Further queries have no shape. */
const queryShapesMax = 16_384;

/** Maximum number of limits of a query with a shape. */
export const shapedAsksMax = 8;

/** Shapes that contain keys are added up to this fraction of the maximum number of shapes. */
const keyedShapesRatioMax = 0.5;

/** The shapes of the queries seen under one policy. */
export class QueryShapes {
  readonly #shapes: QueryShape[] = [];
  readonly #byName = new Map<string, QueryShape>();
  readonly #shapesMax: number;
  readonly #frequentKeys = new FrequentKeys();

  /** @param shapesMax at least 0 */
  constructor(shapesMax = queryShapesMax) {
    this.#shapesMax = shapesMax;
  }

  /** Returns a shape by its index. */
  at(index: number): QueryShape | undefined {
    return this.#shapes[index];
  }

  /**
   * Returns the shape of a query. Undefined if the query carries a limit or has its own time
   * series, because such queries differ in more than their keys, or if a flood sent it to shared
   * keys.
   */
  shapeOf(prepared: PreparedQuery): QueryShape | undefined {
    const name = nameOf(prepared);
    if (name === undefined) return undefined;
    const { asks } = prepared;
    const everyCheck = asks.map((_, i) => i);
    const ownChecks = this.#frequentKeys.infrequent(asks);
    if (ownChecks.length < asks.length) {
      const isOwn = (i: number): boolean => ownChecks.includes(i);
      const keys = asks.map(({ charge }, i) => (isOwn(i) ? "/" : charge.key));
      const keyed = {
        name: name + keys.join(""),
        shapesMax: this.#shapesMax * keyedShapesRatioMax,
      };
      const shape = this.#shapeNamed(keyed, { sample: prepared, ownChecks });
      if (shape !== undefined) return shape;
    }
    const own = { name, shapesMax: this.#shapesMax };
    return this.#shapeNamed(own, { sample: prepared, ownChecks: everyCheck });
  }

  #shapeNamed(
    { name, shapesMax }: { readonly name: string; readonly shapesMax: number },
    parts: Omit<QueryShape, "index">,
  ): QueryShape | undefined {
    const known = this.#byName.get(name);
    if (known !== undefined || this.#shapes.length >= shapesMax) return known;
    const shape = { index: this.#shapes.length, ...parts };
    this.#shapes.push(shape);
    this.#byName.set(name, shape);
    return shape;
  }
}

/** Slots for keys that may be frequent. A power of two. */
const frequentKeysMax = 1_024;

/** A key is frequent once its new queries outnumber those of other keys in its slot by this. */
const frequentMin = 8;

/**
 * Counts the keys of new queries, to find those that many callers share. Each slot keeps the key of
 * the majority of the queries whose keys fall into it, if there is a majority.
 *
 * Source: Boyer and Moore, "MJRTY: a fast majority vote algorithm", 1981.
 */
class FrequentKeys {
  readonly #keys: (LimitKey | undefined)[] = new Array(frequentKeysMax).fill(undefined);
  readonly #counts = new Uint32Array(frequentKeysMax);
  readonly #digest: Digest = { a: 0, b: 0, c: 0, d: 0 };

  /**
   * Counts the keys of a query with several checks.
   *
   * @returns the indexes of the checks whose keys are not frequent; at least one
   */
  infrequent(asks: readonly LimitCheck[]): readonly number[] {
    if (asks.length < 2) return asks.map((_, i) => i);
    const counts = asks.map(({ charge }) => this.#count(charge.key));
    const least = Math.min(...counts);
    return [...counts.keys()].filter((i) => (counts[i] ?? 0) < Math.max(frequentMin, least + 1));
  }

  #count(key: LimitKey): number {
    const slot = readShortKey(key, this.#digest) ? this.#digest.a & (frequentKeysMax - 1) : 0;
    const count = this.#counts[slot] ?? 0;
    const isSame = this.#keys[slot] === key;
    if (count === 0) this.#keys[slot] = key;
    this.#counts[slot] = isSame || count === 0 ? count + 1 : count - 1;
    return isSame ? count + 1 : 0;
  }
}

/**
 * The query that `prepareQuery` would build for this shape.
 *
 * @param keys the digest of the short key of each of its own checks
 */
export function shapedQuery(
  { sample, ownChecks }: QueryShape,
  keys: readonly Readonly<Digest>[],
): PreparedQuery {
  const asks = sample.asks.slice();
  const charges = sample.charges.slice();
  for (let i = 0; i < ownChecks.length; i += 1) {
    const place = ownChecks[i] ?? 0;
    const check = sample.asks[place];
    const key = keys[i];
    if (check === undefined || key === undefined) continue;
    const own = shapedAsk(check, shortKey(key));
    asks[place] = own;
    charges[place] = own.charge;
  }
  const { policy, overrides, peekedRules, isDomainKnown, isShadow, descriptors, window } = sample;
  const { delayUs, isRepeatable, isPlain, isKeepable, isStyled, isMarking, isGlobal } = sample;
  return {
    policy,
    overrides,
    peekedRules,
    isDomainKnown,
    isShadow,
    descriptors,
    asks,
    charges,
    window,
    delayUs,
    isRepeatable,
    isPlain,
    isKeepable,
    slot: createSlot(),
    isStyled,
    isMarking,
    isGlobal,
  };
}

function shapedAsk(
  { limit, descriptorIndex, charge: sample }: LimitCheck,
  key: LimitKey,
): LimitCheck {
  // Spelled out because a spread costs more than everything else in this file.
  const { hits, periodUs, burst, cost, role, isRefund, peekExhausted, windows } = sample;
  const charge = { key, hits, periodUs, burst, cost, role, isRefund, peekExhausted, windows };
  return { limit, record: undefined, descriptorIndex, charge };
}

/** Identifies a shape within a policy. Undefined for a query without a shape. */
function nameOf(prepared: PreparedQuery): string | undefined {
  const { isKeepable, isPlain, isRepeatable, isDomainKnown, asks, descriptors } = prepared;
  if (!isKeepable || asks.length > shapedAsksMax) return undefined;
  // The first two flags also show whether keys of the query collide.
  let name = `${isPlain}/${isRepeatable}/${isDomainKnown}`;
  for (const descriptor of descriptors) {
    const part = descriptorName(descriptor, prepared);
    if (part === undefined) return undefined;
    name += part;
  }
  return name;
}

function descriptorName(
  descriptor: PreparedDescriptor,
  { asks, overrides }: PreparedQuery,
): string | undefined {
  if (descriptor.kind === "unmatched") return "/-";
  const { rule } = descriptor;
  if (rule === undefined) return undefined;
  if (descriptor.kind === "replaced") return `/r${rule.index}`;
  if (descriptor.hits !== descriptor.counters?.hits) return undefined;
  if (descriptor.kind === "unlimited") return `/u${rule.index}`;
  const { firstAsk, askCount } = descriptor;
  let name = `/l${rule.index}`;
  for (let i = firstAsk; i < firstAsk + askCount; i += 1) {
    const ask = asks[i];
    const limits = rule.effect.kind === "limited" ? rule.effect.limits : [];
    if (ask === undefined) continue;
    // Which of its limits count depends on the other descriptors.
    const place = limits.indexOf(ask.limit);
    const number = place === -1 ? overrides.limits.numberOf(ask.limit) : undefined;
    // The limit of an override applies to one key only.
    if (place === -1 && number === undefined) return undefined;
    name += `,${number === undefined ? place : `o${number}`}${ask.charge.isRefund ? "r" : ""}`;
  }
  return name;
}
