import { formatTimestamp, parseTimestampUs } from "../../core/base/timestamp.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { duration, flag, readBy, text } from "../text/form.js";
import { field, inner, innerBlock, items, object, type ReadBlock } from "../text/object.js";
import { roomName } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { eventCapacity } from "./room-capacity.js";

/** Maximum number of events of one room. */
export const eventsMax = 64;

/** Maximum time before an event at which visitors may join, in milliseconds: a week. */
export const preQueueMsMax = 604_800_000;

const timeRule: TextRule = {
  charsMax: 40,
  forbidden: /\p{Cc}/u,
  expected: "a time with an offset, such as 2026-11-27T09:00:00Z or 2026-11-27T09:00:00+01:00",
};

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** A time, in milliseconds since 1970. Source: RFC 3339 section 5.6. */
const time = readBy(text(timeRule, timePattern), (reader, place) => {
  const written = reader.readText(place, timeRule);
  if (written === undefined) return undefined;
  const us = parseTimestampUs(written);
  if (us !== undefined && timePattern.test(written)) return Math.floor(us / 1_000);
  return reader.reportContent(place.value ?? place.key, {
    id: "HG273",
    message: `${quoteText(written)} is not a time with an offset`,
    expected: timeRule.expected,
    suggestion: us === undefined || us >= 1e18 ? undefined : formatTimestamp(us),
  });
});

const event = object(
  { title: "an event", docs: "An announced opening, such as the start of a sale." },
  {
    name: field(roomName, "The name, on the page and for operators.", {
      needs: "the name of the event",
    }),
    start: field(time, "When the event opens, an RFC 3339 time.", {
      larger: "different",
      as: "startsAtMs",
      needs: timeRule.expected,
    }),
    end: field(time, "When the event ends, an RFC 3339 time.", {
      larger: "different",
      as: "endsAtMs",
      needs: timeRule.expected,
    }),
    preQueue: field(
      duration({ minMs: 0, maxMs: preQueueMsMax }),
      "For how long before the start visitors may come and wait; nobody enters meanwhile.",
      { larger: "different", as: "preQueueMs", default: 0 },
    ),
    shuffle: field(
      flag,
      "Whether those who came before the start get places by chance. Otherwise they keep the " +
        "order in which they came, unless the room's `order` is `random`.",
      { as: "shuffles", default: true },
    ),
    capacity: field(inner(eventCapacity), "While the event is open. Default: the room's."),
  },
  {
    data({ name, startsAtMs, endsAtMs, capacity, ...rest }) {
      if (name === undefined || startsAtMs === undefined || endsAtMs === undefined) {
        return undefined;
      }
      const { activeUsersMax, entriesPerMinuteMax } = capacity ?? eventCapacity.defaults;
      return { name, startsAtMs, endsAtMs, ...rest, activeUsersMax, entriesPerMinuteMax };
    },
    check(block, _, { startsAtMs, endsAtMs }) {
      if (startsAtMs === undefined || endsAtMs === undefined || startsAtMs < endsAtMs) return;
      block.refuseOrder(["end"], "the event ends before it starts", "an end after the start");
    },
  },
);

/** An announced opening; times in milliseconds since 1970. */
export type RoomEvent = NonNullable<typeof event.defaults>;

const written = items(innerBlock(event, "an event: {name: ..., start: ..., end: ...}"), {
  expected: "a list of events: {name: ..., start: ..., end: ...}",
  max: eventsMax,
});

/** `events` of a waiting room, in the order of their starts. */
export const roomEvents = readBy<readonly RoomEvent[]>(written, (reader, place) => {
  const known = written.read(reader, place)?.flatMap(({ block, data }) => {
    return data === undefined ? [] : [{ block, data }];
  });
  if (known === undefined) return undefined;
  refuseSameNames(known);
  const sorted = known.toSorted((one, other) => one.data.startsAtMs - other.data.startsAtMs);
  sorted.forEach(({ block, data }, index) => {
    const former = sorted[index - 1];
    if (former !== undefined) refuseOverlap(block, data, former.data);
  });
  return sorted.map(({ data }) => data);
});

function refuseSameNames(events: readonly ReadBlock<RoomEvent>[]): void {
  const known = new Set<string>();
  for (const { block, data } of events) {
    if (known.has(data.name)) {
      const message = `an event named ${quoteText(data.name)} is already defined in this room`;
      block.report("name", { id: "HG270", message });
    }
    known.add(data.name);
  }
}

function refuseOverlap(block: Block, event: RoomEvent, former: RoomEvent): void {
  const name = quoteText(former.name);
  const expected = `${formatTimestamp(former.endsAtMs * 1_000)} or later`;
  if (event.startsAtMs < former.endsAtMs) {
    const message = `the event starts before ${name} ends`;
    block.report("start", { id: "HG274", message, expected });
  } else if (event.startsAtMs - event.preQueueMs < former.endsAtMs) {
    const message = `visitors may come before ${name} ends`;
    block.report("preQueue", { id: "HG274", message, expected: `from ${expected}` });
  }
}
