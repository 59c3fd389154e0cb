import type { GeneratedPolicy } from "../base/generator.js";
import type { AlertRule } from "./alert.js";
import { gaugeTrial, growing, steady } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { by, grows, series } from "./promql.js";

const ofRoom: readonly string[] = ["room"];
const trialRoom = { room: "drop" };
const metric = (name: string): string => `headgate_waiting_room_${name}`;
/** All replicas export the same line, so this takes the maximum. */
const level = (name: string): string => `${by("max", ofRoom)} (${metric(name)})`;
const requests = metric("requests_total");

/** Returns the alerts of waiting rooms. */
export function roomAlerts({ waitingRooms }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  return waitingRooms.length === 0 ? [] : rules;
}

/** Minimum number of waiting visitors for an alert on a growing line. */
const waitingNoticed = 100;

const open = (label: "mode" | "phase", value: string): string =>
  `${by("max", ofRoom)} (${series(metric(label), { [label]: value })})`;

/** Series of a room with waiting visitors, free sessions, and `entering` visitors per minute. */
const stuckTrial = (entering: number) => [
  steady(metric("waiting"), trialRoom, 40),
  steady(metric("active"), trialRoom, 60),
  steady(metric("active_max"), trialRoom, 100),
  growing(requests, { ...trialRoom, outcome: "entered" }, entering),
  steady(metric("mode"), { ...trialRoom, mode: "open" }, 1),
  steady(metric("phase"), { ...trialRoom, phase: "pre_queue" }, 0),
];

const rules: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateWaitingRoomGrows",
    expr:
      `(${level("waiting")} > ${waitingNoticed}) > ` +
      `1.1 * ${by("max", ofRoom)} (${metric("waiting")} offset 15m)`,
    forMinutes: 10,
    trial: {
      raising: [growing(metric("waiting"), trialRoom, 60)],
      labels: { job: "headgate", ...trialRoom },
      quiet: [steady(metric("waiting"), trialRoom, 5_000)],
    },
  },
  {
    alert: "HeadgateWaitEstimatesFail",
    expr:
      `${grows(metric("waits_in_range_total"), ofRoom)} / ` +
      `${grows(metric("wait_seconds_count"), ofRoom)} < 0.8`,
    forMinutes: 15,
    trial: {
      raising: [
        growing(metric("waits_in_range_total"), trialRoom, 70),
        growing(metric("wait_seconds_count"), trialRoom, 100),
      ],
      labels: { job: "headgate", ...trialRoom },
      quiet: [
        growing(metric("waits_in_range_total"), trialRoom, 90),
        growing(metric("wait_seconds_count"), trialRoom, 100),
      ],
    },
  },
  {
    alert: "HeadgateWaitingRoomStuck",
    expr: [
      `${level("waiting")} > 0`,
      `${level("active")} < ${level("active_max")}`,
      `${grows(series(requests, { outcome: "entered" }), ofRoom)} == 0`,
      `${open("mode", "open")} == 1`,
      `${open("phase", "pre_queue")} == 0`,
    ].join(" and "),
    forMinutes: 5,
    trial: {
      raising: stuckTrial(0),
      labels: { job: "headgate", ...trialRoom },
      quiet: stuckTrial(3),
    },
  },
  {
    alert: "HeadgateWaitingRoomStoreAway",
    expr: `${by("min", ofRoom)} (${metric("store_reachable")}) == 0`,
    forMinutes: 1,
    trial: gaugeTrial(metric("store_reachable"), { raising: 0, quiet: 1 }, { series: trialRoom }),
  },
  {
    alert: "HeadgateForgedTickets",
    expr:
      `(${grows(series(requests, { outcome: "forged" }), ofRoom)} > 1) > ` +
      `0.05 * ${grows(requests, ofRoom)}`,
    forMinutes: 5,
    trial: {
      raising: [
        growing(requests, { ...trialRoom, outcome: "forged" }, 120),
        growing(requests, { ...trialRoom, outcome: "joined" }, 600),
      ],
      labels: { job: "headgate", ...trialRoom },
      quiet: [
        growing(requests, { ...trialRoom, outcome: "forged" }, 6),
        growing(requests, { ...trialRoom, outcome: "joined" }, 6),
      ],
    },
  },
];
