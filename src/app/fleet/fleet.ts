import { Membership, type MembershipEvent } from "../../fleet/claims/membership.js";
import { GateRegistry } from "../../fleet/records/gate-registry.js";
import type { Logger } from "../base/logger.js";
import { OpenStack } from "../base/open-stack.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import type { OpenStore } from "../store/open-store.js";
import { FleetLoopApp } from "./fleet-loop.js";
import { fleetMetrics } from "./fleet-metrics.js";

/** This replica's view of the other replicas, and what it decides with them. */
export interface Fleet {
  /** The larger of the configured number and the last number of live replicas, at least 1. */
  readonly replicaCount: () => number;
  /** The last number of live replicas, at least 1. */
  readonly liveCount: () => number;
  /** Changes of gates by operators. */
  readonly gates: GateRegistry;
  readonly loop: FleetLoopApp;
  /** Announces that this replica leaves, if the store is reachable. Never rejects. */
  close(): Promise<void>;
}

/** Announces this replica in the store, and joins the feedback loop. */
export function openFleet(
  runtime: Runtime,
  { opened, policies, operator }: Pick<Foundation, "opened" | "policies" | "operator">,
): Fleet {
  const stack = new OpenStack();
  const { config, metrics } = runtime;
  const membership = joinFleet(opened, runtime);
  stack.keep({ close: () => membership.stop() });
  const gates = stack.keep(new GateRegistry(operator.records));
  const loop = stack.keep(new FleetLoopApp({ ...runtime, opened, gates, policies: policies.feed }));
  metrics.add(fleetMetrics(() => loop.status));
  return {
    replicaCount: () => Math.max(config.replicas, membership.liveReplicas()),
    liveCount: () => membership.liveReplicas(),
    gates,
    loop,
    close: () => stack.close(),
  };
}

/** Announces this replica to the others. */
export function joinFleet(
  { coordination }: Pick<OpenStore, "coordination">,
  { config, clock, random, logger }: Pick<Runtime, "config" | "clock" | "random" | "logger">,
): Membership {
  return new Membership({
    store: coordination.members,
    clock,
    random,
    heartbeatMs: config.timings.replicaHeartbeatMs,
    leaseMs: config.timings.replicaLeaseMs,
    onEvent: (event) => logMembership(event, logger),
  });
}

function logMembership(event: MembershipEvent, logger: Logger): void {
  const { kind, ...facts } = event;
  const line = { event: kind, ...facts };
  if (kind === "fleetSizeChanged") logger.info(line, "The number of live replicas changed.");
  else if (kind === "fleetLost") logger.warn(line, "Heartbeats cannot be written to the store.");
  else logger.info(line, "Heartbeats are written to the store again.");
}
