/**
 * How often something is logged that may happen all day: once, and again when an interval is over,
 * by subject. Subjects are of a closed set, or they would be kept for ever.
 */
export class LogInterval<Subject> {
  readonly #intervalMs: number;
  readonly #quietUntilMs = new Map<Subject, number>();

  /** @param intervalMs least time between two lines on one subject */
  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /** Whether a subject is to be logged now; if so, the interval begins. */
  begins(subject: Subject, nowMs: number): boolean {
    if (nowMs < (this.#quietUntilMs.get(subject) ?? Number.NEGATIVE_INFINITY)) return false;
    this.#quietUntilMs.set(subject, nowMs + this.#intervalMs);
    return true;
  }
}
