import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../../src/app/base/metrics.js";
import { admissionMetrics } from "../../../../src/app/metrics/admission-metrics.js";
import { exchangeMetrics } from "../../../../src/app/metrics/grpc-port-metrics.js";
import { ExchangeCounts } from "../../../../src/decide/admission/exchange-counts.js";
import { AdmissionRig, testService } from "../../../support/admission.js";

async function linesOf(rig: AdmissionRig): Promise<readonly string[]> {
  const exchanges = new ExchangeCounts();
  exchanges.opened();
  exchanges.countPart("requestHeaders");
  exchanges.countFault("outOfOrder");
  const metrics = createMetrics();
  metrics.add(
    admissionMetrics({
      services: () => rig.admission.services(),
      unknownCount: () => rig.admission.unknownCount,
      nowMs: () => rig.clock.monotonicMs(),
    }),
    exchangeMetrics(exchanges),
  );
  // Twice: what is read when scraped must not add up.
  await metrics.render();
  return (await metrics.render()).split("\n");
}

describe("admissionMetrics()", () => {
  it("shows permits in use beside the most that may be, and decisions by cause", async () => {
    const rig = new AdmissionRig([
      testService({
        maxInFlight: 2,
        dryRun: new Set(["deadline"]),
        deadline: { minRemainingMs: 5, marginMs: 1, header: "x-left" },
      }),
    ]);
    rig.ask({ priority: "high", headers: { "x-left": "1" } });
    rig.askMany(2);
    rig.ask({ service: "carts" });
    rig.clock.advance(1_000);
    const lines = await linesOf(rig);
    expect(lines).toContain('headgate_admission_inflight{service="orders",key=""} 2');
    expect(lines).toContain('headgate_admission_inflight_max{service="orders",key=""} 2');
    expect(lines).toContain('headgate_admission_load_ratio{service="orders",signal="in_flight"} 1');
    expect(lines).toContain("headgate_admission_unknown_service_requests_total 1");
    const decisions = lines.filter((line) =>
      line.startsWith("headgate_admission_decisions_total{"),
    );
    expect(decisions.map((line) => line.slice(line.indexOf("priority=")))).toEqual([
      'priority="high",decision="admitted",cause="",dry_run="false"} 1',
      'priority="high",decision="refused",cause="deadline",dry_run="true"} 1',
      'priority="normal",decision="admitted",cause="",dry_run="false"} 1',
      'priority="normal",decision="refused",cause="concurrency",dry_run="false"} 1',
    ]);
    expect(lines).toContain('headgate_admission_capacity_bucket{service="orders",le="10"} 1');
    expect(lines).toContain('headgate_admission_capacity_count{service="orders"} 1');
    expect(lines).toContain("headgate_ext_proc_streams_open 1");
    expect(lines).toContain('headgate_exchange_messages_total{part="request_headers"} 1');
    expect(lines).toContain('headgate_exchange_faults_total{fault="out_of_order"} 1');
  });

  it("shows waits in seconds, what a gate stands by, and what a law believes", async () => {
    const rig = new AdmissionRig([
      testService(
        {
          maxInFlight: 1,
          queue: { sizeMax: 5, waitMsMax: 2_000, order: "fifo", codel: undefined },
          estimatedWait: {
            max: undefined,
            sigmoid: { midpoint: { kind: "duration", ms: 1 }, slopePerSecond: 1 },
          },
          gate: { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 },
          throttle: { k: 2, per: "service", memoryMs: 1_000 },
        },
        {
          concurrency: {
            settings: { law: "window", limits: { initial: 5, min: 1, max: 10 } },
            per: undefined,
            signal: undefined,
            sources: ["extProc"],
            feedback: [],
          },
        },
      ),
    ]);
    rig.draw = 0.99;
    const first = rig.ask();
    const second = rig.ask();
    rig.clock.advance(40);
    first.complete();
    expect(second.verdict).toBe("admitted");
    const lines = await linesOf(rig);
    expect(lines).toContain('headgate_admission_wait_seconds_sum{service="orders"} 0.04');
    expect(lines).toContain('headgate_admission_wait_seconds_bucket{service="orders",le="0.05"} 1');
    expect(lines).toContain('headgate_admission_queue_depth{service="orders",key=""} 0');
    expect(lines).toContain('headgate_admission_gate_state{service="orders",state="open"} 1');
    expect(lines).toContain('headgate_admission_gate_pass_ratio{service="orders"} 1');
    expect(lines).toContain(
      'headgate_admission_gate_threshold_ratio{service="orders",threshold="close_above"} 0.8',
    );
    expect(lines).toContain('headgate_admission_throttle_probability{service="orders"} 0');
    expect(lines).toContain(
      'headgate_admission_law{service="orders",key="",fact="success_count"} 1',
    );
    const reject = lines.find((line) =>
      line.startsWith('headgate_admission_reject_probability{service="orders"}'),
    );
    expect(reject).toBeDefined();
  });

  it("names no key that the policy does not name, and adds those up", async () => {
    const rig = new AdmissionRig([
      testService(
        {},
        {
          concurrency: {
            settings: { law: "fixed", limits: { initial: 5, min: 1, max: 5 } },
            per: { header: "x-database", names: ["users"], keysMax: 10 },
            signal: undefined,
            sources: ["extProc"],
            feedback: [],
          },
        },
      ),
    ]);
    for (const database of ["users", "secret-a", "secret-b"]) {
      rig.ask({ headers: { "x-database": database } });
    }
    const lines = await linesOf(rig);
    expect(lines).toContain('headgate_admission_inflight{service="orders",key="users"} 1');
    expect(lines).toContain('headgate_admission_inflight{service="orders",key="other"} 2');
    expect(lines).toContain('headgate_admission_inflight_max{service="orders",key="other"} 10');
    expect(lines.join("\n")).not.toContain("secret");
  });

  it("says that nothing limits where nothing does", async () => {
    const lines = await linesOf(new AdmissionRig([testService({})]));
    expect(lines).toContain('headgate_admission_inflight_max{service="orders",key=""} +Inf');
  });

  it("has no two metrics of one name", () => {
    const group = admissionMetrics({
      services: () => [],
      unknownCount: () => 0,
      nowMs: () => 0,
    });
    const { gauges = [], counters = [], histograms = [] } = group;
    const names = [...gauges, ...counters, ...histograms].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
