import type { DescriptorEntry } from "./key.js";
import { drainTimeUsMax, hitsMax, type Limit } from "./limit.js";

/** A limit that an operator sets for one key, or for all keys below a descriptor prefix. */
export interface Override {
  /**
   * Chosen by the operator or generated. 1 to 64 characters of `[a-z0-9-]`, unique in its domain.
   */
  readonly id: string;
  readonly domain: string;
  /** A whole descriptor, or its first entries if `isPrefix`. 1 to 32. */
  readonly entries: readonly DescriptorEntry[];
  readonly isPrefix: boolean;
  /** Which limit of the rule. Undefined: each one. */
  readonly limitName?: string;
  readonly effect: OverrideEffect;
  /** Milliseconds since 1970. Undefined: until it is deleted. */
  readonly expiresEpochMs?: number;
  readonly reason: string;
  readonly author: string;
  readonly createdEpochMs: number;
}

/** The effect on a limit. */
export type OverrideEffect =
  /** The hits per period of the limit, and the burst. */
  | { readonly kind: "amount"; readonly hits: number; readonly burst: number }
  /** A factor for hits and burst, above 0. */
  | { readonly kind: "multiplier"; readonly by: number }
  /** Nothing is allowed. */
  | { readonly kind: "frozen" };

/** The default maximum factor by which an override may raise a limit. */
export const defaultOverrideMax = 10;

/** The maximum factor by which an override may raise a limit. */
export function overrideMaxOf({ overrideMax }: Pick<Limit, "overrideMax">): number {
  return overrideMax ?? defaultOverrideMax;
}

/** The largest multiplier. Beyond it, a limit is no longer meaningful. */
export const multiplierMax = 1_000_000;

/**
 * Returns the limit with an override. It counts in the same bucket, so usage is kept.
 *
 * A multiplier rounds down, to at least one hit; a limit of 0 stays 0. For window limits, the burst
 * equals the hits.
 *
 * Example: 10 hits with a burst of 5, times 1.5: 15 hits, burst 7.
 */
export function overriddenLimit(limit: Limit, { effect }: Pick<Override, "effect">): Limit {
  const isWindowed = limit.algorithm?.kind === "fixed_window";
  switch (effect.kind) {
    case "frozen":
      return { ...limit, hits: 0, burst: 0 };
    case "amount": {
      const { hits } = effect;
      return { ...limit, hits, burst: isWindowed || hits === 0 ? hits : effect.burst };
    }
    case "multiplier": {
      const hits = times(limit.hits, effect.by);
      const burst = isWindowed ? hits : times(limit.burst, effect.by);
      return { ...limit, hits, burst };
    }
  }
}

function times(amount: number, by: number): number {
  return amount === 0 ? 0 : Math.max(1, Math.min(hitsMax, Math.floor(amount * by)));
}

/** Why an override is not allowed for a limit. */
type OverrideRefusal =
  /** More than `mostTimes` the policy's value, in hits or in burst. */
  | "aboveMax"
  /** A full bucket would take more than ten years to drain. */
  | "drainsTooLong";

/**
 * Returns why an override is not allowed for a limit. Undefined if it is allowed.
 *
 * @param mostTimes the maximum factor (`overrideMax` in the policy)
 */
export function overrideRefusal(
  limit: Limit,
  override: Pick<Override, "effect">,
  mostTimes: number,
): OverrideRefusal | undefined {
  const { hits, burst, periodUs } = overriddenLimit(limit, override);
  if (hits > limit.hits * mostTimes || burst > limit.burst * mostTimes) return "aboveMax";
  return hits > 0 && (burst / hits) * periodUs > drainTimeUsMax ? "drainsTooLong" : undefined;
}

/** Maximum number of cached limits per snapshot. Beyond it, each key has its own. */
export const overriddenLimitsMax = 1_024;

/**
 * Caches overridden limits. Keys whose overrides have the same effect share one object, so that
 * they have the same shape and take no more memory than keys without an override.
 */
export class OverriddenLimits {
  readonly #known = new WeakMap<Limit, Map<string, Limit>>();
  readonly #numbers = new WeakMap<Limit, number>();
  #count = 0;

  /** The limit with an override. */
  limitOf(limit: Limit, override: Pick<Override, "effect">): Limit {
    const name = effectName(override.effect);
    const siblings = this.#known.get(limit);
    const known = siblings?.get(name);
    if (known !== undefined) return known;
    const made = overriddenLimit(limit, override);
    if (this.#count >= overriddenLimitsMax) return made;
    if (siblings === undefined) this.#known.set(limit, new Map([[name, made]]));
    else siblings.set(name, made);
    this.#numbers.set(made, this.#count);
    this.#count += 1;
    return made;
  }

  /** The unique number of a cached limit. Undefined for others. */
  numberOf(limit: Limit): number | undefined {
    return this.#numbers.get(limit);
  }
}

function effectName(effect: OverrideEffect): string {
  if (effect.kind === "amount") return `${effect.hits}/${effect.burst}`;
  return effect.kind === "multiplier" ? `x${effect.by}` : effect.kind;
}
