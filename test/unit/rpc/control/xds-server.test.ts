import { describe, expect, it } from "vitest";
import { grpcStatuses } from "../../../../src/core/base/grpc-status.js";
import { defaultPushTimes } from "../../../../src/rpc/control/layer-pusher.js";
import {
  emptyAnswersMax,
  refusalWordsMax,
  updatesPerTurn,
} from "../../../../src/rpc/control/xds-server.js";
import { introductionMsMax } from "../../../../src/rpc/nodes/control-stream.js";
import { unacknowledgedMax } from "../../../../src/rpc/nodes/layer-ledger.js";
import { nodeIdCharsMax } from "../../../../src/rpc/nodes/node-identity.js";
import { ControlRig, type TestStream, testNode } from "../../../support/control-rig.js";
import { testSnapshot } from "../../../support/share-snapshots.js";

const { ttlMs, refreshMs, gapMs, unacknowledgedMsMax } = defaultPushTimes;
const key = "circuit_breakers.orders.default.max_requests";
const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

function share(version: number, of: number) {
  return testSnapshot(version, { orders: { shares: { "edge-1": of } } });
}

/** The shares that a stream was sent, in order; undefined: a layer without one. */
function sharesOf(stream: TestStream): readonly unknown[] {
  return stream.layers.map(({ values }) => values[key]);
}

describe.each(["StreamRuntime", "StreamAggregatedResources"] as const)("%s", (method) => {
  it("answers a subscription with the layer, which ends by itself", () => {
    const rig = new ControlRig();
    rig.plane.useSnapshot(share(3, 12));
    const stream = rig.open(method);
    stream.subscribe(testNode("edge-1"));
    expect(stream.layers).toMatchObject([
      { name: "headgate", version: "1.3", values: { [key]: 12 }, ttlMs },
    ]);
    expect(stream.nextCount).toBe(1);
  });

  it("answers with an empty layer where there is no snapshot, or none of this Envoy", () => {
    const rig = new ControlRig();
    const stream = rig.subscribed("edge-1");
    expect(stream.layers).toMatchObject([{ version: "0.0", values: {}, ttlMs }]);
    rig.plane.useSnapshot(share(1, 12));
    const other = rig.open(method);
    other.subscribe(testNode("edge-2"));
    expect(other.layers).toMatchObject([{ version: "1.1", values: {} }]);
  });
});

