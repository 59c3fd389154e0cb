import type { ServiceShares, ShareSnapshot } from "../../src/core/feedback/feedback.js";

/** What a test says of one service; all else is as in a quiet fleet. */
export interface SharesWish {
  /** By node: the share at DEFAULT, or both. */
  readonly shares: Readonly<Record<string, number | { default: number; high: number }>>;
  readonly gate?: ServiceShares["gate"];
}

/** A snapshot, by service. */
export function testSnapshot(
  version: number,
  services: Readonly<Record<string, SharesWish>>,
  term = 1,
): ShareSnapshot {
  return {
    term,
    leaderId: "leader",
    version,
    services: new Map(
      Object.entries(services).map(([name, { shares, gate = "open" }]) => [
        name,
        {
          limit: 100,
          shares: new Map(
            Object.entries(shares).map(([nodeId, share]) => [
              nodeId,
              typeof share === "number" ? { default: share, high: 0 } : share,
            ]),
          ),
          rejectRatio: 0,
          gate,
          facts: { inFlight: 0, rps: 0, overflowPerSecond: 0 },
        },
      ]),
    ),
  };
}
