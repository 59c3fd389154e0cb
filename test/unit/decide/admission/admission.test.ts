import { describe, expect, it } from "vitest";
import { defaultShedThresholds } from "../../../../src/core/admission/priority.js";
import { tickMs } from "../../../../src/decide/admission/admission.js";
import { askedOnce } from "../../../../src/policy/services/service-rate-limit.js";
import { AdmissionRig, servicesPolicy, testService } from "../../../support/admission.js";

describe("Admission", () => {
  it("finds a service by the route's name, and else by its host", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 1 })]);
    expect(rig.ask().verdict).toBe("admitted");
    const byHost = rig.ask({ service: undefined, headers: { ":authority": "Orders.example:80" } });
    expect(byHost.verdict).toBe("concurrency");
  });

  it("lets pass and counts what the policy does not have", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 1 })]);
    const unknown = [
      rig.ask({ service: "carts" }),
      rig.ask({ service: undefined, headers: { ":authority": "carts.example" } }),
      rig.ask({ service: undefined }),
    ];
    expect(unknown.map(({ verdict }) => verdict)).toEqual(["admitted", "admitted", "admitted"]);
    expect(unknown.every(({ terms }) => terms[0]?.isFollowed === false)).toBe(true);
    expect(rig.admission.unknownCount).toBe(3);
    for (const visit of unknown) visit.complete();
  });

  it("lets everything pass where a service has no admission, and says its class", () => {
    const rig = new AdmissionRig([testService(undefined)]);
    const visit = rig.ask({ priority: "high" });
    expect(visit.terms).toEqual([
      {
        priority: "high",
        setHeaders: [{ name: "x-request-priority", value: "high" }],
        removeHeaders: [],
        metadata: new Map([
          ["priority", "high"],
          ["service", "orders"],
        ]),
        responseHeaders: undefined,
        isFollowed: false,
      },
    ]);
  });

  it("neither counts nor follows bypassed paths, and takes their stated class away", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 1 })]);
    rig.ask();
    const visit = rig.ask({ headers: { ":path": "/healthz" } });
    expect(visit.terms[0]).toMatchObject({
      setHeaders: [],
      removeHeaders: ["x-request-priority"],
      isFollowed: false,
    });
    visit.complete();
    expect(rig.service().counts.bypassedCount).toBe(1);
    expect(rig.service().pools.whole.inUseCount()).toBe(1);
  });

  it("wants to see what the active policy asks for, in sets that change with it alone", () => {
    const rig = new AdmissionRig([testService(undefined)]);
    const { admission } = rig;
    const before = admission.requestHeaderNames;
    expect([...before].toSorted()).toEqual([
      ":authority",
      ":method",
      ":path",
      "content-type",
      "grpc-timeout",
      "x-envoy-expected-rq-timeout-ms",
      "x-request-priority",
    ]);
    expect([...admission.attributeNames]).toEqual([]);
    expect(admission.requestHeaderNames).toBe(before);
    const maxInFlightPer = {
      per: { kind: "route" },
      max: 1,
      keysMax: 10,
      scope: "replica",
    } as const;
    const deadline = { minRemainingMs: 5, marginMs: 10, header: "x-time-left" };
    rig.policy = servicesPolicy([
      testService(
        { maxInFlightPer, deadline },
        {
          rateLimit: {
            domain: "shop",
            inExtProc: true,
            descriptors: [
              askedOnce([
                { kind: "header", header: "x-plan", key: "plan" },
                { kind: "remoteAddress", key: "remote_address" },
                { kind: "fixed", key: "generic_key", value: "x" },
              ]),
            ],
          },
          concurrency: {
            settings: { law: "fixed", limits: { initial: 1, min: 1, max: 1 } },
            per: { header: "x-database", names: [], keysMax: 10 },
            signal: undefined,
            sources: ["extProc"],
            feedback: [],
          },
        },
      ),
    ]);
    const added = [...admission.requestHeaderNames].filter((name) => !before.has(name));
    expect(added.toSorted()).toEqual(["x-database", "x-plan", "x-time-left", "x-user"]);
    expect([...admission.attributeNames].toSorted()).toEqual(["source.address", "xds.route_name"]);
  });

  it("keeps who is in, who waits and what is learnt over a policy that names the service", () => {
    const queue = { sizeMax: 5, waitMsMax: 2_000, order: "fifo", codel: undefined } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 2, queue })]);
    const [first] = rig.askMany(2);
    const waiting = rig.ask();
    const service = rig.service();
    const { pool } = [...service.pools.all()][0] ?? {};
    rig.policy = servicesPolicy([testService({ maxInFlight: 2, queue, lateAfterMs: 1_000 })]);
    expect(rig.service()).toBe(service);
    expect([...service.pools.all()][0]?.pool).toBe(pool);
    expect(service.pools.whole.inUseCount()).toBe(2);
    first?.complete();
    expect(waiting.verdict).toBe("admitted");
  });

  it("lets in who waits when a policy raises the limit, and cancels nothing when it falls", () => {
    const queue = { sizeMax: 5, waitMsMax: 2_000, order: "fifo", codel: undefined } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 2, queue })]);
    rig.askMany(2);
    const waiting = rig.askMany(3);
    rig.policy = servicesPolicy([testService({ maxInFlight: 4, queue })]);
    rig.service();
    expect(waiting.map(({ verdict }) => verdict)).toEqual(["admitted", "admitted", "waiting"]);
    rig.policy = servicesPolicy([testService({ maxInFlight: 1, queue })]);
    expect(rig.service().pools.whole.inUseCount()).toBe(4);
    for (const visit of waiting.slice(0, 2)) visit.complete();
    expect(waiting.at(-1)?.verdict).toBe("waiting");
  });

  it("serves who waits in a queue that the policy does without by now", () => {
    const queue = { sizeMax: 5, waitMsMax: 2_000, order: "fifo", codel: undefined } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 1, queue })]);
    const first = rig.ask();
    const waiting = rig.ask();
    rig.policy = servicesPolicy([testService({ maxInFlight: 1 })]);
    expect(rig.ask().verdict).toBe("concurrency");
    first.complete();
    expect(waiting.verdict).toBe("admitted");
  });

  it("lets who is in a service that is gone finish, and passes those who come", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 1 })]);
    const service = rig.service();
    const visit = rig.ask();
    rig.policy = servicesPolicy([]);
    expect(rig.ask().verdict).toBe("admitted");
    expect(rig.admission.unknownCount).toBe(1);
    visit.complete();
    expect(service.pools.whole.inUseCount()).toBe(0);
  });

  it("gives back what was taken under a policy that has no admission any more", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 1 })]);
    const visit = rig.ask();
    rig.policy = servicesPolicy([testService(undefined)]);
    rig.ask();
    visit.complete();
    expect(rig.service().pools.whole.inUseCount()).toBe(0);
  });

  it("looks at gates once a second, and tells when one changes", () => {
    const gate = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };
    const estimatedWait = {
      max: undefined,
      sigmoid: { midpoint: { kind: "duration", ms: 100 }, slopePerSecond: 50 },
    } as const;
    const queue = { sizeMax: 50, waitMsMax: 60_000, order: "fifo", codel: undefined } as const;
    const rig = new AdmissionRig([testService({ maxInFlight: 1, queue, estimatedWait, gate })]);
    const before = rig.ask();
    rig.clock.advance(100);
    before.complete();
    rig.draw = 0.999;
    rig.askMany(9);
    // One is in and eight wait, each for about 100 ms of the one before.
    expect(rig.service().rejectRatio(rig.clock.monotonicMs())).toBeGreaterThan(0.9);
    expect(rig.events).toEqual([]);
    rig.clock.advance(tickMs);
    expect(rig.events).toEqual([{ kind: "gateChanged", service: "orders", state: "closed" }]);
    expect(rig.ask().verdict).toBe("gate");
    expect(rig.ask({ priority: "critical" }).verdict).toBe("waiting");
  });

  it("counts once a second how many permits there are", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 60 })]);
    rig.clock.advance(3 * tickMs);
    const { capacity } = rig.service().counts;
    expect(capacity.bounds).toEqual([10, 25, 50, 100, 250, 500, 750, 1_000]);
    expect(capacity.counts).toEqual([0, 0, 0, 3, 0, 0, 0, 0, 0]);
    expect(capacity.sum).toBe(180);
  });

  it("leaves no timer behind when it is closed", () => {
    const rig = new AdmissionRig([testService({ maxInFlight: 60 })]);
    rig.ask().complete();
    rig.admission.close();
    expect(rig.clock.timerCount).toBe(0);
  });

  it("sheds by class at the loads of the defaults", () => {
    const rig = new AdmissionRig([
      testService({ maxInFlight: 100, shedAt: defaultShedThresholds }),
    ]);
    rig.askMany(92, { priority: "critical" });
    const verdicts = (["critical", "high", "normal", "low"] as const).map((priority) => {
      const visit = rig.ask({ priority });
      const { verdict } = visit;
      visit.complete();
      return verdict;
    });
    expect(verdicts).toEqual(["admitted", "admitted", "priority", "priority"]);
  });
});
