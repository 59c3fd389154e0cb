/** Counts over time, in steps of one length. */
export interface TimelineCounts {
  /** Start of the first step, in microseconds since 1970; a multiple of the step. */
  readonly startUs: number;
  readonly stepUs: number;
  readonly counts: readonly number[];
}

/** Maximum number of steps. If more are needed, each becomes twice as long. */
export const timelineStepsMax = 120;

/** Minimum length of a step. */
const stepUsMin = 1_000_000;

/** Counts events over time, in constant memory for any duration. */
export class Timeline {
  #stepUs = stepUsMin;
  #startUs: number | undefined;
  #counts: number[] = [];

  /** Adds an amount at a time. Times before the start count at the start. */
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

  /** Returns the counts; undefined before the first event. */
  read(): TimelineCounts | undefined {
    if (this.#startUs === undefined) return undefined;
    return { startUs: this.#startUs, stepUs: this.#stepUs, counts: [...this.#counts] };
  }

  #stepOf(timeUs: number): number {
    return Math.max(0, Math.floor((timeUs - (this.#startUs ?? 0)) / this.#stepUs));
  }

  /** Keeps steps at multiples of their length, so that timelines can be compared. */
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

/** Brings a timeline onto the steps of another one, which must contain it. */
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
