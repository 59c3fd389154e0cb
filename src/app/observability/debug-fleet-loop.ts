import type { ServiceShares } from "../../core/feedback/feedback.js";
import type { FleetLoopStatus } from "../fleet/fleet-loop.js";

/** Shares of one service that the page shows; of the others it says how many there are. */
export const shownSharesMax = 200;

/** The version that an Envoy has acknowledged last; undefined: it is not connected here. */
export type AcknowledgedVersion = (nodeId: string) => string | undefined;

/** The loop of the fleet, for people: who leads, what was decided, and of what. */
export function renderLoop(
  status: FleetLoopStatus | undefined,
  acknowledged: AcknowledgedVersion,
): unknown {
  if (status === undefined) return { isOpen: false };
  const { isLeading, snapshot, ageMs, counts } = status;
  const services = [...(snapshot?.services ?? [])];
  return {
    isOpen: true,
    isLeading,
    term: snapshot?.term,
    leader: snapshot?.leaderId,
    version: snapshot?.version,
    ageSeconds: ageMs === undefined ? undefined : Math.round(ageMs / 100) / 10,
    counts,
    services: Object.fromEntries(
      services.map(([name, service]) => [name, renderService(service, acknowledged)]),
    ),
  };
}

function renderService(
  { limit, shares, rejectRatio, gate, facts }: ServiceShares,
  acknowledged: AcknowledgedVersion,
): unknown {
  const shown = [...shares].slice(0, shownSharesMax);
  return {
    limit,
    ...facts,
    rejectRatio,
    gate,
    shareCount: shares.size,
    shares: Object.fromEntries(
      shown.map(([nodeId, share]) => [
        nodeId,
        { ...share, acknowledgedVersion: acknowledged(nodeId) },
      ]),
    ),
  };
}
