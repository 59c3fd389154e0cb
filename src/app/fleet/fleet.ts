import type { Clock, Random } from "../../core/base/clock.js";
import { Membership, type MembershipEvent } from "../../fleet/claims/membership.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import type { OpenStore } from "../store/store.js";

/** How this replica sees the others. */
export interface Fleet {
  /** The larger of the configured number and the last live number, at least 1. */
  readonly replicaCount: () => number;
  /** The last live number alone, at least 1. */
  readonly liveCount: () => number;
  /** Says goodbye, as far as anybody can hear it. Never rejects. */
  readonly leave: () => Promise<void>;
}

/** What joining the fleet needs. */
export interface FleetParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** Announces this replica in the shared store; with a store of our own there is nobody to tell. */
export function joinFleet(opened: OpenStore, parts: FleetParts): Fleet {
  const { config, clock, random, logger } = parts;
  if (opened.kind === "memory") {
    return { replicaCount: () => config.replicas, liveCount: () => 1, leave: async () => {} };
  }
  const membership = new Membership({
    connection: opened.connections.fleet,
    clock,
    random,
    keyPrefix: config.keyPrefix,
    heartbeatMs: config.timings.replicaHeartbeatMs,
    leaseMs: config.timings.replicaLeaseMs,
    onEvent: (event) => logMembership(event, logger),
  });
  return {
    replicaCount: () => Math.max(config.replicas, membership.liveReplicas()),
    liveCount: () => membership.liveReplicas(),
    leave: () => membership.stop(),
  };
}

function logMembership(event: MembershipEvent, logger: Logger): void {
  const { kind, ...facts } = event;
  const line = { event: kind, ...facts };
  if (kind === "fleetSizeChanged") logger.info(line, "The number of live replicas changed.");
  else if (kind === "fleetLost") logger.warn(line, "Heartbeats do not get through to the store.");
  else logger.info(line, "Heartbeats get through to the store again.");
}
