import { describe, expect, it } from "vitest";
import {
  type EventRules,
  eventState,
  lostAfterSeconds,
  type RoomRules,
  roomBounds,
} from "../../../../src/core/waiting-room/room-rules.js";

function event(
  name: string,
  times: Pick<EventRules, "startsAtMs" | "endsAtMs" | "preQueueMs">,
): EventRules {
  const bounds = { activeUsersMax: 50, entriesPerMinuteMax: undefined };
  return { name, ...times, shuffles: false, ...bounds };
}

describe("eventState()", () => {
  const events = [
    event("late", { startsAtMs: 5_000, endsAtMs: 9_000, preQueueMs: 1_000 }),
    event("early", { startsAtMs: 1_000, endsAtMs: 6_000, preQueueMs: 500 }),
  ];

  it.each([
    { nowMs: 499, phase: "none", name: undefined, next: "early" },
    { nowMs: 500, phase: "preQueue", name: "early", next: "early" },
    { nowMs: 1_000, phase: "open", name: "early", next: "late" },
    { nowMs: 4_500, phase: "open", name: "early", next: "late" },
    { nowMs: 5_000, phase: "open", name: "late", next: undefined },
    { nowMs: 9_000, phase: "none", name: undefined, next: undefined },
  ])("is $phase of $name at $nowMs", ({ nowMs, phase, name, next }) => {
    const state = eventState(events, nowMs, undefined);
    expect([state.phase, state.event?.name, state.next?.name]).toEqual([phase, name, next]);
  });

  it("is what an operator has opened, whatever the time is", () => {
    expect(eventState(events, 0, "late")).toMatchObject({ phase: "open", event: { name: "late" } });
    expect(eventState(events, 1e9, "early").event?.name).toBe("early");
    expect(eventState(events, 0, "unknown").phase).toBe("none");
  });
});

describe("roomBounds()", () => {
  const rules: RoomRules = {
    name: "sale",
    activeUsersMax: 10,
    entriesPerMinuteMax: 60,
    sessionMs: 60_000,
    order: "fifo",
    queueAll: false,
    waitingMax: 100,
    refreshMs: 20_000,
    missedRefreshesMax: 2,
    events: [],
    estimatedWait: undefined,
  };
  const open = eventState(
    [event("sale", { startsAtMs: 0, endsAtMs: 9, preQueueMs: 0 })],
    5,
    undefined,
  );
  const before = eventState(
    [event("sale", { startsAtMs: 10, endsAtMs: 20, preQueueMs: 10 })],
    5,
    undefined,
  );

  it("are an operator's, else those of an event that is open, else the room's", () => {
    expect(roomBounds(rules, open, undefined)).toEqual({
      activeUsersMax: 50,
      entriesPerMinuteMax: 60,
    });
    expect(roomBounds(rules, before, undefined).activeUsersMax).toBe(10);
    const override = { mode: "open" as const, activeUsersMax: 0, openedEvent: undefined };
    const bounds = roomBounds(rules, open, { ...override, entriesPerMinuteMax: undefined });
    expect(bounds).toEqual({ activeUsersMax: 0, entriesPerMinuteMax: 60 });
  });

  it("count missed refreshes in whole seconds, and what may be late", () => {
    expect(lostAfterSeconds(rules)).toBe(63);
    expect(lostAfterSeconds({ ...rules, refreshMs: 1_500, missedRefreshesMax: 0 })).toBe(5);
  });
});
