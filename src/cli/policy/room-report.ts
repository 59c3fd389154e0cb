import { many } from "../../core/base/many.js";
import { visibleText } from "../../policy/problems/problem.js";
import { formatDuration } from "../../policy/text/duration.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import { renderSection } from "./policy-section.js";

/** Summary of a waiting room in a policy, in words. The same names are used in JSON. */
interface RoomSummary {
  readonly name: string;
  readonly service: string;
  /** Hosts, paths and methods that it protects. */
  readonly guards: string;
  /** Maximum active users, and new ones per minute. */
  readonly capacity: string;
  readonly session: string;
  readonly order: string;
  /** Number of its events. */
  readonly events: string;
}

/** Summarizes each waiting room. */
export function summarizeRooms(rooms: readonly RoomPolicy[]): readonly RoomSummary[] {
  return rooms.map(({ name, service, match, ...room }) => {
    const { activeUsersMax, entriesPerMinuteMax, sessionMs, renews, order, events } = room;
    const parts = [match.methods, match.hosts, match.paths].filter((part) => part.length > 0);
    const pace = entriesPerMinuteMax === "auto" ? "" : `, ${entriesPerMinuteMax}/min`;
    return {
      name: visibleText(name),
      service: visibleText(service),
      guards: visibleText(parts.map((part) => part.join(",")).join(" ")) || "all",
      capacity: `${activeUsersMax}${pace}`,
      session: `${formatDuration(sessionMs)}${renews ? "" : " at most"}`,
      order,
      events: events.length === 0 ? "none" : many(events.length, "event"),
    };
  });
}

/** Returns the waiting rooms as a table; empty if there are none. */
export function renderRooms(rooms: readonly RoomPolicy[]): string {
  return renderSection("Waiting rooms", summarizeRooms(rooms), {
    room: "name",
    service: "service",
    guards: "guards",
    capacity: "capacity",
    session: "session",
    order: "order",
    events: "events",
  });
}
