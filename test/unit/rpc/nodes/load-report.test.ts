import { describe, expect, it } from "vitest";
import { grpcStatuses } from "../../../../src/core/base/grpc-status.js";
import { metricsFreshMs } from "../../../../src/rpc/nodes/cluster-signals.js";
import { loadReportSeconds } from "../../../../src/rpc/nodes/load-report.js";
import {
  ControlRig,
  gaugeFamily,
  reportedService,
  testNode,
} from "../../../support/control-rig.js";

function locality(inFlight: number, success: number, errors: number) {
  return {
    totalRequestsInProgress: BigInt(inFlight),
    totalSuccessfulRequests: BigInt(success),
    totalErrorRequests: BigInt(errors),
  };
}

function statsOf(
  clusterName: string,
  localities: readonly ReturnType<typeof locality>[],
  dropped = 0,
) {
  return {
    clusterName,
    upstreamLocalityStats: [...localities],
    totalDroppedRequests: BigInt(dropped),
    loadReportInterval: { seconds: 1n, nanos: 0 },
  };
}

describe("the load reporting service", () => {
  it("asks once for all clusters and each second, and takes what comes", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamLoadStats");
    stream.reportLoad({ node: testNode("edge-1") });
    expect(stream.loadAsks).toMatchObject([
      {
        sendAllClusters: true,
        loadReportingInterval: { seconds: BigInt(loadReportSeconds) },
        reportEndpointGranularity: false,
      },
    ]);
    const localities = [locality(3, 10, 0), locality(4, 20, 7)];
    stream.reportLoad({ clusterStats: [statsOf("orders", localities, 5)] });
    expect(stream.sent).toHaveLength(1);
    expect(rig.plane.takeReports()).toEqual([
      {
        nodeId: "edge-1",
        service: "orders",
        atMs: rig.nowMs,
        inFlight: 7,
        rps: 32,
        latency: { count: 0, sumMs: 0 },
        errorCount: 2,
        dropCount: 5,
        overflowCount: 5,
        held: 0,
        heldAtMs: rig.nowMs,
      },
    ]);
  });

  it("asks for fewer while statistics speak of the same clusters", () => {
    const upstream = { address: "orders.shop", port: 80 };
    const rig = new ControlRig([reportedService("orders", { upstream })]);
    const statistics = rig.open("StreamMetrics");
    const active = gaugeFamily("cluster.orders.upstream_rq_active", 1);
    const stream = rig.open("StreamLoadStats");
    const report = (...clusters: readonly string[]): readonly (bigint | undefined)[] => {
      stream.reportLoad({ clusterStats: clusters.map((one) => statsOf(one, [locality(1, 1, 0)])) });
      return stream.loadAsks.map(({ loadReportingInterval }) => loadReportingInterval?.seconds);
    };
    stream.reportLoad({ node: testNode("edge-1") });
    expect(report("orders")).toEqual([1n]);
    statistics.pushMetrics(testNode("edge-1"), [active]);
    expect(report("orders")).toEqual([1n, 5n]);
    expect(report()).toEqual([1n, 5n]);
    stream.reportLoad({ clusterStats: [statsOf("outbound|80||orders.shop", [])] });
    rig.clock.advance(metricsFreshMs);
    expect(report("orders")).toEqual([1n, 5n]);
    // Of an unknown cluster nobody reads either.
    expect(report("orders", "nobody's")).toEqual([1n, 5n]);
    expect(report("orders", "outbound|80||orders.shop")).toEqual([1n, 5n, 1n]);
    statistics.pushMetrics(testNode("edge-1"), [active]);
    expect(report("orders")).toEqual([1n, 5n, 1n, 5n]);
    rig.clock.advance(metricsFreshMs + 1);
    expect(report("orders")).toEqual([1n, 5n, 1n, 5n, 1n]);
  });

  it("says whose an Envoy is by its certificate alone", () => {
    const rig = new ControlRig();
    const names = ["spiffe://shop.example/ns/a/sa/edge"];
    const peer = { kind: "certificate", identity: "uri:edge", names } as const;
    const first = rig.open("StreamLoadStats", peer);
    const second = rig.open("StreamLoadStats", {
      kind: "address",
      identity: "10.0.0.1",
      names: [],
    });
    first.reportLoad({ node: testNode("edge-1") });
    second.reportLoad({ node: testNode("edge-2") });
    for (const stream of [first, second]) {
      stream.reportLoad({ clusterStats: [statsOf("orders", [locality(3, 10, 0)])] });
    }
    expect(rig.plane.takeReports().map(({ owner }) => owner)).toEqual(["uri:edge", undefined]);
  });

  it("has nothing in work where a report leaves a cluster out", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamLoadStats");
    stream.reportLoad({ node: testNode("edge-1") });
    stream.reportLoad({ clusterStats: [statsOf("orders", [locality(3, 10, 0)])] });
    rig.plane.takeReports();
    rig.clock.advance(1_000);
    stream.reportLoad({});
    expect(rig.plane.takeReports()).toMatchObject([{ inFlight: 0, rps: 0, atMs: rig.nowMs }]);
  });

  it("names clusters that lead to no service, and clusters of two", () => {
    const upstream = { address: "orders.shop", port: 80 };
    const services = ["orders", "carts"].map((name) => reportedService(name, { upstream }));
    const rig = new ControlRig(services);
    const stream = rig.open("StreamLoadStats");
    stream.reportLoad({ node: testNode("edge-1") });
    const names = ["control", "outbound|80||orders.shop"];
    stream.reportLoad({ clusterStats: names.map((name) => statsOf(name, [])) });
    expect([...rig.plane.registry.unclaimedClusters]).toEqual(names);
    expect(rig.plane.takeReports()).toEqual([]);
    expect([...rig.plane.contestedClusters.keys()]).toEqual(["outbound|80||orders.shop"]);
    expect(rig.plane.unseenServices()).toEqual(["orders", "carts"]);
  });

  it("ends a stream that sends what is no message, or says not whose it is", () => {
    const rig = new ControlRig();
    const garbled = rig.open("StreamLoadStats");
    garbled.bytes(Buffer.from("no message"));
    expect(garbled.status).toBe(grpcStatuses.invalidArgument);
    const nameless = rig.open("StreamLoadStats");
    nameless.reportLoad({});
    expect(nameless.status).toBe(grpcStatuses.invalidArgument);
    expect(nameless.sent).toEqual([]);
  });

  it("ends with its Envoy", () => {
    const rig = new ControlRig();
    for (const leave of ["halfClose", "cancel"] as const) {
      const stream = rig.open("StreamLoadStats");
      stream.reportLoad({ node: testNode("edge-1") });
      stream.drain();
      stream[leave]();
      expect(stream.status).toBe(0);
    }
    expect(rig.plane.counts.openStreams.get("load_stats")).toBe(0);
  });
});
