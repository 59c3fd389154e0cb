import { describe, expect, it } from "vitest";
import { tickMs } from "../../../src/decide/admission.js";
import { permitLeaseMs, permitLeaseMsMin } from "../../../src/decide/permit-lease.js";
import type { ServicePolicy } from "../../../src/policy/service-policy.js";
import { AdmissionRig, testService } from "../../support/admission.js";

describe("permitLeaseMs()", () => {
  it.each`
    requestMs  | remainingMs  | leaseMsMax | expected
    ${600_000} | ${undefined} | ${300_000} | ${600_000}
    ${600_000} | ${120_000}   | ${300_000} | ${120_000}
    ${600_000} | ${900_000}   | ${300_000} | ${600_000}
    ${600_000} | ${1}         | ${300_000} | ${permitLeaseMsMin}
    ${15_000}  | ${undefined} | ${300_000} | ${permitLeaseMsMin}
    ${0}       | ${undefined} | ${300_000} | ${300_000}
    ${0}       | ${900_000}   | ${300_000} | ${300_000}
    ${0}       | ${120_000}   | ${300_000} | ${120_000}
    ${0}       | ${1}         | ${2_000}   | ${2_000}
    ${1_000}   | ${undefined} | ${2_000}   | ${2_000}
  `(
    "is $expected of a time-out of $requestMs, a caller's $remainingMs and at most $leaseMsMax",
    ({ expected, ...bounds }) => {
      expect(permitLeaseMs(bounds)).toBe(expected);
    },
  );
});

/** Two permits of a service whose requests may take ten minutes. */
function startRig(fields: Partial<ServicePolicy> = {}): AdmissionRig {
  const timeouts = { requestMs: 600_000, connectMs: 250, idleMs: undefined };
  return new AdmissionRig([testService({ maxInFlight: 2 }, { timeouts, ...fields })]);
}

const silent = { connection: {} };
const honest = { connection: {} };

describe("the lease of a permit", () => {
  it("ends with the time-out of its service, and not before", () => {
    const rig = startRig();
    rig.askMany(2, silent);
    rig.clock.advance(600_000 - tickMs);
    expect(rig.ask(honest).verdict).toBe("concurrency");
    rig.clock.advance(tickMs);
    expect(rig.askMany(3, honest).map(({ verdict }) => verdict)).toEqual([
      "admitted",
      "admitted",
      "concurrency",
    ]);
  });

  it("ends with its caller's deadline, but for one that is too short to believe", () => {
    const rig = startRig();
    rig.ask({ ...silent, headers: { "grpc-timeout": "2M" } });
    rig.ask({ ...silent, headers: { "grpc-timeout": "1m" } });
    const { whole } = rig.service().pools;
    rig.clock.advance(permitLeaseMsMin - tickMs);
    expect(whole.inUseCount()).toBe(2);
    rig.clock.advance(tickMs);
    expect(whole.inUseCount()).toBe(1);
    rig.clock.advance(120_000 - permitLeaseMsMin);
    expect(whole.inUseCount()).toBe(0);
  });

  it("teaches nothing, is counted by itself, and what comes later of its exchange is not", () => {
    const settings = {
      law: "aimd",
      limits: { initial: 20, min: 1, max: 100 },
      increase: 1,
      decreaseRatio: 0.5,
    } as const;
    const concurrency = {
      settings,
      per: undefined,
      signal: undefined,
      sources: ["extProc"],
      feedback: [],
    } as const;
    const rig = startRig({ concurrency });
    const [first, second] = rig.askMany(2, silent);
    rig.clock.advance(600_000);
    first?.complete();
    second?.leave();
    const { counts, pools } = rig.service();
    expect(counts.overdueCount).toBe(2);
    expect(counts.outcomes).toEqual({ success: 0, ignore: 0, dropped: 0 });
    expect(counts.leftCount).toBe(0);
    expect(pools.whole.law?.limit).toBe(20);
    expect(pools.whole.inUseCount()).toBe(0);
  });

  it("lets in who waits when it ends", () => {
    const queue = { sizeMax: 1, waitMsMax: 600_000, order: "fifo", codel: undefined } as const;
    const timeouts = { requestMs: 120_000, connectMs: 250, idleMs: undefined };
    const rig = new AdmissionRig([testService({ maxInFlight: 1, queue }, { timeouts })]);
    rig.ask(silent);
    const waiting = rig.ask(honest);
    rig.clock.advance(120_000);
    expect(waiting.verdict).toBe("admitted");
  });

  it("leaves the permit in use for its own connection until the exchange is over", () => {
    const queue = { sizeMax: 5, waitMsMax: 1_000, order: "fifo", codel: undefined } as const;
    for (const admission of [{ maxInFlight: 2 }, { maxInFlight: 2, queue }]) {
      const rig = new AdmissionRig([testService(admission)]);
      const open = rig.askMany(2, silent);
      rig.clock.advance(permitLeaseMsMin);
      expect(rig.ask(silent).verdict).toBe("concurrency");
      expect(rig.ask(honest).verdict).toBe("admitted");
      open[0]?.leave();
      expect(rig.ask(silent).verdict).toBe("concurrency");
      open[1]?.leave();
      expect(rig.ask(silent).verdict).toBe("admitted");
    }
  });

  it("leaves it in use in the pools of a key and of the service", () => {
    const settings = { law: "fixed", limits: { initial: 1, min: 1, max: 1 } } as const;
    const per = { header: "x-database", names: [], keysMax: 10 } as const;
    const concurrency = {
      settings,
      per,
      signal: undefined,
      sources: ["extProc"],
      feedback: [],
    } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 2 }, { concurrency })]);
    const ask = (database: string, { connection }: typeof silent) =>
      rig.ask({ connection, headers: { "x-database": database } });
    const open = ["a", "b"].map((database) => ask(database, silent));
    rig.clock.advance(permitLeaseMsMin);
    expect(ask("a", silent).verdict).toBe("concurrency");
    // Its own pool is empty, and the service's is not.
    expect(ask("c", silent).verdict).toBe("concurrency");
    const others = ["a", "b"].map((database) => ask(database, honest).verdict);
    expect(others).toEqual(["admitted", "admitted"]);
    for (const visit of open) visit.leave();
    expect(rig.service().pools.whole.inUseCount()).toBe(2);
  });

  it("takes the caller's own permit back, too", () => {
    const maxInFlightPer = {
      per: { kind: "header", header: "x-user" },
      max: 1,
      keysMax: 10,
    } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 5, maxInFlightPer })]);
    rig.ask({ ...silent, user: "anna" });
    expect(rig.ask({ ...honest, user: "anna" }).verdict).toBe("concurrency");
    rig.clock.advance(permitLeaseMsMin);
    expect(rig.ask({ ...honest, user: "anna" }).verdict).toBe("admitted");
  });
});
