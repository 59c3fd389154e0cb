import { describe, expect, it } from "vitest";
import { silentLogger } from "../../../../src/app/base/logger.js";
import { createMetrics } from "../../../../src/app/base/metrics.js";
import { FleetLoopApp, pressureOf } from "../../../../src/app/fleet/fleet-loop.js";
import { gateSettings, loopSettings, needsLoop } from "../../../../src/app/fleet/fleet-maker.js";
import { fleetMetrics } from "../../../../src/app/fleet/fleet-metrics.js";
import { renderLoop, shownSharesMax } from "../../../../src/app/observability/debug-fleet.js";
import { defaultTimings } from "../../../../src/app/options/test-timings.js";
import { defaultGateSettings } from "../../../../src/core/admission/gate.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { defaultProxies } from "../../../../src/policy/proxies/default-proxies.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import { createMemoryCoordination } from "../../../../src/store/coordination/memory-coordination.js";
import { AdmissionRig, servicesPolicy, testService } from "../../../support/admission.js";
import { reportedService } from "../../../support/control-rig.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testReport, testShares } from "../../../support/fleet-reports.js";

/** The part of a process that closes the loop, without a shared store. */
class LoopRig {
  readonly clock = new FakeClock();
  readonly bugs: unknown[] = [];
  readonly app: FleetLoopApp;
  #policy: Policy | undefined;
  #listeners = new Set<() => void>();

  constructor(services: readonly ServicePolicy[], { layerTtlMs = 15_000 } = {}) {
    this.#policy = servicesPolicy(services);
    const { clock } = this;
    const opened = { coordination: createMemoryCoordination(clock) };
    this.app = new FleetLoopApp({
      config: { layerTtlMs, timings: defaultTimings },
      clock,
      replica: "a1",
      logger: silentLogger,
      opened,
      policies: {
        current: () => this.#policy,
        onLoaded: (listener) => {
          this.#listeners.add(listener);
          return () => this.#listeners.delete(listener);
        },
      },
      onBug: (thrown) => this.bugs.push(thrown),
    });
  }