describe("XdsServer", () => {
  it("tells a large fleet some a turn, who waits the longest first", () => {
    const rig = new ControlRig();
    const ids = Array.from({ length: 3 * updatesPerTurn }, (_, i) => `edge-${i}`);
    const streams = ids.map((id) => rig.subscribed(id));
    const reportedCount = (version: string): number =>
      streams.filter((one) => one.layers.some((layer) => layer.version === version)).length;
    const useSnapshot = (version: number): void => {
      const shares = Object.fromEntries(ids.map((id) => [id, version]));
      rig.plane.useSnapshot(testSnapshot(version, { orders: { shares } }));
    };
    rig.clock.advance(gapMs);
    useSnapshot(1);
    useSnapshot(2);
    expect(["1.1", "1.2"].map(reportedCount)).toEqual([updatesPerTurn, updatesPerTurn]);
    rig.clock.runTurns();
    expect(reportedCount("1.2")).toBe(ids.length - updatesPerTurn);
    rig.clock.advance(gapMs);
    expect(reportedCount("1.2")).toBe(ids.length);
    useSnapshot(3);
    streams.at(-1)?.cancel();
    rig.clock.advance(gapMs);
    expect(reportedCount("1.3")).toBe(ids.length - 1);
  });

  it("sends a changed layer at once, and an unchanged one again, whole, before it ends", () => {
    const rig = new ControlRig();
    const stream = rig.subscribed("edge-1");
    rig.clock.advance(1_000);
    rig.plane.useSnapshot(share(1, 12));
    expect(sharesOf(stream)).toEqual([undefined, 12]);
    stream.acknowledge();
    rig.plane.useSnapshot(share(2, 12));
    expect(stream.layers).toHaveLength(2);
    rig.clock.advance(refreshMs - 1);
    expect(stream.layers).toHaveLength(2);
    rig.clock.advance(1);
    expect(stream.layers).toHaveLength(3);
    expect(stream.layers[2]).toMatchObject({ version: "1.2", values: { [key]: 12 } });
  });

  it("leaves an Envoy the layer that it has, until there is a snapshot", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamRuntime");
    stream.subscribe(testNode("edge-1"), ["headgate"], "4.7");
    rig.clock.advance(3 * refreshMs);
    expect(stream.layers).toHaveLength(0);
    expect(stream.status).toBeUndefined();
    rig.plane.useSnapshot(undefined);
    expect(stream.layers).toHaveLength(0);
    rig.plane.useSnapshot(share(8, 12));
    expect(stream.layers).toMatchObject([{ version: "1.8", values: { [key]: 12 } }]);
    // One that is lost later sets it free at once.
    stream.acknowledge();
    rig.clock.advance(gapMs);
    rig.plane.useSnapshot(undefined);
    expect(sharesOf(stream)).toEqual([12, undefined]);
  });

  it("keeps the layer alive, and leaves out a service that the snapshot no longer has", () => {
    const rig = new ControlRig();
    rig.plane.useSnapshot(share(1, 12));
    const stream = rig.subscribed("edge-1");
    stream.acknowledge();
    rig.clock.advance(1_000);
    rig.plane.useSnapshot(testSnapshot(2, {}));
    expect(sharesOf(stream)).toEqual([12, undefined]);
    stream.acknowledge();
    rig.clock.advance(refreshMs);
    expect(stream.layers).toHaveLength(3);
    expect(stream.layers[2]?.values).toEqual({});
  });

  it("sends ten layers a second at most, and always the newest in the end", () => {
    const rig = new ControlRig();
    const stream = rig.subscribed("edge-1");
    for (let version = 1; version <= 1_000; version += 1) {
      rig.plane.useSnapshot(share(version, version));
      rig.clock.advance(1);
      stream.acknowledge();
    }
    expect(stream.layers.length).toBeLessThanOrEqual(11);
    expect(stream.layers.length).toBeGreaterThanOrEqual(10);
    rig.clock.advance(gapMs);
    expect(sharesOf(stream).at(-1)).toBe(1_000);
  });

  it("keeps the pace of an Envoy that comes back at once", () => {
    const rig = new ControlRig();
    rig.subscribed("edge-1").cancel();
    const again = rig.subscribed("edge-1");
    expect(again.layers).toHaveLength(0);
    rig.clock.advance(gapMs);
    expect(again.layers).toHaveLength(1);
  });

  it("follows what each answer says of the layer", () => {
    const rig = new ControlRig();
    rig.plane.useSnapshot(share(1, 5));
    const stream = rig.subscribed("edge-1");
    const [node] = rig.plane.registry.nodes;
    stream.acknowledge();
    expect(node?.ledger.acknowledgedLayer?.version).toBe("1.1");
    rig.clock.advance(gapMs);
    rig.plane.useSnapshot(share(2, 6));
    stream.refuse("x".repeat(refusalWordsMax + 1));
    expect(node?.ledger.acknowledgedLayer?.version).toBe("1.1");
    expect(node?.refusal).toBe("x".repeat(refusalWordsMax));
    rig.clock.advance(refreshMs);
    stream.acknowledge();
    expect(node?.ledger.acknowledgedLayer?.version).toBe("1.2");
    expect(node?.refusal).toBeUndefined();
    stream.acknowledge("of-nobody");
    const { pushCount, acknowledgedCount, refusedCount, strayCount } = rig.plane.counts;
    expect({ pushCount, acknowledgedCount, refusedCount, strayCount }).toEqual({
      pushCount: 3,
      acknowledgedCount: 2,
      refusedCount: 1,
      strayCount: 1,
    });
  });

  it("waits for an Envoy that does not read, and then sends what holds by then", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamRuntime");
    stream.isReading = false;
    stream.subscribe(testNode("edge-1"));
    for (let version = 1; version <= 5; version += 1) {
      rig.plane.useSnapshot(share(version, version));
      rig.clock.advance(1_000);
    }
    expect(stream.layers).toHaveLength(1);
    stream.drain();
    expect(sharesOf(stream)).toEqual([undefined, 5]);
  });

  it.each([
    { reads: true, name: "acknowledges nothing" },
    { reads: false, name: "does not even read" },
  ])("ends the stream of an Envoy that $name", ({ reads }) => {
    const rig = new ControlRig();
    const stream = rig.open("StreamRuntime");
    stream.isReading = reads;
    stream.subscribe(testNode("edge-1"));
    rig.clock.advance(unacknowledgedMsMax);
    expect(stream.status).toBeUndefined();
    rig.clock.advance(refreshMs);
    expect(stream.status).toBe(grpcStatuses.deadlineExceeded);
    expect(rig.clock.timerCount).toBe(0);
  });

  it("sends nothing more to an Envoy that has so many layers to acknowledge", () => {
    const rig = new ControlRig();
    const stream = rig.subscribed("edge-1");
    for (let version = 1; version <= 2 * unacknowledgedMax; version += 1) {
      rig.plane.useSnapshot(share(version, version));
      rig.clock.advance(gapMs);
    }
    expect(stream.layers).toHaveLength(unacknowledgedMax);
    stream.acknowledge();
    rig.clock.advance(refreshMs);
    expect(sharesOf(stream).at(-1)).toBe(2 * unacknowledgedMax);
  });

  it("answers other layers empty, once, so that nobody waits for them", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamAggregatedResources");
    stream.subscribe(testNode("edge-1"), ["other", "headgate"]);
    expect(stream.layers.map(({ name, ttlMs: ttl }) => [name, ttl])).toEqual([
      ["headgate", ttlMs],
      ["other", undefined],
    ]);
    stream.subscribe(undefined, ["other", "headgate", "third"]);
    expect(stream.layers.slice(2).map(({ name }) => name)).toEqual(["third"]);
    rig.clock.advance(refreshMs);
    expect(stream.layers.slice(3).map(({ name }) => name)).toEqual(["headgate"]);
    const foreign = rig.open("StreamRuntime");
    foreign.subscribe(testNode("edge-2"), ["other"]);
    foreign.subscribe(undefined, ["other"]);
    expect(foreign.layers.map(({ name }) => name)).toEqual(["other"]);
    rig.clock.advance(2 * refreshMs);
    expect(foreign.layers).toHaveLength(1);
  });

  it("stops when the layer is no longer asked for, and begins again when it is", () => {
    const rig = new ControlRig();
    const stream = rig.subscribed("edge-1");
    const [node] = rig.plane.registry.nodes;
    expect(node?.claims.has("layers")).toBe(true);
    stream.subscribe(undefined, []);
    expect(node?.claims.has("layers")).toBe(false);
    rig.clock.advance(2 * refreshMs);
    expect(stream.layers).toHaveLength(1);
    expect(rig.clock.timerCount).toBe(0);
    stream.subscribe(undefined);
    expect(stream.layers).toHaveLength(2);
  });

  it("answers a type that it does not know empty, once", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamAggregatedResources");
    stream.discover({ node: testNode("edge-1"), typeUrl: clusterType });
    stream.discover({ typeUrl: clusterType });
    const [response] = stream.responses;
    expect(stream.responses).toMatchObject([{ typeUrl: clusterType, resources: [] }]);
    const nonce = response?.nonce ?? "";
    stream.discover({ typeUrl: clusterType, versionInfo: "0.0", responseNonce: nonce });
    expect(stream.responses).toHaveLength(1);
  });

  it("takes nothing away from an Envoy that has something of such a type", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamAggregatedResources");
    const versionInfo = "of another server";
    stream.discover({ node: testNode("edge-1"), typeUrl: clusterType, versionInfo });
    expect(stream.responses).toHaveLength(0);
  });

  it("answers so many types and layers empty, and no more", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamAggregatedResources");
    for (let i = 0; i < 2 * emptyAnswersMax; i += 1) {
      stream.discover({ node: testNode("edge-1"), typeUrl: `type.googleapis.com/t${i}` });
    }
    expect(stream.responses).toHaveLength(emptyAnswersMax);
  });
});

