import { describe, expect, it } from "vitest";
import type { QueueSettings } from "../../../../src/core/admission/request-queue.js";
import { tickMs } from "../../../../src/decide/admission/admission.js";
import { permitLeaseMs, permitLeaseMsMin } from "../../../../src/decide/admission/permit-lease.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { defaultBlocks } from "../../../../src/policy/upstream/default-upstream.js";
import { AdmissionRig, testService } from "../../../support/admission.js";

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
  const timeouts = { ...defaultBlocks.timeouts, requestMs: 600_000 };
  return new AdmissionRig([testService({ maxInFlight: 2 }, { timeouts, ...fields })]);
}

const silent = { peer: "address:10.0.0.1" };
const honest = { peer: "address:10.0.0.2" };

const fifo: QueueSettings = { sizeMax: 5, waitMsMax: 1_000, order: "fifo", codel: undefined };
const queueOrders = ["fifo", "priority", "newestFirstUnderOverload"] as const;

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
    const timeouts = { ...defaultBlocks.timeouts, requestMs: 120_000 };
    const rig = new AdmissionRig([testService({ maxInFlight: 1, queue }, { timeouts })]);
    rig.ask(silent);
    const waiting = rig.ask(honest);
    rig.clock.advance(120_000);
    expect(waiting.verdict).toBe("admitted");
  });

  it.each`
    behind               | queue        | whileHonest
    ${"without a queue"} | ${undefined} | ${"concurrency"}
    ${"behind a queue"}  | ${fifo}      | ${"waiting"}
  `(
    "leaves the permit in use for its own peer until the exchange is over, $behind",
    ({ queue, whileHonest }) => {
      const rig = new AdmissionRig([testService({ maxInFlight: 2, queue })]);
      const open = rig.askMany(2, silent);
      rig.clock.advance(permitLeaseMsMin);
      expect(rig.ask(silent).verdict).toBe("concurrency");
      expect(rig.ask(honest).verdict).toBe("admitted");
      open[0]?.leave();
      // Only where it may wait, it may hope for the end of the honest one's.
      const next = rig.ask(silent);
      expect(next.verdict).toBe(whileHonest);
      open[1]?.leave();
      expect(next.verdict).toBe(queue === undefined ? "concurrency" : "admitted");
      if (queue === undefined) expect(rig.ask(silent).verdict).toBe("admitted");
    },
  );

  it("leaves a peer no more exchanges than the limit, who waits in the queue included", () => {
    const queue = { ...fifo, waitMsMax: 2 * permitLeaseMsMin };
    const rig = new AdmissionRig([testService({ maxInFlight: 2, queue })]);
    const open = rig.askMany(2, silent);
    const waiting = rig.askMany(2, silent);
    rig.clock.advance(permitLeaseMsMin);
    expect(waiting.map(({ verdict }) => verdict)).toEqual(["waiting", "waiting"]);
    for (const [i, visit] of open.entries()) {
      visit.complete();
      expect(waiting.filter(({ verdict }) => verdict === "admitted")).toHaveLength(i + 1);
    }
  });

  it.each(queueOrders)("lets others past who waits for its own peer's exchanges (%s)", (order) => {
    const queue = { ...fifo, order, sizeMax: 3, waitMsMax: 2 * permitLeaseMsMin };
    const rig = new AdmissionRig([testService({ maxInFlight: 2, queue })]);
    rig.askMany(2, silent);
    const ours = rig.ask(silent);
    const theirs = rig.ask(honest);
    const last = rig.ask(silent);
    rig.clock.advance(permitLeaseMsMin);
    // Whose turn is not put off by who waits does not wait at all.
    const next = rig.ask(honest);
    expect([next.verdict, next.waits]).toEqual(["admitted", []]);
    const verdicts = [ours, theirs, last].map(({ verdict }) => verdict);
    expect(verdicts).toEqual(["waiting", "admitted", "waiting"]);
    expect(rig.ask(honest).verdict).toBe("waiting");
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
    const ask = (database: string, { peer }: typeof silent) =>
      rig.ask({ peer, headers: { "x-database": database } });
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

  it("keeps the caller's own permit until its exchange is over", () => {
    const maxInFlightPer = {
      per: { kind: "header", header: "x-user" },
      max: 1,
      keysMax: 10,
      scope: "replica",
    } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 5, maxInFlightPer })]);
    const open = rig.ask({ ...silent, user: "anna" });
    expect(rig.ask({ ...honest, user: "anna" }).verdict).toBe("concurrency");
    rig.clock.advance(permitLeaseMsMin);
    expect(rig.ask({ ...honest, user: "anna" }).verdict).toBe("concurrency");
    open.leave();
    expect(rig.ask({ ...honest, user: "anna" }).verdict).toBe("admitted");
  });
});

describe("the part of permits that a peer may have", () => {
  const half = { permitsPeerPercentMax: 50 };

  it("refuses what is beyond it, which fills no queue, and gives it again", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 4, queue: fifo })], half);
    const verdicts = (asked: ReturnType<typeof rig.askMany>) => asked.map(({ verdict }) => verdict);
    const [first, ...others] = rig.askMany(10, silent);
    expect(verdicts(others)).toEqual(["admitted", ...Array(8).fill("concurrency")]);
    expect(verdicts(rig.askMany(2, honest))).toEqual(["admitted", "admitted"]);
    const last = rig.ask({ peer: "address:10.0.0.3" });
    expect(last.verdict).toBe("waiting");
    first?.complete();
    expect(last.verdict).toBe("admitted");
    last.complete();
    expect(verdicts(rig.askMany(2, silent))).toEqual(["admitted", "concurrency"]);
  });

  it("is one permit at least, and comes back with the lease, but for who is silent", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 1 })], half);
    expect(rig.ask(silent).verdict).toBe("admitted");
    rig.clock.advance(permitLeaseMsMin);
    expect(rig.ask(silent).verdict).toBe("concurrency");
    expect(rig.ask(honest).verdict).toBe("admitted");
  });
});
