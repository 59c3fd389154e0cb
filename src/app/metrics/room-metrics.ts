import { snakeCase } from "../../core/base/text.js";
import {
  type RoomEventPhase,
  type RoomStatus,
  roomModes,
} from "../../core/waiting-room/room-line.js";
import {
  type RoomControls,
  type RoomView,
  roomOutcomes,
  roomWaitBoundsSeconds,
} from "../../decide/waiting-room/room-view.js";
import type { MetricGroup, ReadMetric } from "../base/metrics.js";

/** Source of the rooms' metrics. */
type Rooms = Pick<RoomControls, "rooms">;

/**
 * Returns the metrics of waiting rooms. Labels are policy names, or from closed sets. Gauges of the
 * line are the same at all replicas. Counters are of this replica.
 */
export function roomMetrics(rooms: Rooms): MetricGroup {
  return {
    gauges: [...lineGauges(rooms), ...viewGauges(rooms)],
    counters: counters(rooms),
    histograms: [
      {
        name: "headgate_waiting_room_wait_seconds",
        help: "Waits of visitors who entered through this replica.",
        labelNames: ["room"],
        unit: 1,
        read: (add) => {
          for (const { policy, waits } of rooms.rooms()) {
            const { counts, actualSeconds: sum } = waits;
            add({ bounds: roomWaitBoundsSeconds, counts, sum }, { room: policy.name });
          }
        },
      },
    ],
  };
}

const roomPhases: readonly RoomEventPhase[] = ["none", "preQueue", "open"];

/** Returns gauges of the leader's status. They have no series before the store has answered. */
function lineGauges(rooms: Rooms): readonly ReadMetric[] {
  const gauge = (
    name: string,
    help: string,
    of: (status: RoomStatus, view: RoomView) => number | undefined,
  ): ReadMetric =>
    ofRooms(rooms, { name: `headgate_waiting_room_${name}`, help }, (view) => {
      const { status } = view.line;
      return status === undefined ? undefined : of(status, view);
    });
  return [
    gauge("waiting", "Visitors who wait.", (status) => status.waitingCount),
    gauge("active", "Sessions in use, by the leader's count.", (status) => status.activeCount),
    gauge("active_max", "Maximum sessions in use.", (status) => status.activeCountMax),
    gauge(
      "abandonment_ratio",
      "Ratio of waiting visitors who leave in a second.",
      (status) => status.abandonPerSecond,
    ),
    gauge(
      "reject_ratio",
      "Ratio of visitors who are refused because of the estimated wait.",
      (status) => status.rejectRatio,
    ),
    gauge("status_age_seconds", "Time since the leader published its status.", (status, view) => {
      return Math.max(0, (view.line.second() ?? status.second) - status.second);
    }),
  ];
}

function viewGauges(rooms: Rooms): readonly ReadMetric[] {
  return [
    ofRooms(
      rooms,
      {
        name: "headgate_waiting_room_leading",
        help: "1 if this replica leads the room.",
      },
      ({ isLeader }) => (isLeader ? 1 : 0),
    ),
    ofRooms(
      rooms,
      {
        name: "headgate_waiting_room_store_reachable",
        help: "1 if the store answered this replica's last call for the room in time.",
      },
      ({ line }) => (line.isReachable ? 1 : 0),
    ),
    ofRooms(
      rooms,
      {
        name: "headgate_waiting_room_gate_reject_ratio",
        help: "Ratio of visitors without a ticket that Envoys refuse by themselves.",
      },
      ({ gateRejectRatio }) => gateRejectRatio,
    ),
    {
      name: "headgate_waiting_room_mode",
      help: "1 for the mode in which the room is run.",
      labelNames: ["room", "mode"],
      read: (add) => {
        for (const { policy, line, override } of rooms.rooms()) {
          const current = line.status?.mode ?? override?.mode ?? "open";
          for (const mode of roomModes) {
            add(mode === current ? 1 : 0, { room: policy.name, mode });
          }
        }
      },
    },
    {
      name: "headgate_waiting_room_phase",
      help: "1 for the phase of the room's events.",
      labelNames: ["room", "phase"],
      read: (add) => {
        for (const { policy, phase: current } of rooms.rooms()) {
          for (const phase of roomPhases) {
            add(phase === current ? 1 : 0, { room: policy.name, phase: snakeCase(phase) });
          }
        }
      },
    },
    {
      name: "headgate_waiting_room_estimated_wait_seconds",
      help: "The range that a visitor who joined now would be told, and its middle.",
      labelNames: ["room", "bound"],
      read: (add) => {
        for (const { policy, estimate } of rooms.rooms()) {
          if (estimate === undefined) continue;
          const room = policy.name;
          add(estimate.lowSeconds, { room, bound: "low" });
          add(estimate.middleSeconds, { room, bound: "middle" });
          add(estimate.highSeconds, { room, bound: "high" });
        }
      },
    },
  ];
}

function counters(rooms: Rooms): readonly ReadMetric[] {
  return [
    {
      name: "headgate_waiting_room_requests_total",
      help: "Requests to the room, by outcome; forged: counted again by what came of it.",
      labelNames: ["room", "outcome"],
      read: (add) => {
        for (const { policy, counts } of rooms.rooms()) {
          for (const outcome of roomOutcomes) {
            add(counts.get(outcome) ?? 0, { room: policy.name, outcome: snakeCase(outcome) });
          }
        }
      },
    },
    ofRooms(
      rooms,
      {
        name: "headgate_waiting_room_waits_in_range_total",
        help: "Waits that ended within the range that the visitor was told.",
      },
      ({ waits }) => waits.inRangeCount,
    ),
    ofRooms(
      rooms,
      {
        name: "headgate_waiting_room_expected_wait_seconds_total",
        help: "Sum of the estimates for waits that ended: the middles of their ranges.",
      },
      ({ waits }) => waits.expectedSeconds,
    ),
  ];
}

/** Reads one series for each room that has a value. */
function ofRooms(
  rooms: Rooms,
  { name, help }: Pick<ReadMetric, "name" | "help">,
  of: (view: RoomView) => number | undefined,
): ReadMetric {
  return {
    name,
    help,
    labelNames: ["room"],
    read: (add) => {
      for (const view of rooms.rooms()) {
        const value = of(view);
        if (value !== undefined) add(value, { room: view.policy.name });
      }
    },
  };
}
