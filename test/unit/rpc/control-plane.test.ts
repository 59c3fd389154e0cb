import { describe, expect, it } from "vitest";
import { envoyShareDefault } from "../../../src/core/feedback-settings.js";
import { defaultPushTimes } from "../../../src/rpc/layer-pusher.js";
import { forgottenAfterMs } from "../../../src/rpc/node-registry.js";
import {
  ControlRig,
  counterFamily,
  gaugeFamily,
  type TestStream,
  testNode,
  toldService,
} from "../../support/control-rig.js";
import { testSheet } from "../../support/share-sheets.js";

const { ttlMs, gapMs } = defaultPushTimes;

describe("ControlPlane", () => {
  it("says of an Envoy how much it may still let in", () => {
    const rig = new ControlRig();
    const metrics = rig.open("StreamMetrics");
    const gauge = gaugeFamily("cluster.orders.upstream_rq_active", 1);
    metrics.pushMetrics(testNode("edge-1"), [gauge]);
    const held = (): number | undefined => rig.plane.takeReports()[0]?.held;
    expect(held()).toBe(0);
    const layers = rig.subscribed("edge-1");
    expect(held()).toBe(envoyShareDefault);
    layers.acknowledge();
    rig.clock.advance(gapMs);
    rig.plane.useSheet(testSheet(1, { orders: { shares: { "edge-1": 8 } } }));
    expect(held()).toBe(envoyShareDefault);
    layers.acknowledge();
    expect(held()).toBe(8);
    layers.cancel();
    rig.clock.advance(ttlMs - 1);
    expect(held()).toBe(8);
    rig.clock.advance(1);
    expect(held()).toBe(envoyShareDefault);
  });

  it.each([
    ["is lost", (stream: TestStream) => stream.cancel()],
    ["is taken over", (_: TestStream, rig: ControlRig) => rig.subscribed("edge-1")],
  ])("counts what was on its way on a stream that %s until it has run out", (_, lose) => {
    const rig = new ControlRig();
    const share = (version: number, of: number) =>
      rig.plane.useSheet(testSheet(version, { orders: { shares: { "edge-1": of } } }));
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
    expect(held()).toBe(envoyShareDefault);
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
    rig.plane.useSheet(testSheet(1, { orders: { shares: { "edge-1": 8 } } }));
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
    rig.plane.useSheet(testSheet(1, { orders: { shares: { "edge-1": 8 } } }));
    const layers = rig.subscribed("edge-1");
    rig.plane.registry.noteUnclaimed("orders");
    rig.clock.advance(gapMs);
    rig.plane.usePolicy([toldService("orders")]);
    expect(layers.layers.map(({ values }) => Object.keys(values).length)).toEqual([0, 2]);
    expect(rig.plane.registry.unclaimedClusters.size).toBe(0);
  });

  it("gives configured defaults back at once when no sheet holds any more", () => {
    const rig = new ControlRig();
    rig.plane.useSheet(testSheet(1, { orders: { shares: { "edge-1": 8 } } }));
    const layers = rig.subscribed("edge-1");
    rig.clock.advance(gapMs);
    rig.plane.useSheet(undefined);
    expect(layers.layers.at(-1)).toMatchObject({ version: "0.0", values: {} });
  });

  it("names services of the loop that no Envoy spoke of", () => {
    const deaf = toldService("deaf", {}, { feedback: [], sources: ["extProc"] });
    const rig = new ControlRig([toldService("orders"), toldService("carts"), deaf]);
    expect(rig.plane.unseenServices()).toEqual(["orders", "carts"]);
    const metrics = rig.open("StreamMetrics");
    const gauge = gaugeFamily("cluster.orders.upstream_rq_active", 1);
    metrics.pushMetrics(testNode("edge-1"), [gauge]);
    expect(rig.plane.unseenServices()).toEqual(["carts"]);
  });

  it("names services whose pins exclude each other", () => {
    const pinned = { feedback: ["adaptiveConcurrency"] } as const;
    const rig = new ControlRig([
      toldService("orders", {}, pinned),
      toldService("carts", {}, pinned),
    ]);
    expect(rig.plane.contestedPins).toEqual(["orders", "carts"]);
  });
});
