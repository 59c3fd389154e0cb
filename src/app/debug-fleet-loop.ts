import type { ServiceShares } from "../core/feedback.js";
import type { NodeRegistry } from "../rpc/node-registry.js";
import type { FleetLoopStatus } from "./fleet-loop.js";

/** Shares of one service that the page shows; of the others it says how many there are. */
export const shownSharesMax = 200;

/** The loop of the fleet, for people: who leads, what was decided, and of what. */
export function renderLoop(
  status: FleetLoopStatus | undefined,
  registry: Pick<NodeRegistry, "find">,
): unknown {
  if (status === undefined) return { isOpen: false };
  const { isLeading, sheet, ageMs, counts } = status;
  const services = [...(sheet?.services ?? [])];
  return {
    isOpen: true,
    isLeading,
    epoch: sheet?.epoch,
    leader: sheet?.leaderId,
    version: sheet?.version,
    ageSeconds: ageMs === undefined ? undefined : Math.round(ageMs / 100) / 10,
    counts,
    services: Object.fromEntries(
      services.map(([name, service]) => [name, renderService(service, registry)]),
    ),
  };
}

function renderService(
  { limit, shares, rejectRatio, gate, facts }: ServiceShares,
  registry: Pick<NodeRegistry, "find">,
): unknown {
  const shown = [...shares].slice(0, shownSharesMax);
  return {
    limit,
    ...facts,
    rejectRatio,
    gate,
    shareCount: shares.size,
    shares: Object.fromEntries(
      shown.map(([nodeId, share]) => {
        // Who is connected to another replica is known there.
        const acknowledgedVersion = registry.find(nodeId)?.ledger.acknowledgedLayer?.version;
        return [nodeId, { ...share, acknowledgedVersion }];
      }),
    ),
  };
}
