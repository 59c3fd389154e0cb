import type { RoomStatus, WaitRange } from "./room-line.js";
import type { AnnouncedWait } from "./ticket.js";

/** What a range depends on. */
export type EstimateInput = Pick<
  RoomStatus,
  "entriesPerSecond" | "entriesMeasuredCount" | "abandonPerSecond" | "rangeFactor"
>;

/**
 * The range of the wait of a visitor with that many people ahead; undefined where nobody can enter.
 *
 * @param refreshSeconds how often the visitor asks, since it enters with a request
 */
export declare function waitRange(
  aheadCount: number,
  input: EstimateInput,
  refreshSeconds: number,
): WaitRange | undefined;

/**
 * Whether a range as wide as ranges are now (`rangeFactor`) would have held: what `noteWait` is
 * told. With the factor that the range was announced with it says whether that one held.
 */
export declare function rangeHeld(
  announced: AnnouncedWait,
  trueSeconds: number,
  rangeFactor: number,
): boolean;
