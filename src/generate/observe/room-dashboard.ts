import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type { Panel, Section } from "./dashboard.js";
import { lines, numberPanel, own, stacked, sumRate } from "./panels.js";

/** Returns a waiting room's sections: its line, announced waits, and results of requests. */
export function roomSections(policy: RoomPolicy): readonly Section[] {
  return [
    { title: "At a glance", panels: glance(policy) },
    { title: "The line", panels: line(policy) },
    { title: "Waits", panels: waits(policy) },
    { title: "Requests and replicas", panels: requests(policy) },
  ];
}

/** All replicas export the same line, so this takes the maximum. */
function level({ name: room }: RoomPolicy, metric: string): string {
  return `max(${own(`headgate_waiting_room_${metric}`, { room })})`;
}

function asked({ name: room }: RoomPolicy, outcome?: string): string {
  const matchers = { room, ...(outcome === undefined ? {} : { outcome }) };
  return own("headgate_waiting_room_requests_total", matchers);
}

function estimate({ name: room }: RoomPolicy, bound: string): string {
  return `max(${own("headgate_waiting_room_estimated_wait_seconds", { room, bound })})`;
}

/** Ratio of waits within the announced range to all waits that ended. */
function held({ name: room }: RoomPolicy): string {
  const inRange = sumRate(own("headgate_waiting_room_waits_in_range_total", { room }));
  return `${inRange} / ${sumRate(own("headgate_waiting_room_wait_seconds_count", { room }))}`;
}

function glance(policy: RoomPolicy): readonly Panel[] {
  return [
    numberPanel(
      { title: "Waiting", about: "Visitors who wait.", unit: "short" },
      level(policy, "waiting"),
    ),
    numberPanel(
      { title: "Active", about: "Sessions in use.", unit: "short" },
      level(policy, "active"),
    ),
    numberPanel(
      { title: "Capacity", about: "Maximum sessions in use.", unit: "short" },
      level(policy, "active_max"),
    ),
    numberPanel(
      { title: "Expected wait", about: "For a visitor who joins now.", unit: "s" },
      estimate(policy, "middle"),
    ),
    numberPanel(
      {
        title: "Ranges that held",
        about: "The ratio of ended waits within the range that was told; 90 % should be.",
        unit: "percentunit",
      },
      held(policy),
    ),
    numberPanel(
      { title: "Leaders", about: "Replicas that lead the room; this should be 1.", unit: "short" },
      `sum(${own("headgate_waiting_room_leading", { room: policy.name })})`,
    ),
  ];
}

function line(policy: RoomPolicy): readonly Panel[] {
  return [
    lines(
      { title: "Line", about: "Visitors who wait.", unit: "short" },
      { waiting: level(policy, "waiting") },
    ),
    lines(
      {
        title: "Sessions",
        about: "In use, and the maximum. Called visitors are included.",
        unit: "short",
      },
      { active: level(policy, "active"), capacity: level(policy, "active_max") },
    ),
    lines(
      { title: "Joining and entering", about: "Visitors per second.", unit: "reqps" },
      {
        joining: sumRate(asked(policy, "joined")),
        entering: sumRate(asked(policy, "entered")),
        leaving: `${level(policy, "abandonment_ratio")} * ${level(policy, "waiting")}`,
      },
    ),
    lines(
      {
        title: "Turned away",
        about: "By Headgate because of the estimated wait, and by Envoys.",
        unit: "percentunit",
      },
      {
        "by the estimated wait": level(policy, "reject_ratio"),
        "by Envoys": level(policy, "gate_reject_ratio"),
      },
    ),
  ];
}

function waits(policy: RoomPolicy): readonly Panel[] {
  const { name: room } = policy;
  const buckets = sumRate(own("headgate_waiting_room_wait_seconds_bucket", { room }), ["le"]);
  const ended = sumRate(own("headgate_waiting_room_wait_seconds_count", { room }));
  const mean = (metric: string): string =>
    `${sumRate(own(`headgate_waiting_room_${metric}`, { room }))} / ${ended}`;
  return [
    lines(
      { title: "Estimate", about: "What a visitor who joins now is told.", unit: "s" },
      { low: estimate(policy, "low"), high: estimate(policy, "high") },
    ),
    lines(
      {
        title: "Estimates against waits",
        about: "Means over visitors who entered: what they were told, and how long they waited.",
        unit: "s",
      },
      { told: mean("expected_wait_seconds_total"), waited: mean("wait_seconds_sum") },
    ),
    lines(
      { title: "Waits", about: "Of visitors who entered.", unit: "s" },
      {
        p50: `histogram_quantile(0.5, ${buckets})`,
        p95: `histogram_quantile(0.95, ${buckets})`,
      },
    ),
    lines(
      { title: "Ranges that held", about: "90 % should be.", unit: "percentunit" },
      { held: held(policy) },
    ),
  ];
}

function requests(policy: RoomPolicy): readonly Panel[] {
  const { name: room } = policy;
  const age = own("headgate_waiting_room_status_age_seconds", { room });
  const reachable = own("headgate_waiting_room_store_reachable", { room });
  return [
    stacked(
      { title: "Requests by outcome", about: "Over all replicas.", unit: "reqps" },
      { "{{outcome}}": sumRate(asked(policy), ["outcome"]) },
    ),
    lines(
      { title: "Age of the status", about: "Time since the leader published.", unit: "s" },
      { "{{instance}}": `max by (instance) (${age})` },
    ),
    lines(
      { title: "Store", about: "1 if the store answers a replica in time.", unit: "none" },
      { "{{instance}}": `min by (instance) (${reachable})` },
    ),
    lines(
      { title: "Mode", about: "1 for the mode in which the room is run.", unit: "none" },
      { "{{mode}}": `max by (mode) (${own("headgate_waiting_room_mode", { room })})` },
    ),
  ];
}
