import type { DescriptorEntry } from "./key.js";
import { drainTimeUsMax, hitsMax, type Limit } from "./limit.js";

/** Another limit for one key, or for all keys below a descriptor prefix, as operators give it. */
export interface Override {
  /** Chosen by who gives it, or made for it; 1 to 64 of `[a-z0-9-]`, its domain's own. */
  readonly id: string;
  readonly domain: string;
  /** A whole descriptor, or its beginning where `isPrefix`; 1 to 32. */
  readonly entries: readonly DescriptorEntry[];
  readonly isPrefix: boolean;
  /** Which limit of the rule; undefined: each. */
  readonly limitName?: string;
  readonly effect: OverrideEffect;
  /** Milliseconds since 1970; undefined: until it is taken away. */
  readonly expiresEpochMs?: number;
  readonly reason: string;
  readonly author: string;
  readonly createdEpochMs: number;
}

/** What it does to a limit. */
export type OverrideEffect =
  /** So many hits for the limit's own period, and so large a burst. */
  | { readonly kind: "amount"; readonly hits: number; readonly burst: number }
  /** Hits and burst times so much, above 0. */
  | { readonly kind: "multiplier"; readonly by: number }
  /** Nothing passes. */
  | { readonly kind: "frozen" };

/** How many times as much as a limit its override may give, where the policy does not say. */
export const defaultOverrideMax = 10;

/** How many times as much as a limit its override may give. */
export function overrideMaxOf({ overrideMax }: Pick<Limit, "overrideMax">): number {
  return overrideMax ?? defaultOverrideMax;
}

/** The largest multiplier; what is beyond is no limit any more. */
export const multiplierMax = 1_000_000;

/**
 * The limit under an override. It counts in the same bucket as without: what was used stays used.
 *
 * A multiplier rounds down, to one hit at least; a limit of 0 stays 0. In windows the burst is the
 * hits.
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

/** Why a limit cannot be what an override makes of it. */
type OverrideRefusal =
  /** More than `mostTimes` as much as the policy gives, in hits or in burst. */
  | "aboveMax"
  /** A full bucket would take more than ten years to drain. */
  | "drainsTooLong";

/**
 * Whether an override may be given for a limit; undefined: it may.
 *
 * @param mostTimes how many times the limit it may give at most (`overrideMax` of a policy)
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

/** Limits that are kept, of one snapshot of overrides: with more, each key has its own. */
export const overriddenLimitsMax = 1_024;

/**
 * What overrides make of limits: one object for all keys whose override does the same, so that they
 * are handled as one kind and need no more room than keys without an override.
 */
export class OverriddenLimits {
  readonly #known = new WeakMap<Limit, Map<string, Limit>>();
  readonly #numbers = new WeakMap<Limit, number>();
  #count = 0;

  /** The limit under an override. */
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

  /** A number that no other one of the kept limits has; undefined for what is not kept. */
  numberOf(limit: Limit): number | undefined {
    return this.#numbers.get(limit);
  }
}

function effectName(effect: OverrideEffect): string {
  if (effect.kind === "amount") return `${effect.hits}/${effect.burst}`;
  return effect.kind === "multiplier" ? `x${effect.by}` : effect.kind;
}
