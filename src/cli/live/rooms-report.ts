import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { many } from "../../core/base/many.js";
import type {
  ExplainTicketResponse,
  ListRoomsResponse,
  Room,
  RoomOverride,
  WaitRange,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatDuration } from "../../policy/text/duration.js";
import type { Drawing } from "../terminal/drawing.js";
import {
  countText,
  percentText,
  rateText,
  replicaText,
  safeText,
  timeText,
  waitText,
} from "../terminal/quantity.js";
import { drawTable } from "../terminal/text-table.js";
import { truncateText } from "../terminal/text-width.js";

/** Draws rooms as text: one row each, since all replicas have the same line. */
export function drawRooms(
  { rooms }: ListRoomsResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (rooms.length === 0) return ["The active policy has no waiting rooms."];
  const rows = byName(rooms).map((views) => {
    const room = newestOf(views);
    const { line } = room;
    return [
      safeText(room.name),
      stateText(room),
      ...(line === undefined
        ? ["-", "-", "-", "-"]
        : [
            countText(line.waiting),
            `${countText(line.active)} of ${countText(line.activeMax)}`,
            rateText(line.arrivalsPerSecond),
            line.entriesPerSecond === undefined ? "-" : rateText(line.entriesPerSecond),
          ]),
      rangeText(room.estimate),
      heldText(views),
    ];
  });
  const table = drawTable(
    [
      { title: "room", isFlexible: true, paint: style.bold },
      { title: "state", isFlexible: true },
      { title: "waiting", align: "right" },
      { title: "active", align: "right" },
      { title: "join", align: "right" },
      { title: "enter", align: "right" },
      { title: "wait", align: "right" },
      { title: "held", align: "right" },
    ],
    rows,
    columnsMax,
  );
  const troubles = byName(rooms).flatMap(troublesOf);
  return [...table, ...troubles.map((text) => style.bad(truncateText(text, columnsMax)))];
}

/** Draws one room as text. */
export function drawRoom({ rooms }: ListRoomsResponse, drawing: Drawing): readonly string[] {
  const [first] = rooms;
  if (first === undefined) return ["There is no such room."];
  const { style, columnsMax } = drawing;
  const room = newestOf(rooms);
  const { line, override, events } = room;
  const rows = [
    ["service", safeText(room.service)],
    ["state", stateText(room)],
    ["changes", drawOverride(override)],
    ...(line === undefined ? [] : lineRows(line)),
    ["estimate", rangeText(room.estimate)],
    ["ranges that held", heldText(rooms)],
    ["refused by Envoys", percentText(room.gateRejectRatio)],
    ...(events.length === 0 ? [] : [["events", events.map(eventText).join("; ")]]),
    ["leader", room.leader === "" ? "unknown" : replicaText(room.leader)],
    ["without the store", room.onStoreFailure],
  ];
  return [
    ...drawTable(
      [
        { title: "room", paint: style.dim },
        { title: safeText(room.name), isFlexible: true },
      ],
      rows,
      columnsMax,
    ),
    "",
    ...drawReplicas(rooms, drawing),
  ];
}

function lineRows(line: NonNullable<Room["line"]>): readonly (readonly [string, string])[] {
  const { sessionLength, opensIn, entriesPerSecond } = line;
  return [
    ["waiting", countText(line.waiting)],
    ["active", `${countText(line.active)} of ${countText(line.activeMax)}`],
    ["joining", rateText(line.arrivalsPerSecond)],
    ["entering", entriesPerSecond === undefined ? "not measured yet" : rateText(entriesPerSecond)],
    ["leaving", `${percentText(line.abandonment * 60)} of those who wait per minute`],
    ["session", sessionLength === undefined ? "not measured yet" : spanText(sessionLength)],
    ["refused for the wait", percentText(line.rejectRatio)],
    ...(opensIn === undefined ? [] : [["next event", `in ${spanText(opensIn)}`] as const]),
    ["published", line.age === undefined ? "-" : `${waitText(line.age)} ago`],
  ];
}

/** Draws the counts of each replica since its start. */
function drawReplicas(rooms: readonly Room[], { columnsMax, style }: Drawing): readonly string[] {
  const rows = rooms.map(({ replica, requests, isStoreReachable }) => [
    replicaText(replica),
    ...outcomes.map((outcome) => countText(requests[outcome] ?? 0n)),
    isStoreReachable ? "ok" : "silent",
  ]);
  return drawTable(
    [
      { title: "replica" },
      ...outcomes.map((title) => ({ title: titles[title], align: "right" }) as const),
      { title: "store", paint: (cell) => (cell.trimEnd() === "ok" ? cell : style.bad(cell)) },
    ],
    rows,
    columnsMax,
  );
}

