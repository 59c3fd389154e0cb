/** What a change does to requests, those that somebody will notice first. */
export const changeEffects = ["stricter", "looser", "different"] as const;

/** `stricter`: some that passed may be refused. `looser`: some that were refused may pass. */
export type ChangeEffect = (typeof changeEffects)[number];

/** One change of a policy, in words. */
export interface PolicyChange {
  readonly effect: ChangeEffect;
  /** Example: `shop/plan.user free-pace`, `service orders`. Policy text only. */
  readonly place: string;
  /** A sentence without its place and full stop. */
  readonly words: string;
}
