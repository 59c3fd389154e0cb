import type { Charge } from "../../core/limits/bucket.js";
import { shortKey } from "../../core/limits/key.js";
import type { Limit, Rule } from "../../core/limits/limit.js";
import type { LimitCheck, PreparedQuery } from "../rate-limit/prepared-query.js";
import type { DescriptorQuery } from "../rate-limit/query.js";
import type { PlacedKey } from "./simulated-buckets.js";

/** What all descriptors that meet the same limits in the same way have in common. */
interface PartShape {
  /** The rule whose limits are met; undefined: none. */
  readonly rule: Rule | undefined;
  /** Limits of a whole call that the rule stands in for, by name. */
  readonly replaces: readonly string[];
  /** What is asked of each limit, but for the key and the windows. */
  readonly asks: readonly SimulatedCheck[];
  readonly hits: number;
  readonly isRefund: boolean;
  /** The rule, where the shape peeks at it and it settles from then on: see `PeekedRules`. */
  readonly peeked: readonly Rule[];
}

/** What is asked of one limit. */
interface SimulatedCheck {
  readonly limit: Limit;
  readonly charge: Omit<Charge, "key" | "windows">;
}

/** The key of one ask of a shape, and those of the asks behind it. */
export interface PartKey extends PlacedKey {
  readonly next: PartKey | undefined;
}

/**
 * A descriptor that was matched alone, to be asked together with others. There are many of them,
 * and a processor waits for each place of memory that it has not seen for a while: so it is small,
 * and is itself the key of its first ask.
 */
export interface SimulatedPart extends PartKey {
  readonly shape: PartShape;
}

/** What a part has for a key that asks nothing. */
const noKey = shortKey({ a: 0, b: 0, c: 0, d: 0 });

/** Makes parts, and shares what many of them have in common. */
export class PartShapes {
  readonly #shapes = new Map<Rule, PartShape[]>();

  /**
   * The part of a query of that descriptor alone.
   *
   * @param matched what the descriptor matches, also where that asks nothing
   */
  partOf(
    descriptor: DescriptorQuery,
    { asks, descriptors }: PreparedQuery,
    matched: Rule | undefined,
  ): SimulatedPart {
    let next: PartKey | undefined;
    for (const { charge } of asks.slice(1).toReversed()) {
      next = { key: charge.key, place: 0, turn: 0, next };
    }
    const [met] = descriptors;
    const rule = met?.kind === "limited" ? met.rule : undefined;
    const known = matched === undefined ? [] : (this.#shapes.get(matched) ?? []);
    let shape = known.find((one) => isShapeOf(one, descriptor, asks));
    if (shape === undefined) {
      const { hits, isRefund } = descriptor;
      const replaces = matched?.replaces ?? [];
      const peeked = rule?.settlesOncePeeked === true && hits === 0 ? [rule] : [];
      const parts = asks.map((ask) => partAsk(ask, hits));
      shape = { rule, replaces, asks: parts, hits, isRefund, peeked };
      if (matched !== undefined) this.#shapes.set(matched, [...known, shape]);
    }
    return { shape, key: asks[0]?.charge.key ?? noKey, place: 0, turn: 0, next };
  }
}

function isShapeOf(
  shape: PartShape,
  { hits, isRefund }: DescriptorQuery,
  asks: readonly LimitCheck[],
): boolean {
  return (
    shape.hits === hits &&
    shape.isRefund === isRefund &&
    shape.asks.length === asks.length &&
    shape.asks.every(({ limit }, i) => limit === asks[i]?.limit)
  );
}

function partAsk({ limit, charge }: LimitCheck, cost: number): SimulatedCheck {
  const { hits, periodUs, burst, role, isRefund, peekExhausted } = charge;
  return { limit, charge: { hits, periodUs, burst, cost, role, isRefund, peekExhausted } };
}

/** Names of limits that some part of a call stands in for; undefined: none. */
export function replacedNames(parts: readonly SimulatedPart[]): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (const { replaces } of parts.map(({ shape }) => shape)) {
    if (replaces.length === 0) continue;
    names ??= new Set();
    for (const name of replaces) names.add(name);
  }
  return names;
}

/** Whether another limit stands in for one. */
export function isReplaced({ name }: Limit, replaced: ReadonlySet<string> | undefined): boolean {
  return replaced !== undefined && name !== undefined && replaced.has(name);
}
