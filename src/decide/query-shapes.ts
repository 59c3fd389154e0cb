import type { Charge } from "../core/bucket.js";
import type { LimitKey } from "../core/limit.js";
import { createSlot } from "./batcher.js";
import type { PreparedAsk, PreparedDescriptor, PreparedQuery } from "./prepared-query.js";

/**
 * What queries have in common that meet the same limits in the same way: all but their keys. A
 * policy has few, however many callers there are.
 */
export interface QueryShape {
  /** Its number among the shapes of its policy. */
  readonly index: number;
  /** The first query of this shape: the others differ in keys alone. */
  readonly sample: PreparedQuery;
}

/** The most shapes of one policy, about 1 KiB each; queries of further ones have none. */
const queryShapesMax = 16_384;

/** The most limits of a query that has a shape. */
export const shapedAsksMax = 8;

/** The shapes of the queries that were met under one policy. */
export class QueryShapes {
  readonly #shapes: QueryShape[] = [];
  readonly #byName = new Map<string, QueryShape>();
  readonly #shapesMax: number;

  /** @param shapesMax from 0 */
  constructor(shapesMax = queryShapesMax) {
    this.#shapesMax = shapesMax;
  }

  /** A shape by its number. */
  at(index: number): QueryShape | undefined {
    return this.#shapes[index];
  }

  /**
   * The shape of a query. Undefined for one with a limit or a series of its own, which another
   * query's keys do not make another of, and for one that a flood sent to shared keys.
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

/** The query of a shape with these keys, one an ask, as `prepareQuery` would have made it. */
export function shapedQuery({ sample }: QueryShape, keys: readonly LimitKey[]): PreparedQuery {
  const asks: PreparedAsk[] = [];
  const charges: Charge[] = [];
  for (let i = 0; i < sample.asks.length; i += 1) {
    const ask = sample.asks[i];
    const key = keys[i];
    if (ask === undefined || key === undefined) break;
    const { limit, descriptorIndex } = ask;
    // Spelled out: `...` costs more than all the rest of this function.
    const { hits, periodUs, burst, cost, role, isRefund, peekExhausted, windows } = ask.charge;
    const charge = { key, hits, periodUs, burst, cost, role, isRefund, peekExhausted, windows };
    asks.push({ limit, record: undefined, descriptorIndex, charge });
    charges.push(charge);
  }
  const { policy, isDomainKnown, isShadow, descriptors, window } = sample;
  const { isRepeatable, isPlain, isKeepable, isStyled } = sample;
  return {
    policy,
    isDomainKnown,
    isShadow,
    descriptors,
    asks,
    charges,
    window,
    isRepeatable,
    isPlain,
    isKeepable,
    slot: createSlot(),
    isStyled,
  };
}

/** Tells shapes of one policy apart; undefined for a query that has none. */
function nameOf(prepared: PreparedQuery): string | undefined {
  const { isKeepable, isPlain, isRepeatable, isDomainKnown, asks, descriptors } = prepared;
  if (!isKeepable || asks.length > shapedAsksMax) return undefined;
  // Whether keys meet each other shows in the first two.
  let name = `${isPlain}/${isRepeatable}/${isDomainKnown}`;
  for (const descriptor of descriptors) {
    const part = descriptorName(descriptor, asks);
    if (part === undefined) return undefined;
    name += part;
  }
  return name;
}

function descriptorName(
  descriptor: PreparedDescriptor,
  asks: readonly PreparedAsk[],
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
    // Which of its limits count depends on the other descriptors.
    if (ask !== undefined) name += `,${limits.indexOf(ask.limit)}${ask.charge.isRefund ? "r" : ""}`;
  }
  return name;
}
