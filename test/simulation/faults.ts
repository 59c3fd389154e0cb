import type { ErrorCode } from "../../src/core/errors.js";
import type { ServerHealth } from "../support/simulated-server.js";
import { fairWeather, type NetworkWeather } from "../support/simulated-store.js";
import type { Dice } from "./dice.js";
import type { Fleet } from "./fleet.js";

/** What may go wrong, or change, while callers ask; each is over by itself within `forMs`. */
export const faults = {
  lostReplies: (fleet, forMs) => {
    bringWeather(fleet, { lostReplyRatio: fleet.dice.between(0.1, 1) }, forMs);
  },
  lostRequests: (fleet, forMs) => {
    bringWeather(fleet, { lostRequestRatio: fleet.dice.between(0.1, 1) }, forMs);
  },
  slowNetwork: (fleet, forMs) => {
    bringWeather(fleet, { delayMsMax: fleet.dice.pick([5, 15, 60]) }, forMs);
  },
  refusedConnections: (fleet, forMs) => bringWeather(fleet, { isRefused: true }, forMs),
  hang: (fleet, forMs) => makeUnwell(fleet, { kind: "hung" }, forMs),
  storeError: (fleet, forMs) => {
    makeUnwell(fleet, { kind: "refusing", code: fleet.dice.pick(storeErrors) }, forMs);
  },
  clockForward: ({ server, dice }) => server.stepClock(drawStepUs(dice)),
  clockBack: ({ server, dice }) => server.stepClock(-drawStepUs(dice)),
  restart: ({ server }) => server.restart(),
  failover: ({ server, dice }) => {
    const lagUs = dice.pick([0, 1_000, 50_000, 900_000]);
    const clockStepUs = dice.chance(0.5) ? 0 : dice.pick([1, -1]) * drawStepUs(dice);
    server.failOver(lagUs, clockStepUs);
  },
  policyEdit: (fleet, forMs) => fleet.editPolicy(forMs),
  replicaDies: (fleet) => fleet.killReplica(),
  replicaStarts: (fleet) => fleet.startReplica(),
} as const satisfies Record<string, Fault>;

/** Makes it happen now. */
type Fault = (fleet: Fleet, forMs: number) => void;

/** One of them. */
export type FaultKind = keyof typeof faults;

/** All of them, in one order. */
export const faultKinds = Object.keys(faults) as FaultKind[];

const storeErrors: readonly ErrorCode[] = [
  "STORE_READ_ONLY",
  "STORE_LOADING",
  "STORE_OUT_OF_MEMORY",
];

function makeUnwell({ server, time }: Fleet, health: ServerHealth, forMs: number): void {
  server.become(health);
  time.after(forMs, () => server.become({ kind: "well" }));
}

/** One replica's network, or everybody's. */
function bringWeather(fleet: Fleet, change: Partial<NetworkWeather>, forMs: number): void {
  const { dice, time } = fleet;
  const all = fleet.liveReplicas();
  const struck = dice.chance(0.5) ? all : [dice.pick(all)];
  for (const { store } of struck) store.weather = { ...fairWeather, ...change };
  time.after(forMs, () => {
    for (const { store } of struck) store.weather = fairWeather;
  });
}

function drawStepUs(dice: Dice): number {
  return 1 + dice.below(dice.pick([5_000, 200_000, 3_000_000, 7_200_000_000]));
}
