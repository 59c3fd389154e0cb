import { describe, expect, it } from "vitest";
import type { SampleOutcome } from "../../../../src/core/concurrency/concurrency-limit.js";
import { ServiceHealth } from "../../../../src/decide/admission/service-health.js";

/** A service that took 10 ms for as long as it is known, and whose latency is full at 30 ms. */
function quickService() {
  const health = new ServiceHealth({
    orcaCpuRatio: 0.8,
    orcaMemoryRatio: undefined,
    latencyMultiple: 3,
    errorRatio: 0.5,
    queueWaitMs: undefined,
    combine: "max",
  });
  let nowMs = 0;
  const endOne = (outcome: SampleOutcome, isFailed: boolean | undefined, latencyMs = 10): void => {
    nowMs += 50;
    health.ended({ outcome, isFailed, latencyMs, nowMs });
  };
  const end = (...call: Parameters<typeof endOne>): void => {
    for (let i = 0; i < 300; i += 1) endOne(...call);
  };
  end("success", false);
  return {
    health,
    end,
    endOne,
    signal: (name: "latency" | "errors") => health.signals.signal(name, nowMs),
  };
}

describe("ServiceHealth", () => {
  it.each([
    { what: "callers who left early", outcome: "ignore", isFailed: undefined },
    { what: "requests that the service failed", outcome: "dropped", isFailed: true },
  ] as const)("learns nothing of its latency from $what", ({ outcome, isFailed }) => {
    const { end, signal } = quickService();
    expect(signal("latency")).toBe(0);
    // Slow ones are no load, and quick ones no better baseline.
    end(outcome, isFailed, 30);
    expect(signal("latency") ?? 0).toBe(0);
    end(outcome, isFailed, 1);
    end("success", false, 10);
    expect(signal("latency")).toBe(0);
    end("success", false, 30);
    expect(signal("latency")).toBeCloseTo(1, 1);
  });

  it("takes its errors over the requests of which it is known whether they failed", () => {
    const { endOne, signal } = quickService();
    expect(signal("errors")).toBe(0);
    for (let i = 0; i < 300; i += 1) {
      endOne("dropped", true);
      endOne("ignore", undefined);
    }
    expect(signal("errors")).toBeCloseTo(2, 1);
  });

  it("reads load reports, and takes no notice of others", () => {
    const { health } = quickService();
    health.reported("BIN what is this", 0);
    expect(health.signals.signal("orcaCpu", 0)).toBeUndefined();
    health.reported("TEXT cpu_utilization=0.4", 0);
    expect(health.signals.signal("orcaCpu", 0)).toBe(0.5);
  });
});
