/** Where Headgate deliberately behaves otherwise than envoyproxy/ratelimit does. */
export interface DifferenceRow {
  /**
   * `better`: nobody who relied on the other behaviour loses by it. `different`: somebody may.
   * `stricter`: what is taken there may be refused here, with the reason.
   */
  readonly kind: "better" | "different" | "stricter";
  /** What envoyproxy/ratelimit does. */
  readonly reference: string;
  /** What Headgate does. */
  readonly headgate: string;
  /** What brings the other behaviour back; absent where nothing does. */
  readonly choice?: string;
}

/** One text of several lines. */
export function joined(...lines: readonly string[]): string {
  return lines.join(" ");
}
