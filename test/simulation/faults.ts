import type { ErrorCode } from "../../src/core/base/errors.js";
import { fairWeather, type NetworkWeather } from "../support/simulated-link.js";
import type { ServerHealth, SimulatedServer } from "../support/simulated-server.js";
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
  clockForward: (fleet) => pickServer(fleet).stepClock(drawStepUs(fleet.dice)),
  clockBack: (fleet) => pickServer(fleet).stepClock(-drawStepUs(fleet.dice)),
  restart: (fleet) => pickServer(fleet).restart(),
  failover: (fleet) => failOver(pickServer(fleet), fleet.dice),
  nodeDies: (fleet, forMs) => {
    const { dice, time } = fleet;
    const server = pickServer(fleet);
    server.become({ kind: "gone" });
    time.after(forMs, () => {
      if (dice.chance(0.5)) server.restart();
      else failOver(server, dice);
      server.become({ kind: "well" });
    });
  },
  slotsMove: (fleet, forMs) => moveSlots(fleet, forMs),
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

/** One server, or all of them. */
function makeUnwell(fleet: Fleet, health: ServerHealth, forMs: number): void {
  const struck = pickServers(fleet);
  for (const server of struck) server.become(health);
  fleet.time.after(forMs, () => {
    for (const server of struck) server.become({ kind: "well" });
  });
}

function failOver(server: SimulatedServer, dice: Dice): void {
  const lagUs = dice.pick([0, 1_000, 50_000, 900_000]);
  const clockStepUs = dice.chance(0.5) ? 0 : dice.pick([1, -1]) * drawStepUs(dice);
  server.failOver(lagUs, clockStepUs);
}

/** Several slots of a cluster begin to move together, a few keys at a time. */
function moveSlots({ stores, dice, time }: Fleet, forMs: number): void {
  const { cluster } = stores;
  if (cluster === undefined) return;
  const movedCount = 1 + dice.below(cluster.tagCount);
  for (let i = 0; i < movedCount; i += 1) {
    const tag = dice.below(cluster.tagCount);
    if (!cluster.beginMove(tag, dice.below(cluster.servers.length))) continue;
    for (let step = dice.below(4); step > 0; step -= 1) {
      time.after(dice.between(0, forMs), () => cluster.moveKeys(tag, () => dice.chance(0.4)));
    }
    const end = (): void => {
      if (!cluster.endMove(tag)) time.after(moveAgainMs, end);
    };
    time.after(forMs, end);
  }
}

/** A slot whose nodes are not both well waits so long before it moves on. */
const moveAgainMs = 10;

function pickServer({ stores, dice }: Fleet): SimulatedServer {
  return dice.pick(stores.servers);
}

function pickServers(fleet: Fleet): readonly SimulatedServer[] {
  return fleet.dice.chance(0.5) ? fleet.stores.servers : [pickServer(fleet)];
}

/** One replica's network, or everybody's; on the way to one server, or to all. */
function bringWeather(fleet: Fleet, change: Partial<NetworkWeather>, forMs: number): void {
  const { dice, time } = fleet;
  const all = fleet.liveReplicas();
  const struck = dice.chance(0.5) ? all : [dice.pick(all)];
  const servers = pickServers(fleet);
  const bring = (weather: NetworkWeather): void => {
    for (const { store } of struck) {
      for (const server of servers) store.setWeather(server, weather);
    }
  };
  bring({ ...fairWeather, ...change });
  time.after(forMs, () => bring(fairWeather));
}

function drawStepUs(dice: Dice): number {
  return 1 + dice.below(dice.pick([5_000, 200_000, 3_000_000, 7_200_000_000]));
}
