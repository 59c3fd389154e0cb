import type { ChangeEffect } from "../text/form.js";

/** All effects, the most noticeable first. */
export const changeEffects: readonly ChangeEffect[] = ["stricter", "looser", "different"];

/** Returns the effect of the reverse change. */
export function opposite(effect: ChangeEffect): ChangeEffect {
  if (effect === "different") return effect;
  return effect === "stricter" ? "looser" : "stricter";
}

/** Added if proxies receive it by configuration: an edit of the policy does not update them. */
export const generateAnew = "; regenerate the proxies' configuration";

/** A description of one change of a policy. */
export interface PolicyChange {
  readonly effect: ChangeEffect;
  /** Example: `shop/plan.user free-pace`, `service orders`. Policy text only. */
  readonly place: string;
  /** A sentence without its place and full stop. */
  readonly words: string;
}
