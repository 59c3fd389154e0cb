/** A deliberate difference between Headgate and envoyproxy/ratelimit. */
export interface DifferenceRow {
  /**
   * `better`: no user who relied on the other behaviour is worse off. `different`: some may be.
   * `stricter`: what is accepted there may be refused here, with the reason.
   */
  readonly kind: "better" | "different" | "stricter";
  /** What envoyproxy/ratelimit does. */
  readonly reference: string;
  /** What Headgate does. */
  readonly headgate: string;
  /** How to restore the other behaviour; absent if that is impossible. */
  readonly choice?: string;
}

/** Joins the lines of one text. */
export function joined(...lines: readonly string[]): string {
  return lines.join(" ");
}
