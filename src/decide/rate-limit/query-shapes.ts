import type { Digest } from "../../core/collections/keyed-hash.js";
import type { Charge } from "../../core/limits/bucket.js";
import { shortKey } from "../../core/limits/key.js";
import type { LimitKey } from "../../core/limits/limit.js";
import { createSlot } from "./batcher.js";
import type { LimitCheck, PreparedDescriptor, PreparedQuery } from "./prepared-query.js";

/**
 * What queries that match the same limits in the same way have in common: everything except their
 * keys. A policy has few shapes, however many callers there are.
 */
export interface QueryShape {
  /** Its index among the shapes of its policy. */
  readonly index: number;
  /** The first query of this shape. Others differ only in their keys. */
  readonly sample: PreparedQuery;
}

/** Maximum number of shapes of one policy, about 1 KiB each. Further queries have no shape. */
const queryShapesMax = 16_384;

/** Maximum number of limits of a query with a shape. */
export const shapedAsksMax = 8;

/** The shapes of the queries seen under one policy. */
export class QueryShapes {
  readonly #shapes: QueryShape[] = [];
  readonly #byName = new Map<string, QueryShape>();
  readonly #shapesMax: number;

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
   * series, so that different keys alone do not make another query of it, and if a flood sent it to
   * shared keys.
   */
  shapeOf(prepared: PreparedQuery): QueryShape | undefined {
    const name = nameOf(prepared);
    if (name === undefined) return undefined;
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    if (this.#shapes.length >= this.#shapesMax) return undefined;
    const shape = { index: this.#shapes.length, sample: prepared };
    this.#shapes.push(shape);
    this.#byName.set(name, shape);
    return shape;
  }
}

/** Slots for checks that repeat, at most 0.5 KiB each. A power of two. */
const repeatedChecksMax = 1_024;

/** A check that was asked for again, and the one of its shape's first query. */
interface RepeatedCheck {
  readonly sample: LimitCheck;
  readonly check: LimitCheck;
}

/**
 * The checks of keys that many requests share, such as those of a plan or a path. A check is kept
 * when its slot is asked for the same key twice in a row, so those of many callers are not.
 */
export class RepeatedChecks {
  /** The digest of the key that each slot was asked for last. */
  readonly #asked = new Int32Array(4 * repeatedChecksMax);
  readonly #checks: (RepeatedCheck | undefined)[] = new Array(repeatedChecksMax).fill(undefined);

  /** The check of a shape for the short key of this digest. */
  checkFor(sample: LimitCheck, digest: Readonly<Digest>): LimitCheck {
    const { a, b, c, d } = digest;
    const asked = this.#asked;
    const slot = a & (repeatedChecksMax - 1);
    const at = 4 * slot;
    if (asked[at] === a && asked[at + 1] === b && asked[at + 2] === c && asked[at + 3] === d) {
      const known = this.#checks[slot];
      if (known?.sample === sample && known.check.charge.windows === sample.charge.windows) {
        return known.check;
      }
      const check = shapedAsk(sample, shortKey(digest));
      this.#checks[slot] = { sample, check };
      return check;
    }
    asked[at] = a;
    asked[at + 1] = b;
    asked[at + 2] = c;
    asked[at + 3] = d;
    this.#checks[slot] = undefined;
    return shapedAsk(sample, shortKey(digest));
  }
}

/**
 * The query that `prepareQuery` would build for this shape.
 *
 * @param keys the digest of the short key of each check
 */
export function shapedQuery(
  { sample }: QueryShape,
  keys: readonly Readonly<Digest>[],
  repeated = new RepeatedChecks(),
): PreparedQuery {
  const asks = shapedAsks(sample.asks, keys, repeated);
  const charges = chargesOf(asks);
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

/**
 * The checks of a shape with these keys. Nearly all queries have one, which is written as a
 * literal: an array that grows allocates room for 17 elements at once, at a cost in garbage
 * collection.
 */
function shapedAsks(
  samples: readonly LimitCheck[],
  keys: readonly Readonly<Digest>[],
  repeated: RepeatedChecks,
): readonly LimitCheck[] {
  const [first] = samples;
  const [key] = keys;
  if (first === undefined || key === undefined) return [];
  if (samples.length === 1) return [repeated.checkFor(first, key)];
  return samples.map((sample, i) => repeated.checkFor(sample, keys[i] ?? key));
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

function chargesOf(asks: readonly LimitCheck[]): readonly Charge[] {
  const [first, second] = asks;
  if (first === undefined) return [];
  if (asks.length === 1) return [first.charge];
  if (asks.length === 2 && second !== undefined) return [first.charge, second.charge];
  return asks.map(({ charge }) => charge);
}

/** Identifies a shape within a policy. Undefined for a query without a shape. */
function nameOf(prepared: PreparedQuery): string | undefined {
  const { isKeepable, isPlain, isRepeatable, isDomainKnown, asks, descriptors } = prepared;
  if (!isKeepable || asks.length > shapedAsksMax) return undefined;
  // The first two flags also tell whether keys of the query collide.
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
