import type { RoomRules } from "../../src/core/waiting-room/room-rules.js";
import { FakeRandom } from "../support/fake-random.js";
import type { RoomScenario } from "./room-run.js";

/** Rules that say little. */
export const plainRules: RoomRules = {
  name: "sale",
  activeUsersMax: 10,
  entriesPerMinuteMax: "auto",
  sessionMs: 60_000,
  order: "fifo",
  queueAll: false,
  waitingMax: 1_000,
  refreshMs: 5_000,
  missedRefreshesMax: 2,
  events: [],
  estimatedWait: undefined,
};

/** When simulations begin, in milliseconds since 1970. */
export const simulatedEpochMs = 1_700_000_000_000;

/** Three replicas and twice as many visitors as can be served, with nothing that goes wrong. */
export const fairRoom: RoomScenario = {
  rules: plainRules,
  replicaCount: 3,
  arrivalsPerSecond: 2,
  visitSeconds: 10,
  leavingRatio: 0,
  tellingRatio: 1,
  stormSeconds: 120,
  hasFaults: false,
};

/** A fleet in foul weather. */
export function foulRoom(seed: number): RoomScenario {
  const random = new FakeRandom(seed);
  const between = (low: number, high: number): number => low + random.next() * (high - low);
  const activeUsersMax = Math.ceil(between(1, 12));
  const visitSeconds = between(5, 25);
  const hasEvent = random.next() < 0.5;
  const startsAtMs = simulatedEpochMs + between(30, 90) * 1_000;
  const event = {
    name: "opening",
    startsAtMs,
    endsAtMs: startsAtMs + 1_000_000,
    preQueueMs: between(0, 40_000),
    shuffles: random.next() < 0.5,
    activeUsersMax: undefined,
    entriesPerMinuteMax: undefined,
  };
  const rules: RoomRules = {
    ...plainRules,
    activeUsersMax,
    entriesPerMinuteMax: random.next() < 0.3 ? Math.ceil(between(60, 300)) : "auto",
    sessionMs: Math.ceil(between(20, 40)) * 1_000,
    order: random.next() < 0.3 ? "random" : "fifo",
    queueAll: random.next() < 0.2,
    waitingMax: Math.ceil(between(5, 200)),
    events: hasEvent ? [event] : [],
  };
  const load = between(0.5, 2.5);
  return {
    rules,
    replicaCount: Math.ceil(between(0, 5)),
    arrivalsPerSecond: (load * activeUsersMax) / visitSeconds,
    visitSeconds,
    leavingRatio: between(0, 0.4),
    tellingRatio: between(0.3, 1),
    stormSeconds: 180,
    hasFaults: true,
  };
}
