import { describe, expect, it } from "vitest";
import type { LoadSettings } from "../../../../src/core/admission/load.js";
import { defaultShedThresholds } from "../../../../src/core/admission/priority.js";
import { AdmissionRig, testService } from "../../../support/admission.js";

const loads: LoadSettings = {
  orcaCpuRatio: 0.85,
  orcaMemoryRatio: 0.9,
  latencyMultiple: 3,
  errorRatio: 0.5,
  queueWaitMs: undefined,
  combine: "max",
};

const queue = { sizeMax: 50, waitMsMax: 60_000, order: "fifo", codel: undefined } as const;

/** One request that takes so long, so that the time of service is known. */
function serveOne(rig: AdmissionRig, serviceMs: number, status = 200): void {
  const visit = rig.ask();
  rig.clock.advance(serviceMs);
  visit.complete(status);
}

describe("createChecks()", () => {
  it("refuses by the throttle what the service refuses, but for critical requests", () => {
    const throttle = { k: 2, per: "service", memoryMs: 30_000 } as const;
    const rig = new AdmissionRig([testService({ throttle })]);
    for (let i = 0; i < 20; i += 1) serveOne(rig, 1, 503);
    rig.draw = 0.9;
    expect(rig.ask().verdict).toBe("throttle");
    expect(rig.ask({ priority: "critical" }).verdict).toBe("admitted");
    // Its own refusals count as requests, so it holds more back; yet something always gets through.
    rig.draw = 0.999;
    expect(rig.ask().verdict).toBe("admitted");
  });

  it("throttles one caller and not another", () => {
    const throttle = { k: 2, per: "caller", memoryMs: 30_000 } as const;
    const rig = new AdmissionRig([testService({ throttle })]);
    for (let i = 0; i < 30; i += 1) {
      rig.ask({ user: "bad" }).complete(429);
      for (let good = 0; good < 3; good += 1) rig.ask({ user: "good" }).complete();
    }
    rig.draw = 0.5;
    expect(rig.ask({ user: "bad" }).verdict).toBe("throttle");
    expect(rig.ask({ user: "good" }).verdict).toBe("admitted");
    expect(rig.ask({ user: "new" }).verdict).toBe("admitted");
  });

  it("does not take refusals for other reasons for the throttle's business", () => {
    const throttle = { k: 2, per: "service", memoryMs: 30_000 } as const;
    const rig = new AdmissionRig([testService({ throttle, maxInFlight: 1 })]);
    rig.ask();
    for (let i = 0; i < 50; i += 1) expect(rig.ask().verdict).toBe("concurrency");
    rig.draw = 0;
    expect(rig.ask().verdict).toBe("concurrency");
  });

  it("caps the wait, and lets critical requests wait longer", () => {
    const estimatedWait = {
      max: { kind: "serviceTimes", multiple: 3 },
      sigmoid: undefined,
    } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 1, queue, estimatedWait })]);
    serveOne(rig, 100);
    expect(rig.askMany(6).map(({ verdict }) => verdict)).toEqual([
      "admitted",
      "waiting",
      "waiting",
      "waiting",
      "wait_cap",
      "wait_cap",
    ]);
    expect(rig.ask({ priority: "critical" }).verdict).toBe("waiting");
  });

  it("admits by the sigmoid with a probability that falls with the wait", () => {
    const estimatedWait = {
      max: undefined,
      sigmoid: { midpoint: { kind: "duration", ms: 300 }, slopePerSecond: 20 },
    } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 1, queue, estimatedWait })]);
    serveOne(rig, 100);
    rig.draw = 0.9;
    rig.askMany(4);
    rig.draw = 0.4;
    expect(rig.ask().verdict).toBe("sigmoid");
    expect(rig.ask({ priority: "critical" }).verdict).toBe("waiting");
    rig.draw = 0.999;
    expect(rig.ask().verdict).toBe("waiting");
  });

  it("keeps service for the same callers near a threshold", () => {
    const shedAt = {
      ...defaultShedThresholds,
      normal: { softRatio: 0.5, hardRatio: 0.9 },
    };
    const rig = new AdmissionRig([testService({ maxInFlight: 10, shedAt })]);
    rig.askMany(7, { priority: "critical" });
    const refusedOf = (): readonly string[] =>
      Array.from({ length: 200 }, (_, i) => `user-${i}`).filter((user) => {
        const visit = rig.ask({ user });
        visit.complete();
        return visit.verdict === "priority";
      });
    const refused = refusedOf();
    // Half of the way between 0.5 and 0.9.
    expect(refused.length).toBeGreaterThan(70);
    expect(refused.length).toBeLessThan(130);
    expect(refusedOf()).toEqual(refused);
  });

  it("counts places in the queue as room: classes are shed by how full both are", () => {
    const rig = new AdmissionRig([
      testService({
        maxInFlight: 10,
        queue: { ...queue, sizeMax: 10 },
        shedAt: defaultShedThresholds,
      }),
    ]);
    const verdicts = rig.askMany(20).map(({ verdict }) => verdict);
    expect(verdicts.filter((verdict) => verdict === "admitted")).toHaveLength(10);
    expect(verdicts.filter((verdict) => verdict === "waiting")).toHaveLength(8);
    expect(verdicts.slice(18)).toEqual(["priority", "priority"]);
  });

  it("sheds by what the upstream reports of its CPU, low classes first and critical last", () => {
    const rig = new AdmissionRig([testService({ load: loads, shedAt: defaultShedThresholds })]);
    const report = (cpu: number): void => {
      for (let i = 0; i < 30; i += 1) {
        const visit = rig.ask({ priority: "critical" });
        visit.respond(200, { loadMetrics: `TEXT cpu_utilization=${cpu}` });
        visit.ticket?.end("completed");
        rig.clock.advance(200);
      }
    };
    report(0.78);
    const at = () =>
      (["critical", "high", "normal", "low"] as const).map((priority) => {
        const visit = rig.ask({ priority });
        visit.complete();
        return visit.verdict;
      });
    expect(at()).toEqual(["admitted", "admitted", "load", "load"]);
    report(0.86);
    expect(at()).toEqual(["load", "load", "load", "load"]);
  });

  it("takes no notice of a report that cannot be read", () => {
    const rig = new AdmissionRig([testService({ load: loads })]);
    const visit = rig.ask();
    visit.respond(200, { loadMetrics: "BIN what is this" });
    visit.ticket?.end("completed");
    expect(rig.ask().verdict).toBe("admitted");
  });

  it("sheds all by a load of failures where no class has a threshold", () => {
    const rig = new AdmissionRig([testService({ load: loads })]);
    for (let i = 0; i < 50; i += 1) serveOne(rig, 1, 500);
    expect(rig.ask().verdict).toBe("load");
  });

  it("sheds by how much slower than its best the service is", () => {
    const rig = new AdmissionRig([testService({ load: { ...loads, errorRatio: undefined } })]);
    for (let i = 0; i < 200; i += 1) serveOne(rig, 10);
    expect(rig.ask().verdict).toBe("admitted");
    for (let i = 0; i < 300; i += 1) {
      const visit = rig.ask();
      rig.clock.advance(40);
      visit.complete();
    }
    expect(rig.ask().verdict).toBe("load");
  });

  it("refuses a share of requests while latency stands above a law's threshold", () => {
    const rig = new AdmissionRig([
      testService(
        {},
        {
          concurrency: {
            settings: {
              law: "latencyShed",
              limits: { initial: 100, min: 1, max: 100 },
              thresholdMs: 50,
              statistic: { kind: "mean" },
              windowCount: 5,
              factor: 1,
              sustainedMs: 0,
            },
            per: undefined,
            signal: undefined,
            sources: ["extProc"],
            feedback: [],
          },
        },
      ),
    ]);
    rig.draw = 0.99;
    for (let i = 0; i < 6; i += 1) serveOne(rig, 75);
    rig.draw = 0.4;
    expect(rig.ask().verdict).toBe("load");
    expect(rig.ask({ priority: "critical" }).verdict).toBe("admitted");
    rig.draw = 0.6;
    expect(rig.ask().verdict).toBe("admitted");
  });
});