describe("a stream's node", () => {
  it.each([
    ["is missing", undefined, "node_without_id"],
    ["has no id", testNode(""), "node_without_id"],
    ["has too long an id", testNode("x".repeat(nodeIdCharsMax + 1)), "node_id_too_long"],
  ] as const)("%s: the stream ends", (_, node, fault) => {
    const rig = new ControlRig();
    const stream = rig.open("StreamRuntime");
    stream.subscribe(node);
    expect(stream.status).toBe(grpcStatuses.invalidArgument);
    expect(rig.plane.counts.faults.get(fault)).toBe(1);
    expect(rig.plane.registry.nodeCount).toBe(0);
  });

  it("has an id as long as it may be", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamRuntime");
    stream.subscribe(testNode("x".repeat(nodeIdCharsMax)));
    expect(stream.layers).toHaveLength(1);
  });

  it("may be repeated, and must not change", () => {
    const rig = new ControlRig();
    const stream = rig.subscribed("edge-1");
    stream.subscribe(testNode("edge-1"));
    expect(stream.status).toBeUndefined();
    stream.subscribe(testNode("edge-2"));
    expect(stream.status).toBe(grpcStatuses.invalidArgument);
    expect(rig.plane.counts.faults.get("node_id_changed")).toBe(1);
    expect(rig.clock.timerCount).toBe(0);
  });

  it("is waited for so long", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamAggregatedResources");
    rig.clock.advance(introductionMsMax - 1);
    expect(stream.status).toBeUndefined();
    rig.clock.advance(1);
    expect(stream.status).toBe(grpcStatuses.deadlineExceeded);
  });

  it("has one stream of layers: the newest, for the older may be lost", () => {
    const rig = new ControlRig();
    const first = rig.subscribed("edge-1");
    const second = rig.subscribed("edge-1");
    expect(first.status).toBe(grpcStatuses.unavailable);
    expect(rig.plane.counts.faults.get("taken_over")).toBe(1);
    rig.clock.advance(gapMs);
    expect(second.layers).toHaveLength(1);
    expect(rig.plane.registry.nodeCount).toBe(1);
    rig.clock.advance(refreshMs);
    expect(first.layers).toHaveLength(1);
    expect(second.layers).toHaveLength(2);
  });
});

