import type { Cancel } from "../../core/base/clock.js";
import type { NodeReport, ShareSheet } from "../../core/feedback/feedback.js";
import { type LoopCounts, type LoopParts, sheetEveryMs } from "./shared-loop.js";
import { SheetBoard, sheetAgeMsMax } from "./sheet-board.js";
import { Reign } from "./sheet-maker.js";

/** Reports that wait for the next sheet; older ones are dropped. One a second is usual. */
export const waitingMax = 3;

/** The epoch of one whom nobody can follow. */
const loneEpoch = 1;

/** The loop of one replica without a shared store: it leads itself. */
export class LoneLoop {
  readonly board: SheetBoard;
  readonly isLeading = true;
  readonly isAlone = true;
  readonly #parts: LoopParts;
  readonly #reign: Reign;
  /** What was told since the last sheet, by time. */
  #waiting: readonly (readonly NodeReport[])[] = [];
  #cancelNext: Cancel | undefined;
  #publishedCount = 0;

  /** Makes a sheet each second, until `stop`. */
  constructor(parts: LoopParts) {
    const { clock, id: leaderId, onEvent, ageMsMax = sheetAgeMsMax } = parts;
    this.#parts = parts;
    this.board = new SheetBoard({ clock, ageMsMax, onEvent: (event) => onEvent?.(event) });
    const nowMs = clock.monotonicMs();
    this.#reign = new Reign({ ...parts, epoch: loneEpoch, leaderId, nowMs, last: undefined });
    this.#schedule();
  }

  get counts(): LoopCounts {
    const { olderCount: older } = this.board;
    return {
      published: this.#publishedCount,
      refused: 0,
      older,
      failed: 0,
      unreadable: 0,
      leftOut: 0,
    };
  }

  /** See `SharedLoop`. */
  current(): ShareSheet | undefined {
    return this.board.current();
  }

  /** See `SharedLoop`. */
  onSheet(listener: () => void): () => void {
    return this.board.onSheet(listener);
  }

  /** Takes what the Envoys did since the last time. */
  report(reports: readonly NodeReport[]): void {
    this.#waiting = [...this.#waiting, reports].slice(-waitingMax);
  }

  /** Makes no more sheets. */
  async stop(): Promise<void> {
    this.#cancelNext?.();
  }

  #schedule(): void {
    this.#cancelNext = this.#parts.clock.schedule(sheetEveryMs, () => {
      this.#schedule();
      try {
        this.#decide();
      } catch (thrown) {
        this.#parts.onBug(thrown);
      }
    });
  }

  #decide(): void {
    const { clock, pressures } = this.#parts;
    const nowMs = clock.monotonicMs();
    const reports = this.#waiting.flat();
    this.#waiting = [];
    const fleet = this.#reign.decide(reports, pressures(), nowMs);
    this.#publishedCount += 1;
    this.board.take(fleet, nowMs);
  }
}
