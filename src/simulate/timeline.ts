/** Counts over time, in steps of one length. */
export interface TimelineCounts {
  /** When the first step begins, in microseconds since 1970; a whole number of steps. */
  readonly startUs: number;
  readonly stepUs: number;
  readonly counts: readonly number[];
}

/** The most steps; when more are needed, each becomes twice as long. */
export const timelineStepsMax = 120;

/** The shortest step. */
const stepUsMin = 1_000_000;

/** How much happened when, in constant room, however long it takes. */
export class Timeline {
  #stepUs = stepUsMin;
  #startUs: number | undefined;
  #counts: number[] = [];

  /** So much happened at a time; earlier than the beginning counts at the beginning. */
  add(timeUs: number, amount = 1): void {
    this.#startUs ??= Math.floor(timeUs / this.#stepUs) * this.#stepUs;
    let step = this.#stepOf(timeUs);
    while (step >= timelineStepsMax) {
      this.#coarsen();
      step = this.#stepOf(timeUs);
    }
    while (this.#counts.length <= step) this.#counts.push(0);
    this.#counts[step] = (this.#counts[step] ?? 0) + amount;
  }

  /** Undefined before anything happened. */
  read(): TimelineCounts | undefined {
    if (this.#startUs === undefined) return undefined;
    return { startUs: this.#startUs, stepUs: this.#stepUs, counts: [...this.#counts] };
  }

  #stepOf(timeUs: number): number {
    return Math.max(0, Math.floor((timeUs - (this.#startUs ?? 0)) / this.#stepUs));
  }

  /** Steps stay at whole multiples of their length, so that timelines can be laid side by side. */
  #coarsen(): void {
    const startUs = this.#startUs ?? 0;
    this.#stepUs *= 2;
    this.#startUs = Math.floor(startUs / this.#stepUs) * this.#stepUs;
    const isShifted = this.#startUs !== startUs;
    const counts: number[] = [];
    this.#counts.forEach((count, i) => {
      const step = (i + (isShifted ? 1 : 0)) >> 1;
      counts[step] = (counts[step] ?? 0) + count;
    });
    this.#counts = counts;
  }
}

/** Brings a timeline onto the steps of another one, which must hold it. */
export function alignTimeline(
  counts: TimelineCounts | undefined,
  onto: TimelineCounts,
): readonly number[] {
  const aligned = onto.counts.map(() => 0);
  counts?.counts.forEach((count, i) => {
    const timeUs = counts.startUs + i * counts.stepUs;
    const step = Math.floor((timeUs - onto.startUs) / onto.stepUs);
    const place = Math.max(0, Math.min(aligned.length - 1, step));
    aligned[place] = (aligned[place] ?? 0) + count;
  });
  return aligned;
}
