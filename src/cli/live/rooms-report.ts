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
import type { Drawing } from "../terminal/print.js";
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

/** Rooms for people: a row each, since all replicas have the same line. */
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
      troubleText(views),
    ];
  });
  return drawTable(
    [
      { title: "room", isFlexible: true, paint: style.bold },
      { title: "state", isFlexible: true },
      { title: "waiting", align: "right" },
      { title: "active", align: "right" },
      { title: "join", align: "right" },
      { title: "enter", align: "right" },
      { title: "wait", align: "right" },
      { title: "held", align: "right" },
      { title: "", isFlexible: true, paint: style.bad },
    ],
    rows,
    columnsMax,
  );
}

/** One room for people. */
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

/** What each replica has counted since it started. */
function drawReplicas(rooms: readonly Room[], { columnsMax, style }: Drawing): readonly string[] {
  const rows = rooms.map(({ replica, requests, waits, isStoreReachable }) => [
    replicaText(replica),
    ...outcomes.map((outcome) => countText(requests[outcome] ?? 0n)),
    countText(waits),
    isStoreReachable ? "" : "store unreachable",
  ]);
  return drawTable(
    [
      { title: "replica" },
      ...outcomes.map((title) => ({ title: titles[title], align: "right" }) as const),
      { title: "waits", align: "right" },
      { title: "", paint: style.bad },
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

/** What operators changed, in one line. */
export function drawOverride(override: RoomOverride | undefined): string {
  if (override === undefined) return "none, as the policy says";
  const { mode, activeUsers, entriesPerMinute, openedEvent } = override;
  const texts = [
    ...(mode === "open" ? [] : [mode]),
    ...(activeUsers === undefined ? [] : [`${countText(activeUsers)} active users`]),
    ...(entriesPerMinute === undefined
      ? []
      : [`${countText(entriesPerMinute)} new users per minute`]),
    ...(openedEvent === "" ? [] : [`event ${safeText(openedEvent)} open`]),
  ];
  return texts.join(", ");
}

/** A ticket for people. */
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

/** The views of each room, in the order of the policy. */
function byName(rooms: readonly Room[]): readonly (readonly Room[])[] {
  const names = [...new Set(rooms.map(({ name }) => name))];
  return names.map((name) => rooms.filter((one) => one.name === name));
}

/** The view of the replica that heard from the leader last. */
function newestOf(views: readonly Room[]): Room {
  const ageMs = ({ line }: Room): number =>
    line?.age === undefined ? Number.POSITIVE_INFINITY : durationMs(line.age);
  return views.reduce((best, one) => (ageMs(one) < ageMs(best) ? one : best));
}

function stateText({ mode, phase }: Room): string {
  const phases: Readonly<Record<string, string>> = { preQueue: "pre-queue", open: "event" };
  return [mode, ...(phases[phase] === undefined ? [] : [phases[phase]])].join(", ");
}

/** The measured ratio of ranges that held, over all replicas. */
function heldText(views: readonly Room[]): string {
  const waits = views.reduce((sum, one) => sum + Number(one.waits), 0);
  const inRange = views.reduce((sum, one) => sum + Number(one.waitsInRange), 0);
  return waits === 0 ? "-" : percentText(inRange / waits);
}

function troubleText(views: readonly Room[]): string {
  const unreachable = views.filter(({ isStoreReachable }) => !isStoreReachable).length;
  const texts = [
    ...(unreachable === 0 ? [] : [`store unreachable from ${many(unreachable, "replica")}`]),
    ...(views.every(({ leader }) => leader === "") ? ["no leader"] : []),
  ];
  return texts.join(", ");
}

function rangeText(range: WaitRange | undefined): string {
  const { low, high } = range ?? {};
  if (low === undefined || high === undefined) return "-";
  return `${spanText(low)} to ${spanText(high)}`;
}

/** A span as people read it: to the second. */
function spanText(duration: Duration): string {
  return formatDuration(Math.round(durationMs(duration) / 1_000) * 1_000);
}

function eventText({ name, startsAt, endsAt }: Room["events"][number]): string {
  return `${safeText(name)} from ${timeText(startsAt)} to ${timeText(endsAt)}`;
}
