import type { LineShuffle, RoomStatus } from "./room-line.js";

/** The place of a number: from 0; smaller places are called first. */
export declare function placeOf(number: number, shuffles: readonly LineShuffle[]): number;

/** Visitors who are present and have smaller places; 0 for places that were called. */
export declare function aheadOf(
  place: number,
  status: Pick<RoomStatus, "calledPlace" | "liveByBlock">,
): number;

/** How much longer places and sessions last now than the policy says, in seconds. */
export declare function lifeExtensionSeconds(
  status: Pick<RoomStatus, "second" | "extensionSeconds">,
  second: number,
): number;
