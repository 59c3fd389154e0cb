import type { ChangeEffect } from "../text/form.js";

/** Every effect, those that somebody will notice first. */
export const changeEffects: readonly ChangeEffect[] = ["stricter", "looser", "different"];

/** What the same change does the other way round. */
export function opposite(effect: ChangeEffect): ChangeEffect {
  if (effect === "different") return effect;
  return effect === "stricter" ? "looser" : "stricter";
}

/** Said of what proxies have by configuration: an edit of the policy does not bring it there. */
export const generateAnew = "; regenerate the proxies' configuration";

/** One change of a policy, in words. */
export interface PolicyChange {
  readonly effect: ChangeEffect;
  /** Example: `shop/plan.user free-pace`, `service orders`. Policy text only. */
  readonly place: string;
  /** A sentence without its place and full stop. */
  readonly words: string;
}
