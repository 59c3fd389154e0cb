import type { NodeLatency, NodeReport } from "../../core/feedback/feedback.js";

type Open<Fields> = { -readonly [field in keyof Fields]: Fields[field] };

/**
 * A report that is reused. A new one each second for each Envoy and service would be in V8's old
 * generation when it ends, and garbage collection of all of them would stop the process.
 */
export type OpenReport = Open<Omit<NodeReport, "latency">> & {
  readonly latency: Open<NodeLatency>;
};

/** Returns a report with all fields. Those that may be fractional start with a fraction. */
export function blankReport(service: string): OpenReport {
  return {
    nodeId: "",
    owner: undefined,
    service,
    atMs: 0.5,
    inFlight: 0,
    highInFlight: undefined,
    rps: 0.5,
    latency: { count: 0, sumMs: 0.5, p50: undefined, minMs: undefined },
    errorCount: 0,
    dropCount: 0,
    overflowCount: 0,
    held: 0,
    heldAtMs: 0.5,
    gradientFacts: undefined,
  };
}

/** Copies a latency into a report, whose object is reused. */
export function setLatency({ latency }: OpenReport, from: NodeLatency): void {
  latency.count = from.count;
  latency.sumMs = from.sumMs;
  latency.p50 = from.p50;
  latency.minMs = from.minMs;
}
