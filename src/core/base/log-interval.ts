/**
 * Limits how often a recurring event is logged: at most once per interval and subject. Subjects
 * must be from a closed set, because they are never forgotten.
 */
export class LogInterval<Subject> {
  readonly #intervalMs: number;
  readonly #quietUntilMs = new Map<Subject, number>();

  /** @param intervalMs minimum time between two lines on one subject */
  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /** Reports whether to log a subject now. If so, a new interval starts. */
  begins(subject: Subject, nowMs: number): boolean {
    if (nowMs < (this.#quietUntilMs.get(subject) ?? Number.NEGATIVE_INFINITY)) return false;
    this.#quietUntilMs.set(subject, nowMs + this.#intervalMs);
    return true;
  }
}