describe("a stream", () => {
  it.each([
    ["ends", (stream: TestStream) => stream.halfClose()],
    ["is reset", (stream: TestStream) => stream.cancel()],
  ])("that %s leaves nothing that runs", (_, leave) => {
    const rig = new ControlRig();
    const stream = rig.subscribed("edge-1");
    leave(stream);
    expect(stream.status).toBe(0);
    expect(rig.clock.timerCount).toBe(0);
    expect(rig.plane.counts.openStreams.get("rtds")).toBe(0);
    rig.plane.useSnapshot(share(1, 5));
    expect(stream.layers).toHaveLength(1);
  });

  it("that sends what is no message ends", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamRuntime");
    stream.bytes(Buffer.from("no message"));
    expect(stream.status).toBe(grpcStatuses.invalidArgument);
    expect(rig.plane.counts.faults.get("unreadable")).toBe(1);
  });

  it("ends with the server, so that its Envoy finds another one", () => {
    const rig = new ControlRig();
    const streams = [rig.subscribed("edge-1"), rig.open("StreamMetrics")];
    rig.plane.close();
    expect(streams.map(({ status }) => status)).toEqual([
      grpcStatuses.unavailable,
      grpcStatuses.unavailable,
    ]);
    expect(rig.clock.timerCount).toBe(0);
  });
});