  load(services: readonly ServicePolicy[]): void {
    this.#policy = servicesPolicy(services);
    for (const listener of this.#listeners) listener();
  }

  /** Seconds in which one Envoy tells the same. */
  async pass(seconds: number, service = "orders"): Promise<void> {
    for (let i = 0; i < seconds; i += 1) {
      const atMs = this.clock.monotonicMs();
      this.app.report([testReport({ service, atMs, nodeId: "node-1", inFlight: 7, rps: 70 })]);
      await this.clock.advanceAsync(1_000, 250);
    }
  }

  async metrics(): Promise<string> {
    const metrics = createMetrics();
    metrics.add(fleetMetrics(() => this.app.status));
    return metrics.render();
  }
}

describe("FleetLoopApp", () => {
  it("takes no part while the policy has nothing that a fleet decides together", async () => {
    const rig = new LoopRig([testService({})]);
    await rig.pass(3);
    expect(rig.app.status).toBeUndefined();
    expect(rig.app.held()?.fleet.snapshot).toBeUndefined();
    expect(rig.clock.timerCount).toBe(0);
    expect(await rig.metrics()).toContain("headgate_fleet_leading 0");
    expect(renderLoop(rig.app.status, () => undefined)).toEqual({ isOpen: false });
    rig.load([reportedService("orders")]);
    await rig.pass(2);
    expect(rig.app.held()?.fleet.snapshot).toMatchObject({ term: 1 });
    await rig.app.close();
    expect(rig.clock.timerCount).toBe(0);
  });

  it("makes shares of reports by the policy's laws, and tells those who listen", async () => {
    const rig = new LoopRig([reportedService("orders")]);
    let count = 0;
    rig.app.onSnapshot(() => {
      count += 1;
    });
    await rig.pass(5);
    expect(count).toBe(5);
    const orders = rig.app.held()?.fleet.snapshot?.services.get("orders");
    expect(orders?.limit).toBe(1_000);
    expect(orders?.facts).toMatchObject({ inFlight: 7, rps: 70 });
    expect([...(orders?.shares.keys() ?? [])]).toEqual(["node-1"]);
    expect(rig.bugs).toEqual([]);
  });

  it("follows the policy: other limits, other services", async () => {
    const rig = new LoopRig([reportedService("orders")]);
    await rig.pass(3);
    rig.load([reportedService("payments")]);
    await rig.pass(3, "payments");
    expect([...(rig.app.held()?.fleet.snapshot?.services.keys() ?? [])]).toEqual(["payments"]);
  });

  it.each([4_000, 15_000])("keeps the share of a silent Envoy for %i ms", async (layerTtlMs) => {
    const rig = new LoopRig([reportedService("orders")], { layerTtlMs });
    const isShared = (): boolean => rig.app.held()?.fleet.snapshot?.services.has("orders") === true;
    await rig.pass(1);
    expect(isShared()).toBe(true);
    rig.clock.advance(layerTtlMs - 2_000);
    expect(isShared()).toBe(true);
    rig.clock.advance(2_000);
    expect(isShared()).toBe(false);
  });

  it("follows readings of the law `signal`", async () => {
    const limits = { initial: 50, min: 5, max: 80 };
    const law = { law: "signal", target: 100, critical: 900, smoothingRatio: 1 } as const;
    const settings = { ...law, limits, pid: undefined };
    const rig = new LoopRig([reportedService("orders", {}, { settings })]);
    rig.app.read("orders", "min");
    await rig.pass(20);
    expect(rig.app.held()?.fleet.snapshot?.services.get("orders")?.limit).toBe(5);
    rig.app.read("orders", "max");
    await rig.pass(20);
    expect(rig.app.held()?.fleet.snapshot?.services.get("orders")?.limit).toBe(80);
  });

  it("reads a signal once, for all snapshots to come, and anew for a law made anew", async () => {
    const limits = { initial: 50, min: 10, max: 1_010 };
    const law = { law: "signal", target: 0, critical: 1_000, smoothingRatio: 0.5 } as const;
    const signal = reportedService("orders", {}, { settings: { ...law, limits, pid: undefined } });
    const rig = new LoopRig([signal]);
    const limit = (): number | undefined =>
      rig.app.held()?.fleet.snapshot?.services.get("orders")?.limit;
    rig.app.read("orders", 0);
    await rig.pass(20);
    expect(limit()).toBe(1_010);
    rig.app.read("orders", 800);
    await rig.pass(20);
    // Half of the way from 0 to 800.
    expect(limit()).toBe(610);
    const other = { ...law, limits: { ...limits, max: 510 }, pid: undefined };
    rig.load([reportedService("orders", {}, { settings: other })]);
    await rig.pass(20);
    expect(limit()).toBe(110);
  });

  it("goes by its own queues where it is alone and the loop decides nothing for it", async () => {
    const gate = testService({ gate: defaultGateSettings });
    const rig = new LoopRig([gate, reportedService("told", { admission: gate.admission })]);
    await rig.pass(2, "told");
    expect(rig.app.verdict("orders")).toBeUndefined();
    expect(rig.app.verdict("told")).toEqual({ rejectRatio: 0, state: "open" });
  });
});

describe("fleetMetrics()", () => {
  it("shows who leads, and each service's limit and what it was made of", async () => {
    const rig = new LoopRig([reportedService("orders")]);
    await rig.pass(3);
    const lines = (await rig.metrics()).split("\n");
    for (const line of [
      "headgate_fleet_leading 1",
      "headgate_fleet_term 1",
      // Its seconds began when it was elected, 250 ms after ours.
      "headgate_fleet_snapshot_age_seconds 0.75",
      'headgate_fleet_limit{service="orders"} 1000',
      'headgate_fleet_inflight{service="orders"} 7',
      'headgate_fleet_request_rate{service="orders"} 70',
      'headgate_fleet_share_nodes{service="orders"} 1',
      'headgate_fleet_shares{service="orders",priority="high"} 0',
      'headgate_fleet_gate_state{service="orders",state="open"} 1',
      'headgate_fleet_snapshots_total{outcome="published"} 3',
    ]) {
      expect(lines).toContain(line);
    }
    expect(lines.join("\n")).not.toContain("node-1");
  });
});

describe("renderLoop()", () => {
  it("shows shares by Envoy with the version that each has acknowledged, up to a bound", () => {
    const shares = new Map(
      Array.from({ length: shownSharesMax + 5 }, (_, i) => [`node-${i}`, { default: 2, high: 1 }]),
    );
    const services = new Map([["orders", testShares({ limit: 9, shares })]]);
    const snapshot = { term: 3, leaderId: "a1", version: 8, services };
    const zero = { refused: 0, older: 0, failed: 0, unreadable: 0, leftOut: 0 };
    const counts = { ...zero, published: 8 };
    const status = { isLeading: true, snapshot, ageMs: 1_234, counts };
    const page = renderLoop(status, (id) => (id === "node-1" ? "3.7" : undefined));
    expect(page).toMatchObject({ term: 3, leader: "a1", version: 8, ageSeconds: 1.2, counts });
    expect(page).toMatchObject({
      services: {
        orders: {
          limit: 9,
          gate: "open",
          shareCount: shownSharesMax + 5,
          shares: { "node-1": { default: 2, high: 1, acknowledgedVersion: "3.7" } },
        },
      },
    });
    const text = JSON.stringify(page);
    expect(text).toContain(`node-${shownSharesMax - 1}"`);
    expect(text).not.toContain(`node-${shownSharesMax}"`);
  });
});

describe("loopSettings()", () => {
  it("is about services whose limits go back to Envoys, and knows of routes at HIGH", () => {
    const rules = [{ when: "true", is: "critical" }] as const;
    const critical = { ...reportedService("a").priority, rules };
    const reported = [reportedService("a", { priority: critical }), reportedService("b")];
    const others = [testService({}), reportedService("c", {}, { feedback: [] })];
    expect(
      loopSettings([...reported, ...others]).map(({ service, highRatio }) => [service, highRatio]),
    ).toEqual([
      ["a", 0.25],
      ["b", undefined],
    ]);
    const proxies = { ...defaultProxies, expectedCount: 8 };
    // At both priorities, and at one.
    expect(loopSettings(reported, proxies).map((one) => one.configuredShare)).toEqual([250, 125]);
    expect(needsLoop(others)).toBe(false);
    expect(needsLoop([...others, testService({ gate: defaultGateSettings })])).toBe(true);
    expect(gateSettings([testService({ gate: defaultGateSettings })])).toEqual(
      new Map([["orders", defaultGateSettings]]),
    );
    const changed = { ...defaultGateSettings, closeAboveRatio: 0.5 };
    const services = [testService({ gate: defaultGateSettings })];
    expect(gateSettings(services, () => changed)).toEqual(new Map([["orders", changed]]));
  });
});

describe("pressureOf()", () => {
  it("weighs a service by its permits, and one without limits like all others", () => {
    const { admission, clock } = new AdmissionRig([
      testService({ maxInFlight: 30 }),
      testService({}, { name: "free", hosts: [] }),
    ]);
    const quiet = { rejectRatio: 0, waitingCount: 0, serviceMs: undefined };
    expect([...admission.services()].map((one) => pressureOf(one, clock.monotonicMs()))).toEqual([
      { service: "orders", weight: 30, ...quiet },
      { service: "free", weight: 1, ...quiet },
    ]);
    admission.close();
  });
});
