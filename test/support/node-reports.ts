import type { NodeReport } from "../../src/core/feedback/feedback.js";

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
