import type { NodeLatency, NodeReport } from "../../core/feedback/feedback.js";

type Open<Fields> = { -readonly [field in keyof Fields]: Fields[field] };

/**
 * A report that is filled in again and again: a new one each second for each Envoy and service
 * would be old to V8's collector when it ends, and stop the process for a round over all of them.
 */
export type OpenReport = Open<Omit<NodeReport, "latency">> & {
  readonly latency: Open<NodeLatency>;
};

/** One with all its fields, numbers with fractions among them. */
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

/** Copies it: the object of a report is kept. */
export function setLatency({ latency }: OpenReport, from: NodeLatency): void {
  latency.count = from.count;
  latency.sumMs = from.sumMs;
  latency.p50 = from.p50;
  latency.minMs = from.minMs;
}