const titles = {
  joined: "joined",
  entered: "entered",
  full: "full",
  joinLimited: "limited",
  bypassed: "bypassed",
  storeFailure: "no store",
  forged: "forged",
} as const;

const outcomes = Object.keys(titles).filter((name): name is keyof typeof titles => name in titles);

/** Returns operators' changes, in one line. */
export function drawOverride(override: RoomOverride | undefined): string {
  if (override === undefined) return unchanged;
  const { mode, activeUsers, entriesPerMinute, openedEvent } = override;
  const texts = [
    ...(mode === "open" ? [] : [mode]),
    ...(activeUsers === undefined ? [] : [`${countText(activeUsers)} active users`]),
    ...(entriesPerMinute === undefined
      ? []
      : [`${countText(entriesPerMinute)} new users per minute`]),
    ...(openedEvent === "" ? [] : [`event ${safeText(openedEvent)} open`]),
  ];
  return texts.length === 0 ? unchanged : texts.join(", ");
}

const unchanged = "none, as the policy says";

/** Draws a ticket as text. */
export function drawTicket(ticket: ExplainTicketResponse): readonly string[] {
  const { kind, number, state, ahead, estimate, time } = ticket;
  const states: Readonly<Record<string, string>> = {
    waiting: "waits",
    entered: "has entered",
    gone: "is gone: it left, missed too many refreshes, or its session is over",
  };
  const known = states[state] ?? "is of a line that is over, or the store does not answer";
  const lines = [
    `Number ${number} ${known}.`,
    kind === "session" ? `Last used ${timeText(time)}.` : `Joined ${timeText(time)}.`,
  ];
  if (ahead !== undefined) lines.push(`${many(Number(ahead), "visitor")} ahead.`);
  if (estimate !== undefined) lines.push(`Estimated wait: ${rangeText(estimate)}.`);
  return lines;
}

/** Returns the views of each room, in the order of the policy. */
function byName(rooms: readonly Room[]): readonly (readonly Room[])[] {
  const names = [...new Set(rooms.map(({ name }) => name))];
  return names.map((name) => rooms.filter((one) => one.name === name));
}

/** Returns the view of the replica with the most recent report from the leader. */
function newestOf(views: readonly Room[]): Room {
  const ageMs = ({ line }: Room): number =>
    line?.age === undefined ? Number.POSITIVE_INFINITY : durationMs(line.age);
  return views.reduce((best, one) => (ageMs(one) < ageMs(best) ? one : best));
}

function stateText({ mode, phase }: Room): string {
  const phases: Readonly<Record<string, string>> = { preQueue: "pre-queue", open: "event" };
  return [mode, ...(phases[phase] === undefined ? [] : [phases[phase]])].join(", ");
}

/** Returns the part of estimated wait ranges that were correct, over all replicas. */
function heldText(views: readonly Room[]): string {
  const waits = views.reduce((sum, one) => sum + Number(one.waits), 0);
  const inRange = views.reduce((sum, one) => sum + Number(one.waitsInRange), 0);
  return waits === 0 ? "-" : percentText(inRange / waits);
}

/** Returns the problems of a room, a sentence each. */
function troublesOf(views: readonly Room[]): readonly string[] {
  const name = safeText(views[0]?.name ?? "");
  const unreachable = views.filter(({ isStoreReachable }) => !isStoreReachable).length;
  return [
    ...(unreachable === 0
      ? []
      : [`${name}: the store does not answer ${many(unreachable, "replica")}.`]),
    ...(views.every(({ leader }) => leader === "") ? [`${name}: no replica leads it.`] : []),
  ];
}

function rangeText(range: WaitRange | undefined): string {
  const { low, high } = range ?? {};
  if (low === undefined || high === undefined) return "-";
  return `${spanText(low)} to ${spanText(high)}`;
}

/** Returns a duration for display: to the second, or to the minute if it is long. */
function spanText(duration: Duration): string {
  const ms = durationMs(duration);
  const unitMs = ms >= 600_000 ? 60_000 : 1_000;
  return formatDuration(Math.round(ms / unitMs) * unitMs);
}

function eventText({ name, startsAt, endsAt }: Room["events"][number]): string {
  return `${safeText(name)} from ${timeText(startsAt)} to ${timeText(endsAt)}`;
}
