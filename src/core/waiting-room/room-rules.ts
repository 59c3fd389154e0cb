import type { EstimatedWaitSettings } from "../admission/estimated-wait.js";
import type { RoomEventPhase, RoomOverride } from "./room-line.js";

/** What a policy says of how a room is run; a `RoomPolicy` is one. See there for each field. */
export interface RoomRules {
  readonly name: string;
  readonly activeUsersMax: number | "auto";
  readonly entriesPerMinuteMax: number | "auto";
  readonly sessionMs: number;
  readonly order: "fifo" | "random" | "reject" | "passthrough";
  readonly queueAll: boolean;
  readonly waitingMax: number;
  readonly refreshMs: number;
  readonly missedRefreshesMax: number;
  readonly events: readonly EventRules[];
  readonly estimatedWait: EstimatedWaitSettings | undefined;
}

/** An announced opening. */
export interface EventRules {
  readonly name: string;
  readonly startsAtMs: number;
  readonly endsAtMs: number;
  readonly preQueueMs: number;
  readonly shuffles: boolean;
  readonly activeUsersMax: number | "auto" | undefined;
  readonly entriesPerMinuteMax: number | "auto" | undefined;
}

/** Where a room's events stand. */
export interface EventState {
  readonly phase: RoomEventPhase;
  /** The one that is open, or that visitors wait for. */
  readonly event: EventRules | undefined;
  /** The next one that opens by its schedule. */
  readonly next: EventRules | undefined;
}

/**
 * Where events stand. Of several that are open, the one that began last counts, and one that an
 * operator has opened counts before all, whatever its times are.
 *
 * @param nowMs milliseconds since 1970, by the store's clock
 */
export function eventState(
  events: readonly EventRules[],
  nowMs: number,
  openedEvent: string | undefined,
): EventState {
  const next = first(events.filter(({ startsAtMs }) => startsAtMs > nowMs));
  const byHand = events.find(({ name }) => name === openedEvent);
  if (byHand !== undefined) return { phase: "open", event: byHand, next };
  const open = events
    .filter(({ startsAtMs, endsAtMs }) => startsAtMs <= nowMs && nowMs < endsAtMs)
    .toSorted((left, right) => right.startsAtMs - left.startsAtMs)[0];
  if (open !== undefined) return { phase: "open", event: open, next };
  const isPreQueue = next !== undefined && next.startsAtMs - next.preQueueMs <= nowMs;
  return isPreQueue
    ? { phase: "preQueue", event: next, next }
    : { phase: "none", event: undefined, next };
}

/** The most sessions, and entrances: an operator's, else the open event's, else the room's. */
export function roomBounds(
  rules: RoomRules,
  event: EventState,
  override: RoomOverride | undefined,
): Pick<RoomRules, "activeUsersMax" | "entriesPerMinuteMax"> {
  const open = event.phase === "open" ? event.event : undefined;
  return {
    activeUsersMax: override?.activeUsersMax ?? open?.activeUsersMax ?? rules.activeUsersMax,
    entriesPerMinuteMax:
      override?.entriesPerMinuteMax ?? open?.entriesPerMinuteMax ?? rules.entriesPerMinuteMax,
  };
}

/** How long a visitor may be silent before its place is lost, in whole seconds. */
export function lostAfterSeconds({ refreshMs, missedRefreshesMax }: RoomRules): number {
  return Math.ceil((refreshMs * (missedRefreshesMax + 1)) / 1_000) + lateSeconds;
}

/**
 * How long a session is kept beyond its length, in seconds: what a replica thinks the store's
 * second is may be as late as a call of the store may take, and seconds are cut.
 */
export const lateSeconds = 3;

function first(events: readonly EventRules[]): EventRules | undefined {
  return events.toSorted((left, right) => left.startsAtMs - right.startsAtMs)[0];
}
