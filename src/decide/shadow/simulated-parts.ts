import type { Charge } from "../../core/limits/bucket.js";
import { shortKey } from "../../core/limits/key.js";
import type { Limit, Rule } from "../../core/limits/limit.js";
import type { LimitCheck, PreparedQuery } from "../rate-limit/prepared-query.js";
import type { DescriptorQuery } from "../rate-limit/query.js";
import type { PlacedKey } from "./simulated-buckets.js";

/** What descriptors that match the same limits in the same way have in common. */
interface PartShape {
  /** The rule whose limits are matched. Undefined: none. */
  readonly rule: Rule | undefined;
  /** Names of limits that the rule replaces in the whole call. */
  readonly replaces: readonly string[];
  /** The checks of the limits, without keys and windows. */
  readonly asks: readonly SimulatedCheck[];
  readonly hits: number;
  readonly isRefund: boolean;
  /** The rule, if the shape peeks at it and it settles from then on: see `PeekedRules`. */
  readonly peeked: readonly Rule[];
}

/** The check of one limit. */
interface SimulatedCheck {
  readonly limit: Limit;
  readonly charge: Omit<Charge, "key" | "windows">;
}

/** The key of one check of a shape, and the keys of the checks after it. */
export interface PartKey extends PlacedKey {
  readonly next: PartKey | undefined;
}

/**
 * A descriptor that was matched alone, to be checked together with others. There are many parts,
 * and a processor waits for memory that it has not accessed for a while: so a part is small, and is
 * itself the key of its first check.
 */
export interface SimulatedPart extends PartKey {
  readonly shape: PartShape;
}

/** The key of a part without checks. */
const noKey = shortKey({ a: 0, b: 0, c: 0, d: 0 });

/** Creates parts, which share what many of them have in common. */
export class PartShapes {
  readonly #shapes = new Map<Rule, PartShape[]>();

  /**
   * Returns the part of a query with this descriptor alone.
   *
   * @param matched the rule that the descriptor matches, even if nothing is checked
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

/** Returns the names of limits that parts of a call replace. Undefined: none. */
export function replacedNames(parts: readonly SimulatedPart[]): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (const { replaces } of parts.map(({ shape }) => shape)) {
    if (replaces.length === 0) continue;
    names ??= new Set();
    for (const name of replaces) names.add(name);
  }
  return names;
}

/** Whether a limit is replaced. */
export function isReplaced({ name }: Limit, replaced: ReadonlySet<string> | undefined): boolean {
  return replaced !== undefined && name !== undefined && replaced.has(name);
}
