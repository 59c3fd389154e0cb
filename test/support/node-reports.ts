import type { NodeReport, ShareSnapshot } from "../../src/core/feedback/feedback.js";
import type { FleetLoop } from "../../src/core/feedback/feedback-loop.js";
import { allTurns } from "./all-turns.js";

/** What a loop makes of all that has come since the last time, in any order. */
export function decideOf(
  loop: FleetLoop,
  reports: readonly NodeReport[],
  nowMs: number,
): ShareSnapshot {
  for (const report of [...reports].sort((one, other) => one.atMs - other.atMs)) {
    loop.take(report, nowMs);
  }
  return allTurns(loop.update(nowMs));
}

/** A report of a hundred served in 50 ms each within a second, but for what is given. */
export function nodeReportOf(given: Partial<NodeReport> = {}): NodeReport {
  return {
    nodeId: "edge-1",
    service: "orders",
    atMs: 0,
    inFlight: 5,
    rps: 100,
    latency: { count: 100, sumMs: 5_000 },
    errorCount: 0,
    dropCount: 0,
    overflowCount: 0,
    held: 0,
    ...given,
  };
}
