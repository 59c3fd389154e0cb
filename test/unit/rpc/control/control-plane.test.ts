import { describe, expect, it } from "vitest";
import { defaultLoopTimes } from "../../../../src/core/feedback/feedback-settings.js";
import { defaultProxies } from "../../../../src/policy/proxies/default-proxies.js";
import { defaultPushTimes } from "../../../../src/rpc/control/layer-pusher.js";
import { forgottenAfterMs } from "../../../../src/rpc/nodes/node-registry.js";
import {
  ControlRig,
  counterFamily,
  gaugeFamily,
  reportedService,
  type TestStream,
  testNode,
} from "../../../support/control-rig.js";
import { testSnapshot } from "../../../support/share-snapshots.js";

const { ttlMs, gapMs, refreshMs } = defaultPushTimes;
const { snapshotSpreadMs } = defaultLoopTimes;

/** What an Envoy lets in by itself: the law's largest limit, of which one proxy is expected. */
const configured = 1_000;

describe("ControlPlane", () => {
  it("says of an Envoy how much it may still let in", () => {
    const rig = new ControlRig();
    const metrics = rig.open("StreamMetrics");
    const gauge = gaugeFamily("cluster.orders.upstream_rq_active", 1);
    metrics.pushMetrics(testNode("edge-1"), [gauge]);
    const held = (): number | undefined => rig.plane.takeReports()[0]?.held;
    expect(held()).toBe(0);
    const layers = rig.subscribed("edge-1");
    expect(held()).toBe(configured);
    layers.acknowledge();
    rig.clock.advance(gapMs);
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares: { "edge-1": 8 } } }));
    expect(held()).toBe(configured);
    layers.acknowledge();
    expect(held()).toBe(8);
    layers.cancel();
    rig.clock.advance(ttlMs - 1);
    expect(held()).toBe(8);
    rig.clock.advance(1);
    expect(held()).toBe(configured);
  });

  it("tells Envoys which share of a room's visitors to turn away, whatever else it tells", () => {
    const rig = new ControlRig();
    const key = "headgate.waiting_room.sale.reject";
    rig.plane.useRooms(new Map([["sale", 45]]));
    const layers = rig.subscribed("edge-1");
    expect(layers.layers.at(-1)?.values).toMatchObject({ [key]: 45 });
    layers.acknowledge();
    rig.clock.advance(gapMs);
    rig.plane.useRooms(new Map([["sale", 45]]));
    expect(layers.layers).toHaveLength(1);
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares: { "edge-1": 8 } } }));
    expect(layers.layers.at(-1)?.values).toMatchObject({ [key]: 45 });
    layers.acknowledge();
    rig.clock.advance(gapMs);
    rig.plane.useRooms(new Map([["sale", 0]]));
    expect(layers.layers.at(-1)?.values).toMatchObject({ [key]: 0 });
  });

  it.each([
    ["is lost", (stream: TestStream) => stream.cancel()],
    ["is taken over", (_: TestStream, rig: ControlRig) => rig.subscribed("edge-1")],
  ])("counts what was on its way on a stream that %s until it has run out", (_, lose) => {
    const rig = new ControlRig();
    const share = (version: number, of: number) =>
      rig.plane.useSnapshot(testSnapshot(version, { orders: { shares: { "edge-1": of } } }));
    const held = (): number | undefined => rig.plane.takeReports()[0]?.held;
    share(1, 8);
    const layers = rig.subscribed("edge-1");
    layers.acknowledge();
    rig.clock.advance(gapMs);
    share(2, 5_000);
    expect(layers.layers).toHaveLength(2);
    share(3, 8);
    lose(layers, rig);
    rig.clock.advance(ttlMs - 1);
    expect(held()).toBe(5_000);
    rig.clock.advance(1);
    expect(held()).toBe(configured);
  });

  it("begins the flushes of a new stream anew", () => {
    const rig = new ControlRig();
    const push = (stream: TestStream, stampMs: number, ended: number): void => {
      const name = "cluster.orders.upstream_rq_completed";
      stream.pushMetrics(testNode("edge-1"), [counterFamily(name, ended, { stampMs })]);
    };
    const first = rig.open("StreamMetrics");
    push(first, 1_000, 0);
    push(first, 2_000, 10);
    expect(rig.plane.takeReports()).toMatchObject([{ rps: 10 }]);
    // What was counted while there was no stream is not about the time since the last flush.
    const second = rig.open("StreamMetrics");
    push(second, 30_000, 5_000);
    expect(rig.plane.takeReports()).toMatchObject([{ rps: 10 }]);
    push(second, 31_000, 7);
    expect(rig.plane.takeReports()).toMatchObject([{ rps: 7 }]);
  });

  it("tells of an Envoy that has its layer here and its numbers elsewhere, as of long ago", () => {
    const rig = new ControlRig();
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares: { "edge-1": 8 } } }));
    rig.subscribed("edge-1").acknowledge();
    expect(rig.plane.takeReports()).toEqual([
      {
        nodeId: "edge-1",
        service: "orders",
        atMs: rig.nowMs - forgottenAfterMs,
        inFlight: 0,
        rps: 0,
        latency: { count: 0, sumMs: 0 },
        errorCount: 0,
        dropCount: 0,
        overflowCount: 0,
        held: 8,
        heldAtMs: rig.nowMs,
      },
    ]);
    expect(rig.plane.lastReports).toHaveLength(1);
  });

  it("makes layers anew for another policy", () => {
    const rig = new ControlRig([]);
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares: { "edge-1": 8 } } }));
    const layers = rig.subscribed("edge-1");
    rig.plane.registry.noteUnclaimed("orders");
    rig.clock.advance(gapMs);
    rig.plane.usePolicy([reportedService("orders")]);
    expect(layers.layers.map(({ values }) => Object.keys(values).length)).toEqual([0, 2]);
    expect(rig.plane.registry.unclaimedClusters.size).toBe(0);
  });

  it("gives configured defaults back at once when no snapshot holds any more", () => {
    const rig = new ControlRig();
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares: { "edge-1": 8 } } }));
    const layers = rig.subscribed("edge-1");
    rig.clock.advance(gapMs);
    rig.plane.useSnapshot(undefined);
    expect(layers.layers.at(-1)).toMatchObject({ version: "0.0", values: {} });
  });

  it("names services of the loop that no Envoy spoke of", () => {
    const deaf = reportedService("deaf", {}, { feedback: [], sources: ["extProc"] });
    const rig = new ControlRig([reportedService("orders"), reportedService("carts"), deaf]);
    expect(rig.plane.unseenServices()).toEqual(["orders", "carts"]);
    const metrics = rig.open("StreamMetrics");
    const gauge = gaugeFamily("cluster.orders.upstream_rq_active", 1);
    metrics.pushMetrics(testNode("edge-1"), [gauge]);
    expect(rig.plane.unseenServices()).toEqual(["carts"]);
  });

  it("names services whose pins exclude each other", () => {
    const pinned = { feedback: ["adaptiveConcurrency"] } as const;
    const adaptiveConcurrency = {
      limitMax: 100,
      limitMin: 3,
      percentile: 90,
      updateMs: 100,
      minRtt: { kind: "fixed", ms: 20, bufferPercent: 25 },
    } as const;
    const rig = new ControlRig([
      reportedService("orders", { adaptiveConcurrency }, pinned),
      reportedService("carts", { adaptiveConcurrency }, pinned),
      reportedService("search", {}, pinned),
    ]);
    expect(rig.plane.contestedPins).toEqual(["orders", "carts"]);
    expect(rig.plane.unfixedPins).toEqual(["search"]);
  });

  it("does not name a service of which Envoys of other replicas have shares", () => {
    const rig = new ControlRig([reportedService("orders"), reportedService("carts")]);
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares: { "edge-9": 8 } } }));
    expect(rig.plane.unseenServices()).toEqual(["carts"]);
  });

  it("counts an Envoy without a layer at what the policy configures, at both priorities", () => {
    const service = reportedService("orders");
    const priority = { ...service.priority, default: "critical" } as const;
    const rig = new ControlRig([]);
    rig.plane.usePolicy([{ ...service, priority }], { ...defaultProxies, expectedCount: 8 });
    const metrics = rig.open("StreamMetrics");
    metrics.pushMetrics(testNode("edge-1"), [gaugeFamily("cluster.orders.upstream_rq_active", 1)]);
    rig.subscribed("edge-1");
    expect(rig.plane.takeReports()).toMatchObject([{ held: 2 * 125 }]);
  });

  it("counts as much for each of the clusters in which it has the service", () => {
    const rig = new ControlRig([reportedService("orders", { clusters: ["blue", "green"] })]);
    const metrics = rig.open("StreamMetrics");
    metrics.pushMetrics(testNode("edge-1"), [
      gaugeFamily("cluster.blue.upstream_rq_active", 1),
      gaugeFamily("cluster.green.upstream_rq_active", 1),
    ]);
    rig.subscribed("edge-1");
    expect(rig.plane.takeReports()).toMatchObject([{ held: 2 * configured }]);
  });

  it("says how much is in work at HIGH, by what the breaker there has left", () => {
    const rig = new ControlRig();
    const shares = { "edge-1": { default: 8, high: 6 } };
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares } }));
    const metrics = rig.open("StreamMetrics");
    const say = (active: number, left: number): void =>
      metrics.pushMetrics(testNode("edge-1"), [
        gaugeFamily("cluster.orders.upstream_rq_active", active),
        gaugeFamily("cluster.orders.circuit_breakers.high.remaining_rq", left),
      ]);
    const high = () => rig.plane.takeReports().map(({ highInFlight }) => highInFlight);
    say(5, 2);
    // Its layers come from elsewhere: nobody knows of how many two are left.
    expect(high()).toEqual([undefined]);
    const layers = rig.subscribed("edge-1");
    layers.acknowledge();
    say(5, 2);
    expect(high()).toEqual([4]);
    say(3, 1);
    expect(high()).toEqual([3]);
    // Its layer has run out: the breaker holds what is configured.
    layers.cancel();
    rig.clock.advance(ttlMs);
    rig.subscribed("edge-1");
    say(40, configured - 7);
    expect(high()).toEqual([7]);
  });

  describe("with a snapshot that nobody renews", () => {
    const key = "circuit_breakers.orders.default.max_requests";
    const use = (rig: ControlRig, of: number): void =>
      rig.plane.useSnapshot(testSnapshot(of, { orders: { shares: { "edge-1": of } } }), {
        madeAtMs: rig.nowMs,
      });

    it("renews what it gave, and has all of it end when nobody counts it any more", () => {
      const rig = new ControlRig();
      const madeAtMs = rig.nowMs;
      use(rig, 8);
      const stream = rig.subscribed("edge-1");
      stream.acknowledge();
      const untilMs: number[] = [];
      for (let i = 0; i <= 3; i += 1) {
        const last = stream.layers.at(-1);
        expect(last?.values).toMatchObject({ [key]: 8 });
        untilMs.push(rig.nowMs + (last?.ttlMs ?? Number.POSITIVE_INFINITY) - madeAtMs);
        stream.acknowledge();
        if (i < 3) rig.clock.advance(refreshMs);
      }
      expect(Math.max(...untilMs)).toBe(snapshotSpreadMs + ttlMs);
      expect(untilMs).toEqual([15_000, 17_000, 17_000, 17_000]);
      const held = (): number | undefined => rig.plane.takeReports()[0]?.held;
      rig.clock.advance(1_999);
      expect(held()).toBe(8);
      rig.clock.advance(1);
      expect(held()).toBe(configured);
    });

    it("gives none of it to an Envoy that comes over with a layer: it may have less", () => {
      const rig = new ControlRig();
      use(rig, 8);
      rig.clock.advance(snapshotSpreadMs);
      const early = rig.open("StreamRuntime");
      early.subscribe(testNode("edge-1"), ["headgate"], "1.1");
      expect(early.layers).toHaveLength(1);
      rig.clock.advance(1);
      const late = rig.open("StreamRuntime");
      late.subscribe(testNode("edge-1"), ["headgate"], "1.1");
      rig.clock.advance(refreshMs);
      expect(late.layers).toEqual([]);
      // Back at the store.
      use(rig, 3);
      expect(late.layers).toMatchObject([{ values: { [key]: 3 }, ttlMs }]);
    });

    it("gives none of it to an Envoy that has nothing: configured defaults hold", () => {
      const rig = new ControlRig();
      use(rig, 8);
      rig.clock.advance(snapshotSpreadMs + 1);
      const stream = rig.subscribed("edge-1");
      rig.clock.advance(refreshMs);
      expect(stream.layers.map(({ values }) => values)).toEqual([{}, {}]);
    });
  });
});
