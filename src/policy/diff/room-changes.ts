import { formatTimestamp } from "../../core/base/timestamp.js";
import { formatDuration } from "../text/duration.js";
import type { ChangeEffect } from "../text/form.js";
import type { RoomEvent } from "../waiting-rooms/room-events.js";
import { room as roomForm } from "../waiting-rooms/room-form.js";
import type { RoomPolicy } from "../waiting-rooms/room-policy.js";
import { type FieldChange, fieldChanges } from "./field-changes.js";
import { generateAnew, type PolicyChange } from "./policy-change.js";

/** Returns the changes of waiting rooms, field by field. They are matched by name. */
export function compareRooms(
  before: readonly RoomPolicy[],
  after: readonly RoomPolicy[],
): readonly PolicyChange[] {
  const young = new Map(after.map((room) => [room.name, room]));
  const old = new Set(before.map(({ name }) => name));
  return [
    ...before.flatMap((room) => {
      const now = young.get(room.name);
      return now === undefined ? [goneRoom(room)] : changedRoom(room, now);
    }),
    ...after.filter(({ name }) => !old.has(name)).map(newRoom),
    ...reorderedRooms(before, after),
  ];
}

function roomPlace({ name }: RoomPolicy): string {
  return `waiting room ${name}`;
}

function goneRoom(room: RoomPolicy): PolicyChange {
  const words = "the waiting room is removed: whoever waits enters, and its places are gone";
  return { effect: "looser", place: roomPlace(room), words: `${words}${generateAnew}` };
}

function newRoom(room: RoomPolicy): PolicyChange {
  const { activeUsersMax } = room;
  const most =
    activeUsersMax === "auto" ? "as many active users as fit" : `${activeUsersMax} active users`;
  const words = `a new waiting room in front of ${room.service}, with ${most}${generateAnew}`;
  return { effect: "stricter", place: roomPlace(room), words };
}

function changedRoom(before: RoomPolicy, after: RoomPolicy): readonly PolicyChange[] {
  const pair = { before: reportedOf(before), after: reportedOf(after) };
  return fieldChanges({ ...pair, form: roomForm, isGenerated: false }).map((change) => ({
    effect: effectOf(change),
    place: roomPlace(after),
    words: `${wordsOf(change)}${change.isGenerated ? generateAnew : ""}`,
  }));
}

/** Reports a new order: of rooms that match the same request, the first one applies. */
function reorderedRooms(
  before: readonly RoomPolicy[],
  after: readonly RoomPolicy[],
): readonly PolicyChange[] {
  const kept = before
    .map(({ name }) => name)
    .filter((name) => after.some((one) => one.name === name));
  const now = after.map(({ name }) => name).filter((name) => kept.includes(name));
  if (kept.join() === now.join()) return [];
  const words = "their order changes, and of rooms that match a request the first one counts";
  return [{ effect: "different", place: "waiting rooms", words }];
}

/** Returns a room for the report, with lists and maps as objects by name. */
function reportedOf({ events, page, ...rest }: RoomPolicy): object {
  const texts = [...page.texts].map(([language, own]) => [language, Object.fromEntries(own)]);
  return {
    ...rest,
    events: Object.fromEntries(events.map((event) => [event.name, reportedEvent(event)])),
    page: { ...page, texts: Object.fromEntries(texts) },
  };
}

/** Uses the policy's names, because no declaration maps an event's fields by its name. */
function reportedEvent(event: RoomEvent): object {
  const [start, end] = [event.startsAtMs, event.endsAtMs].map((ms) => formatTimestamp(ms * 1_000));
  return {
    start,
    end,
    preQueue: formatDuration(event.preQueueMs),
    shuffle: event.shuffles,
    "capacity.activeUsers": event.activeUsersMax,
    "capacity.newUsersPerMinute": event.entriesPerMinuteMax,
  };
}

/** Hides header values, which let their senders pass, and pages, which have too many lines. */
function wordsOf({ name, was, is, words }: FieldChange): string {
  const isEdited = was !== undefined && is !== undefined;
  const isBrief = name === "bypass.headers" || (name === "page.template" && isEdited);
  return isBrief ? `${name} changes` : words;
}

/** Returns the effect; a longer list of bypasses is looser, a shorter one stricter. */
function effectOf({ name, was, is, effect }: FieldChange): ChangeEffect {
  const isNumber = typeof was === "number" || typeof is === "number";
  // A number bounds what `auto` measures, and `auto` is not a number to compare.
  if (isNumber && typeof was !== typeof is) return "different";
  if (!name.startsWith("bypass.") || !Array.isArray(was) || !Array.isArray(is)) return effect;
  return is.length > was.length ? "looser" : is.length < was.length ? "stricter" : "different";
}
