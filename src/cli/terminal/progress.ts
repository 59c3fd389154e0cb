import type { Clock } from "../../core/base/clock.js";

/** Where a bar is drawn, and how far apart in time. */
export interface ProgressParts {
  readonly clock: Clock;
  /** Takes parts of lines; undefined: nobody looks at a terminal, and nothing is drawn. */
  readonly draw: ((text: string) => void) | undefined;
  /** What is done at the end; undefined: nobody knows how much it is. */
  readonly total: number | undefined;
}

const drawEveryMs = 100;
const barColumns = 30;

/** A bar that shows how far long work has come. */
export class Progress {
  readonly #parts: ProgressParts;
  readonly #startMs: number;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #isDrawn = false;

  constructor(parts: ProgressParts) {
    this.#parts = parts;
    this.#startMs = parts.clock.monotonicMs();
  }

  /** So much is done now; what `words` says stands behind the bar. */
  show(done: number, words: () => string): void {
    const { clock, draw, total } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (draw === undefined || nowMs - this.#drawnMs < drawEveryMs) return;
    this.#drawnMs = nowMs;
    this.#isDrawn = true;
    const ratio = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
    const bar = ratio === undefined ? "" : `${barOf(ratio)} ${Math.floor(ratio * 100)} %  `;
    draw(`\r${bar}${words()}${this.#left(ratio, nowMs)}\u001b[K`);
  }

  /** Takes the bar away. */
  end(): void {
    if (this.#isDrawn) this.#parts.draw?.("\r\u001b[K");
  }

  #left(ratio: number | undefined, nowMs: number): string {
    const elapsedMs = nowMs - this.#startMs;
    if (ratio === undefined || ratio === 0 || elapsedMs < 1_000) return "";
    return `, ${Math.ceil((elapsedMs / ratio - elapsedMs) / 1_000)} s left`;
  }
}

function barOf(ratio: number): string {
  const full = Math.round(ratio * barColumns);
  return "█".repeat(full) + "░".repeat(barColumns - full);
}
