import type { RoomColumn } from "../../core/collections/history-columns.js";
import type { Room, RoomEvent } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  formatCount,
  formatNumber,
  formatPercent,
  formatProtoDuration,
  formatRate,
  formatTime,
  millisOf,
} from "../data/format.js";
import {
  type FleetRoom,
  formatRange,
  formatWait,
  heldRatioNoticed,
  judgeRoom,
  meanWaits,
} from "../data/rooms.js";
import { showText } from "../data/shown-text.js";
import { DataTable, numberColumn, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { Plot, type PlotLine, type PlotProps } from "../parts/plot.jsx";
import { Badge, PolledAnswer, SilentNotice, Tile } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { useHistory } from "../state/history-poll.js";
import { route } from "../state/location.js";
import { useRooms } from "../state/rooms-poll.js";
import { GatePanel } from "./gate.jsx";
import { RoomActions, RoomTicket } from "./room-actions.jsx";

/** One waiting room: its line, what visitors are told and what became of it, and its actions. */
export function WaitingRoomPage() {
  const [, name = ""] = route.value.path;
  const polled = useRooms();
  return (
    <>
      <p class="crumbs">
        <a href="#/rooms">Rooms</a>
      </p>
      <PolledAnswer polled={polled.value}>
        {({ rooms, silentReplicas }) => {
          const found = rooms.find(({ room }) => room.name === name);
          if (found === undefined) {
            return (
              <>
                <h1>{showText(name)}</h1>
                <p class="empty">The active policy has no waiting room of this name.</p>
              </>
            );
          }
          const { room, replicas } = found;
          const { tone, word } = judgeRoom(found);
          return (
            <>
              <div class="view-head">
                <h1>
                  {showText(name)} <Badge tone={tone}>{word}</Badge>
                </h1>
                <RoomActions room={room} />
              </div>
              <SilentNotice count={silentReplicas} />
              <Changes room={room} />
              <RoomTiles fleetRoom={found} />
              <RoomPlots name={name} />
              <RoomTicket room={room} />
              <GatePanel
                name={`room:${name}`}
                state={room.hasGate ? gateState(room) : ""}
                none="This room has none. The policy's gate gives it one."
              />
              <Events events={room.events} />
              <Replicas replicas={replicas} />
            </>
          );
        }}
      </PolledAnswer>
    </>
  );
}

function gateState({ gateRejectRatio }: Room): string {
  return gateRejectRatio === 0 ? "open" : `refuses ${formatPercent(gateRejectRatio)}`;
}

/** What operators changed; nothing where the room is run as the policy says. */
function Changes({ room: { override } }: { readonly room: Room }) {
  if (override === undefined) return undefined;
  const { mode, activeUsers, entriesPerMinute, openedEvent } = override;
  const texts = [
    ...(mode === "open" ? [] : [mode]),
    ...(activeUsers === undefined ? [] : [`${formatCount(activeUsers)} active users`]),
    ...(entriesPerMinute === undefined
      ? []
      : [`${formatCount(entriesPerMinute)} new users per minute`]),
    ...(openedEvent === "" ? [] : [`event ${showText(openedEvent)} open`]),
  ];
  return (
    <p class="notice" role="status">
      Set by an operator: <b>{texts.join(", ")}</b>. Reset it to follow the policy again.
    </p>
  );
}

function RoomTiles({ fleetRoom: { room, heldRatio } }: { readonly fleetRoom: FleetRoom }) {
  const { line, estimate, leader } = room;
  if (line === undefined) {
    return <p class="empty">The store has not answered yet, so the line is not known.</p>;
  }
  const { waiting, active, activeMax, arrivalsPerSecond, entriesPerSecond, abandonment } = line;
  return (
    <div class="tiles">
      <Tile
        label="Waiting"
        value={formatCount(waiting)}
        detail={`${formatRate(abandonment * Number(waiting))} leave`}
        tone={waiting > 0n ? "warn" : "good"}
      />
      <Tile
        label="Active"
        value={`${formatCount(active)} of ${formatCount(activeMax)}`}
        detail={
          line.sessionLength === undefined
            ? "no session has ended yet"
            : `for ${formatProtoDuration(line.sessionLength)} each`
        }
      />
      <Tile label="Joining" value={formatRate(arrivalsPerSecond)} detail="in the last 10 s" />
      <Tile
        label="Entering"
        value={entriesPerSecond === undefined ? "-" : formatRate(entriesPerSecond)}
        detail={entriesPerSecond === undefined ? "not measured yet" : "measured by the leader"}
      />
      <Tile label="Wait" value={formatRange(estimate)} detail="for a visitor who joins now, 90 %" />
      <Tile
        label="Ranges that held"
        value={heldRatio === undefined ? "-" : formatPercent(heldRatio)}
        detail={heldRatio === undefined ? "nobody has entered yet" : "90 % should hold"}
        tone={heldRatio !== undefined && heldRatio < heldRatioNoticed ? "bad" : "good"}
      />
      <Tile
        label="Leader"
        value={leader === "" ? "none" : showText(leader.slice(0, 8))}
        detail={`published ${formatProtoDuration(line.age)} ago`}
        tone={leader === "" ? "bad" : "good"}
      />
    </div>
  );
}

function RoomPlots({ name }: { readonly name: string }) {
  const polled = useHistory({ room: name });
  return (
    <PolledAnswer polled={polled.value}>
      {({ history }) => {
        const timeline = history.roomTimeline(name);
        const seconds = timeline.map(({ second }) => second);
        const points = timeline.map(({ point }) => point);
        const line = (field: RoomColumn, label: string, look: PlotLook): PlotLine => ({
          ...look,
          label,
          values: points.map((point) => point?.[field]),
        });
        const reported = (field: RoomColumn, label: string, look: PlotLook): PlotLine => ({
          ...look,
          label,
          // 0: not known.
          values: points.map((point) => point?.[field] || undefined),
        });
        const mean = (field: RoomColumn, label: string, look: PlotLook): PlotLine => ({
          ...look,
          label,
          values: meanWaits(points, (point) => point[field]),
        });
        const plot = (title: string, format: PlotProps["format"], lines: readonly PlotLine[]) => (
          <Plot title={title} seconds={seconds} format={format} lines={lines} />
        );
        return (
          <div class="plots">
            {plot("Visitors who wait", formatNumber, [line("waiting", "waiting", filled(4))])}
            {plot("Sessions", formatNumber, [
              line("active", "active", filled(1)),
              line("activeMax", "capacity", { ink: 2, dash }),
            ])}
            {plot("Visitors per second", formatNumber, [
              line("arrivals", "joining", { ink: 1 }),
              line("entries", "entering", { ink: 5, dash }),
              line("abandoned", "leaving", { ink: 3, dash: dots }),
            ])}
            {plot("Estimates against waits", formatWait, [
              reported("estimateLow", "told now, from", { ink: 2, dash }),
              reported("estimateHigh", "told now, to", { ink: 2, dash: dots }),
              mean("expectedSeconds", "had been told", { ink: 1 }),
              mean("actualSeconds", "waited", { ink: 5 }),
            ])}
          </div>
        );
      }}
    </PolledAnswer>
  );
}

type PlotLook = Pick<PlotLine, "ink" | "dash" | "isFilled">;

const dash = [8, 4];
const dots = [2, 3];

function filled(ink: PlotLine["ink"]): PlotLook {
  return { ink, isFilled: true };
}

const eventColumns: readonly TableColumn<RoomEvent>[] = [
  textColumn("Event", ({ name }) => showText(name)),
  textColumn("Opens", ({ startsAt }) => formatTime(millisOf(startsAt))),
  textColumn("Ends", ({ endsAt }) => formatTime(millisOf(endsAt))),
];

function Events({ events }: { readonly events: readonly RoomEvent[] }) {
  if (events.length === 0) return undefined;
  return (
    <TitledPanel title="Events">
      <DataTable
        label="Events"
        name="e."
        columns={eventColumns}
        rows={events}
        rowId={({ name }) => name}
        isPlain={true}
        empty="No events."
      />
    </TitledPanel>
  );
}

const outcomes = [
  ["Joined", "joined"],
  ["Entered", "entered"],
  ["Full", "full"],
  ["Join-limited", "joinLimited"],
  ["Bypassed", "bypassed"],
  ["Without store", "storeFailure"],
  ["Forged", "forged"],
] as const;

const replicaColumns: readonly TableColumn<Room>[] = [
  textColumn("Replica", ({ replica }) => showText(replica)),
  ...outcomes.map(([title, outcome], i) =>
    numberColumn<Room>(title, ({ requests }) => requests[outcome] ?? 0n, { isWideOnly: i > 1 }),
  ),
  textColumn("Store", ({ isStoreReachable }) => (isStoreReachable ? "answers" : "away"), {
    render: ({ isStoreReachable }) =>
      isStoreReachable ? "answers" : <Badge tone="bad">away</Badge>,
  }),
];

function Replicas({ replicas }: { readonly replicas: readonly Room[] }) {
  return (
    <TitledPanel title="Requests by replica" aside={<span class="muted">since it started</span>}>
      <DataTable
        label="Requests by replica"
        name="r."
        columns={replicaColumns}
        rows={replicas}
        rowId={({ replica }) => replica}
        isPlain={true}
        empty="No replica tells of this room."
      />
    </TitledPanel>
  );
}
