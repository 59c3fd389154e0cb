import type { Cancel } from "../../core/base/clock.js";
import type { NodeReport, ShareSnapshot } from "../../core/feedback/feedback.js";
import { LeaderTerm } from "./leader-term.js";
import { type LoopCounts, type LoopParts, snapshotEveryMs } from "./shared-loop.js";
import { SnapshotHolder, snapshotAgeMsMax } from "./snapshot-holder.js";

/** Reports that wait for the next snapshot; older ones are dropped. One a second is usual. */
export const waitingMax = 3;

/** The term of one whom nobody can follow. */
const inProcessTerm = 1;

/** The loop of one replica without a shared store: it leads itself. */
export class InProcessLoop {
  readonly board: SnapshotHolder;
  readonly isLeading = true;
  readonly isAlone = true;
  readonly #parts: LoopParts;
  readonly #leaderTerm: LeaderTerm;
  /** What was told since the last snapshot, by time. */
  #waiting: readonly (readonly NodeReport[])[] = [];
  #cancelNext: Cancel | undefined;
  #publishedCount = 0;

  /** Makes a snapshot each second, until `stop`. */
  constructor(parts: LoopParts) {
    const { clock, id: leaderId, onEvent, ageMsMax = snapshotAgeMsMax } = parts;
    this.#parts = parts;
    this.board = new SnapshotHolder({ clock, ageMsMax, onEvent: (event) => onEvent?.(event) });
    const nowMs = clock.monotonicMs();
    this.#leaderTerm = new LeaderTerm({
      ...parts,
      term: inProcessTerm,
      leaderId,
      nowMs,
      last: undefined,
    });
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
  current(): ShareSnapshot | undefined {
    return this.board.current();
  }

  /** See `SharedLoop`. */
  onSnapshot(listener: () => void): () => void {
    return this.board.onSnapshot(listener);
  }

  /** Takes what the Envoys did since the last time. */
  report(reports: readonly NodeReport[]): void {
    this.#waiting = [...this.#waiting, reports].slice(-waitingMax);
  }

  /** Makes no more snapshots. */
  async stop(): Promise<void> {
    this.#cancelNext?.();
  }

  #schedule(): void {
    this.#cancelNext = this.#parts.clock.schedule(snapshotEveryMs, () => {
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
    const fleet = this.#leaderTerm.decide(reports, pressures(), nowMs);
    this.#publishedCount += 1;
    this.board.take(fleet, nowMs);
  }
}
