import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { WaitingTicket } from "../../core/waiting-room/ticket.js";
import {
  type RoomOutcome,
  type RoomView,
  roomOutcomes,
  roomWaitBoundsSeconds,
} from "./room-view.js";

/** Maximum number of recent entrances that are kept, so that each wait is counted once. */
const enteredKept = 65_536;

/** Outcomes of the requests of one room, in this process. Plain numbers. */
export class RoomCounts {
  readonly outcomes = new Map<RoomOutcome, number>(roomOutcomes.map((outcome) => [outcome, 0]));
  #endedCount = 0;
  #inRangeCount = 0;
  #expectedSeconds = 0;
  #actualSeconds = 0;
  readonly #counts = new Array<number>(roomWaitBoundsSeconds.length + 1).fill(0);
  readonly #entered = new GenerationalMap<number, true>(enteredKept);

  count(outcome: RoomOutcome): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  /**
   * Counts a wait that ended with an entrance, if its visitor was told a range when it joined.
   *
   * @returns its duration in seconds, once for each visitor; undefined: nothing was counted
   */
  entered({ number, second, announced }: WaitingTicket, nowSecond: number): number | undefined {
    if (announced === undefined || this.#entered.has(number)) return undefined;
    this.#entered.set(number, true);
    const actualSeconds = Math.max(0, nowSecond - second);
    const { lowSeconds, middleSeconds, highSeconds } = announced;
    const bucket = roomWaitBoundsSeconds.findIndex((bound) => actualSeconds <= bound);
    const index = bucket === -1 ? roomWaitBoundsSeconds.length : bucket;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#endedCount += 1;
    if (actualSeconds >= lowSeconds && actualSeconds <= highSeconds) this.#inRangeCount += 1;
    this.#expectedSeconds += middleSeconds;
    this.#actualSeconds += actualSeconds;
    return actualSeconds;
  }

  get waits(): RoomView["waits"] {
    return {
      endedCount: this.#endedCount,
      inRangeCount: this.#inRangeCount,
      counts: this.#counts,
      expectedSeconds: this.#expectedSeconds,
      actualSeconds: this.#actualSeconds,
    };
  }
}
