import { waitRange } from "../../core/waiting-room/estimate.js";
import type { PageState } from "../../core/waiting-room/page-fields.js";
import { aheadOf, placeOf } from "../../core/waiting-room/places.js";
import type { RoomLine, RoomStatus, WaitRange } from "../../core/waiting-room/room-line.js";
import type { WaitingTicket } from "../../core/waiting-room/ticket.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";

/** The standing of a visitor, as pages and applications are told. */
export interface RoomStanding {
  readonly state: PageState;
  /** Present visitors before this one. Undefined: it has no place, or this is not known. */
  readonly aheadCount: number | undefined;
  /** The expected wait; undefined: not known. */
  readonly estimate: WaitRange | undefined;
  /** Elapsed percentage of the wait, 0 to 100. */
  readonly progressPercent: number;
  /** When the next event opens; undefined: none is known. */
  readonly opensInSeconds: number | undefined;
}

/** Returns the standing of a visitor without a place. */
export function standingWithout(state: PageState): RoomStanding {
  return {
    state,
    aheadCount: undefined,
    estimate: undefined,
    progressPercent: 0,
    opensInSeconds: undefined,
  };
}

/** Returns the standing of a ticket's visitor, by what the leader published last. */
export function standingOf(
  ticket: Pick<WaitingTicket, "number" | "second">,
  { status, second }: { readonly status: RoomStatus; readonly second: number },
  { refreshMs }: Pick<RoomPolicy, "refreshMs">,
): RoomStanding {
  const isEarly = status.phase === "preQueue";
  const place = placeOf(ticket.number, status.shuffles);
  // Visitors who come early and are shuffled have no place yet.
  const aheadCount = isEarly && status.shufflesNext ? undefined : aheadOf(place, status);
  const isOpen = !isEarly && status.mode !== "paused" && aheadCount !== undefined;
  const estimate = isOpen ? waitRange(aheadCount, status, refreshMs / 1_000) : undefined;
  const { opensSecond } = status;
  return {
    state: stateOf(status),
    aheadCount,
    estimate,
    progressPercent: progressOf(second - ticket.second, estimate),
    opensInSeconds: opensSecond === undefined ? undefined : Math.max(0, opensSecond - second),
  };
}

/** Returns the expected wait that a visitor who joins now is told. Undefined: not known. */
export function estimateForNext(
  { status }: Pick<RoomLine, "status">,
  { refreshMs }: Pick<RoomPolicy, "refreshMs">,
): WaitRange | undefined {
  return status && waitRange(status.waitingCount, status, refreshMs / 1_000);
}

function stateOf({ mode, phase }: RoomStatus): PageState {
  if (phase === "preQueue") return "preQueue";
  return mode === "paused" ? "paused" : "waiting";
}

/** Example: 5 minutes waited and 15 expected are 25. */
function progressOf(waitedSeconds: number, estimate: WaitRange | undefined): number {
  if (estimate === undefined || waitedSeconds <= 0) return 0;
  const { middleSeconds } = estimate;
  return Math.min(99, Math.round((100 * waitedSeconds) / (waitedSeconds + middleSeconds)));
}
