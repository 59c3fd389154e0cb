import type { EstimatedWaitSettings } from "../admission/estimated-wait.js";
import type { RoomEventPhase, RoomOverride } from "./room-line.js";

/** Settings of a room in a policy. A `RoomPolicy` is one, and documents each field. */
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

/** The state of a room's events. */
export interface EventState {
  readonly phase: RoomEventPhase;
  /** The event that is open, or that visitors wait for. */
  readonly event: EventRules | undefined;
  /** The next event that opens by its schedule. */
  readonly next: EventRules | undefined;
}

/**
 * Returns the state of a room's events. If several are open, the one that began last counts. One
 * that an operator has opened takes precedence, whatever its times are.
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

/** Returns the bounds that apply: an operator's, else the open event's, else the room's. */
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

/** Returns how long a visitor may be silent before it loses its place, in whole seconds. */
export function lostAfterSeconds({ refreshMs, missedRefreshesMax }: RoomRules): number {
  return Math.ceil((refreshMs * (missedRefreshesMax + 1)) / 1_000) + lateSeconds;
}

/**
 * How long a session is kept beyond its length, in seconds: a replica's estimate of the store's
 * second may be late by the duration of a call of the store, and seconds are truncated.
 */
export const lateSeconds = 3;

function first(events: readonly EventRules[]): EventRules | undefined {
  return events.toSorted((left, right) => left.startsAtMs - right.startsAtMs)[0];
}
