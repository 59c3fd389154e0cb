import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { mayAct } from "../../core/base/access-list.js";
import { auditEntry, reasonCharsMax } from "../../core/base/audit-entry.js";
import type { JsonObject } from "../../core/base/json.js";
import {
  type RoomMode,
  type RoomOverride,
  type RoomStatus,
  roomModes,
  type WaitRange,
} from "../../core/waiting-room/room-line.js";
import type { RoomControls, RoomView, TicketView } from "../../decide/waiting-room/room-view.js";
import {
  type ExplainTicketResponseSchema,
  type RoomLineSchema,
  type RoomOverrideSchema,
  type RoomSchema,
  RoomService,
  type SetRoomOverrideRequest,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { activeUsersMax, entriesPerMinuteMax } from "../../policy/waiting-rooms/room-capacity.js";
import type { RoomAdministration } from "./admin-parts.js";
import { askOthers } from "./ask-others.js";
import { actorOf, callerOf, demandPart, demandRole } from "./call.js";
import { AdminFailure, notFound } from "./failures.js";
import { durationOf, timeOf, wideOf } from "./messages.js";
import { keyNameBounds, RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** Maximum length of a ticket, in UTF-16 units: browsers keep no longer cookies. */
export const ticketCharsMax = 4_096;

const roomRule = { ...keyNameBounds, isNeeded: true };
const ticketRule = { charsMax: ticketCharsMax, isNeeded: true };
const reasonRule = { charsMax: reasonCharsMax, isNeeded: true };

/** Dependencies of this service. */
type RoomServiceParts = Pick<
  AdminServiceParts,
  "clock" | "policies" | "records" | "replica" | "replicas" | "rooms"
>;

/** Creates RoomService. Tickets are credentials: none is in an error or an audit entry. */
export function roomService(parts: RoomServiceParts): ServiceImpl<typeof RoomService> {
  return {
    listRooms: async (request, context) => {
      const rooms = demandPart(parts.rooms);
      const reader = new RequestReader();
      const name = reader.text("room", request.room, keyNameBounds);
      reader.end();
      const views =
        name === "" ? visibleRooms(parts, context) : [demandRoom(parts, name, { context })];
      const own = views.map((view) => encodeRoom(view, rooms, parts));
      const { listRooms } = RoomService.method;
      const { messages, silentReplicas } = await askOthers(parts, listRooms, { request, context });
      const all = [...own, ...messages.flatMap((other) => other.rooms)];
      const order = new Map(own.map((room, at) => [room.name, at]));
      const placeOf = (room: string): number => order.get(room) ?? own.length;
      all.sort((a, b) => placeOf(a.name ?? "") - placeOf(b.name ?? ""));
      return { rooms: all, silentReplicas };
    },
    setRoomOverride: async (request, context) => {
      const { controls } = demandPart(parts.rooms);
      const reader = new RequestReader();
      const room = reader.text("room", request.room, roomRule);
      const reason = reader.text("reason", request.reason, reasonRule);
      const change = readChange(request, reader);
      reader.end();
      const view = demandRoom(parts, room, { context, role: "operator" });
      const names = view.policy.events.map((event) => event.name);
      const { openedEvent = "" } = change;
      if (openedEvent !== "" && !names.includes(openedEvent)) {
        throw notFound("event", openedEvent, names);
      }
      // So that a change made at another replica a moment ago is not undone.
      await controls.refresh(room);
      const before = controls.room(room)?.override;
      const after = changed(request.reset ? undefined : before, change);
      const sides = { before: overrideJson(before), after: overrideJson(after) };
      await note(parts, { action: "SetRoomOverride", view, reason, context, ...sides });
      await controls.override(room, after);
      return after === undefined ? {} : { override: encodeOverride(after) };
    },
    letIn: async (request, context) => {
      const { controls } = demandPart(parts.rooms);
      const reader = new RequestReader();
      const { room, ticket } = readTicket(request, reader);
      const reason = reader.text("reason", request.reason, reasonRule);
      reader.end();
      const view = demandRoom(parts, room, { context, role: "operator" });
      const { number } = await demandTicket(controls, room, ticket);
      const sides = { before: undefined, after: { number } };
      await note(parts, { action: "LetIn", view, reason, context, ...sides });
      const outcome = await controls.letIn(room, ticket);
      if (outcome !== "entered") throw ticketFailure(outcome);
      return { number: wideOf(number) };
    },
    explainTicket: async (request, context) => {
      const { controls } = demandPart(parts.rooms);
      const reader = new RequestReader();
      const { room, ticket } = readTicket(request, reader);
      reader.end();
      demandRoom(parts, room, { context });
      return encodeTicket(await demandTicket(controls, room, ticket));
    },
  };
}

/** Returns the failure for a visitor that is not let in. */
function ticketFailure(why: "forged" | "gone" | "full"): AdminFailure {
  switch (why) {
    case "forged":
      return new AdminFailure("invalid", "ticket: it is not a ticket of this room");
    case "gone":
      return new AdminFailure("refused", "the visitor has left, or its session is over");
    case "full":
      return new AdminFailure("exhausted", "no session is left to let a visitor in; try again");
  }
}

/** Returns the domain of a room: that of its service's limits. Undefined: none. */
function domainOf({ policies }: RoomServiceParts, { policy }: RoomView): string | undefined {
  const services = policies.current()?.services ?? [];
  return services.find(({ name }) => name === policy.service)?.rateLimit?.domain;
}

/** Returns the rooms that the caller may see, in the order of the policy. */
function visibleRooms(parts: RoomServiceParts, context: HandlerContext): readonly RoomView[] {
  const principal = callerOf(context);
  const all = demandPart(parts.rooms).controls.rooms();
  return all.filter((view) => mayAct(principal, "reader", domainOf(parts, view)));
}

interface RoomCall {
  readonly context: HandlerContext;
  /** Default: `reader`. */
  readonly role?: "reader" | "operator";
}

/** Returns a room that the caller may see, or change. Others are reported as unknown. */
function demandRoom(
  parts: RoomServiceParts,
  name: string,
  { context, role = "reader" }: RoomCall,
): RoomView {
  const visible = visibleRooms(parts, context);
  const view = visible.find(({ policy }) => policy.name === name);
  if (view === undefined) {
    throw notFound(
      "waiting room",
      name,
      visible.map(({ policy }) => policy.name),
    );
  }
  demandRole(context, role, domainOf(parts, view));
  return view;
}

/** Returns the contents of a ticket. */
async function demandTicket(
  controls: RoomControls,
  room: string,
  ticket: string,
): Promise<TicketView> {
  const view = await controls.explain(room, ticket);
  if (view === undefined) throw ticketFailure("forged");
  return view;
}

function readTicket(
  request: { readonly room: string; readonly ticket: string },
  reader: RequestReader,
): { readonly room: string; readonly ticket: string } {
  return {
    room: reader.text("room", request.room, roomRule),
    ticket: reader.text("ticket", request.ticket, ticketRule),
  };
}

/** The change that an operator requests. Undefined values stay as they are. */
interface AskedChange {
  readonly mode: RoomMode | undefined;
  readonly activeUsersMax: number | undefined;
  readonly entriesPerMinuteMax: number | undefined;
  /** Empty: no longer any. */
  readonly openedEvent: string | undefined;
}

function readChange(request: SetRoomOverrideRequest, reader: RequestReader): AskedChange {
  const { activeUsers, entriesPerMinute, openEvent, reset } = request;
  const mode = roomModes.find((one) => one === request.mode);
  if (request.mode !== "" && mode === undefined) {
    reader.report("mode", `must be one of ${roomModes.join(", ")}`);
  }
  const isAsked = [activeUsers, entriesPerMinute, openEvent].some((one) => one !== undefined);
  if (request.mode === "" && !isAsked && !reset) reader.report("mode", "nothing to change");
  const whole = (place: string, value: bigint | undefined, max: number) =>
    value === undefined ? undefined : reader.whole(place, value, { min: 0, max });
  return {
    mode,
    activeUsersMax: whole("active_users", activeUsers, activeUsersMax),
    entriesPerMinuteMax: whole("entries_per_minute", entriesPerMinute, entriesPerMinuteMax),
    openedEvent:
      openEvent === undefined ? undefined : reader.text("open_event", openEvent, keyNameBounds),
  };
}

/** Returns the resulting override. Undefined: none, so the policy alone applies. */
function changed(before: RoomOverride | undefined, change: AskedChange): RoomOverride | undefined {
  const openedEvent = change.openedEvent ?? before?.openedEvent ?? "";
  const after: RoomOverride = {
    mode: change.mode ?? before?.mode ?? "open",
    activeUsersMax: change.activeUsersMax ?? before?.activeUsersMax,
    entriesPerMinuteMax: change.entriesPerMinuteMax ?? before?.entriesPerMinuteMax,
    openedEvent: openedEvent === "" ? undefined : openedEvent,
  };
  const { mode, ...values } = after;
  const isNothing = mode === "open" && Object.values(values).every((one) => one === undefined);
  return isNothing ? undefined : after;
}

/** Writes the audit entry before the change, so that nothing is changed without a trace. */
function note(
  { records, replica, ...parts }: RoomServiceParts,
  {
    view,
    context,
    ...facts
  }: {
    readonly action: "SetRoomOverride" | "LetIn";
    readonly view: RoomView;
    readonly context: HandlerContext;
    readonly reason: string;
    readonly before: JsonObject | undefined;
    readonly after: JsonObject | undefined;
  },
): Promise<void> {
  const domain = domainOf({ records, replica, ...parts }, view);
  const subject = view.policy.name;
  return records.note(auditEntry({ ...facts, actor: actorOf(context), subject, domain, replica }));
}

function overrideJson(override: RoomOverride | undefined): JsonObject | undefined {
  if (override === undefined) return undefined;
  const { mode, activeUsersMax, entriesPerMinuteMax, openedEvent } = override;
  return {
    mode,
    ...(activeUsersMax === undefined ? {} : { activeUsersMax }),
    ...(entriesPerMinuteMax === undefined ? {} : { entriesPerMinuteMax }),
    ...(openedEvent === undefined ? {} : { openedEvent }),
  };
}

function encodeOverride({
  mode,
  activeUsersMax: activeUsers,
  entriesPerMinuteMax: entriesPerMinute,
  openedEvent = "",
}: RoomOverride): MessageInitShape<typeof RoomOverrideSchema> {
  return {
    mode,
    openedEvent,
    ...(activeUsers === undefined ? {} : { activeUsers: wideOf(activeUsers) }),
    ...(entriesPerMinute === undefined ? {} : { entriesPerMinute: wideOf(entriesPerMinute) }),
  };
}

function encodeRoom(
  view: RoomView,
  rooms: RoomAdministration,
  parts: RoomServiceParts,
): MessageInitShape<typeof RoomSchema> {
  const { policy, line, override, leaderId = "", estimate, counts, waits } = view;
  const { name, service, events, onStoreFailure } = policy;
  const { status } = line;
  return {
    name,
    service,
    replica: parts.replica,
    domain: domainOf(parts, view) ?? "",
    hasGate: policy.gate !== undefined,
    mode: status?.mode ?? override?.mode ?? "open",
    phase: view.phase,
    events: events.map(({ name: event, startsAtMs, endsAtMs }) => {
      return { name: event, startsAt: timeOf(startsAtMs), endsAt: timeOf(endsAtMs) };
    }),
    ...(override === undefined ? {} : { override: encodeOverride(override) }),
    ...(status === undefined
      ? {}
      : { line: encodeLine(status, rooms.arrivalsPerSecond(name), line.second()) }),
    ...(estimate === undefined ? {} : { estimate: encodeRange(estimate) }),
    leader: leaderId,
    isStoreReachable: line.isReachable,
    onStoreFailure,
    gateRejectRatio: view.gateRejectRatio,
    requests: Object.fromEntries([...counts].map(([outcome, count]) => [outcome, wideOf(count)])),
    waits: wideOf(waits.endedCount),
    waitsInRange: wideOf(waits.inRangeCount),
    expectedWait: secondsOf(waits.expectedSeconds),
    actualWait: secondsOf(waits.actualSeconds),
  };
}

function encodeLine(
  status: RoomStatus,
  arrivalsPerSecond: number,
  second: number | undefined,
): MessageInitShape<typeof RoomLineSchema> {
  const { entriesPerSecond, sessionSeconds, opensSecond } = status;
  const now = second ?? status.second;
  return {
    waiting: wideOf(status.waitingCount),
    active: wideOf(status.activeCount),
    activeMax: wideOf(status.activeCountMax),
    arrivalsPerSecond,
    ...(entriesPerSecond === undefined ? {} : { entriesPerSecond }),
    abandonment: status.abandonPerSecond,
    ...(sessionSeconds === undefined ? {} : { sessionLength: secondsOf(sessionSeconds) }),
    rejectRatio: status.rejectRatio,
    rangeFactor: status.rangeFactor,
    ...(opensSecond === undefined ? {} : { opensIn: secondsOf(Math.max(0, opensSecond - now)) }),
    age: secondsOf(Math.max(0, now - status.second)),
  };
}

function encodeRange({ lowSeconds, middleSeconds, highSeconds }: WaitRange) {
  return {
    low: secondsOf(lowSeconds),
    middle: secondsOf(middleSeconds),
    high: secondsOf(highSeconds),
  };
}

function encodeTicket(view: TicketView): MessageInitShape<typeof ExplainTicketResponseSchema> {
  const { kind, number, entry, aheadCount, estimate, atMs } = view;
  return {
    kind,
    number: wideOf(number),
    state: entry?.kind ?? "unknown",
    ...(aheadCount === undefined ? {} : { ahead: wideOf(aheadCount) }),
    ...(estimate === undefined ? {} : { estimate: encodeRange(estimate) }),
    time: timeOf(atMs),
  };
}

function secondsOf(seconds: number) {
  return durationOf(seconds * 1_000_000);
}
