import type { Limit } from "./limit.js";
import { type Override, type OverrideEffect, overriddenLimit } from "./override.js";

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
