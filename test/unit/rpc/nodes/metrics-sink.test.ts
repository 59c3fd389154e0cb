import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { grpcStatuses } from "../../../../src/core/base/grpc-status.js";
import * as metricsService from "../../../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import {
  ControlRig,
  counterFamily,
  gaugeFamily,
  histogramFamily,
  reportedService,
  testNode,
} from "../../../support/control-rig.js";

const { StreamMetricsResponseSchema } = metricsService;

describe("the metrics service", () => {
  it("makes a report of what was pushed", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamMetrics");
    stream.pushMetrics(testNode("edge-1"), [
      counterFamily("cluster.orders.upstream_rq_completed", 0, { stampMs: 1_000 }),
    ]);
    stream.pushMetrics(undefined, [
      counterFamily("cluster.orders.upstream_rq_completed", 30, { stampMs: 2_000 }),
      counterFamily("cluster.orders.upstream_rq_5xx", 12, { stampMs: 2_000 }),
      counterFamily("cluster.orders.upstream_rq_active_overflow", 10, { stampMs: 2_000 }),
      gaugeFamily("cluster.orders.upstream_rq_active", 6, { stampMs: 2_000 }),
      histogramFamily(
        "cluster.orders.upstream_rq_time",
        { 10: 10, 25: 10 },
        { sumMs: 300, stampMs: 2_000 },
      ),
    ]);
    expect(rig.plane.takeReports()).toEqual([
      {
        nodeId: "edge-1",
        service: "orders",
        atMs: rig.nowMs,
        inFlight: 6,
        rps: 20,
        latency: { count: 20, sumMs: 300, p50: 10 },
        errorCount: 2,
        dropCount: 10,
        overflowCount: 10,
        held: 0,
        heldAtMs: rig.nowMs,
      },
    ]);
  });

  it("keeps latencies back from a law that does not listen to statistics", () => {
    const rig = new ControlRig([reportedService("orders", {}, { sources: ["extProc"] })]);
    const stream = rig.open("StreamMetrics");
    stream.pushMetrics(testNode("edge-1"), [
      gaugeFamily("cluster.orders.upstream_rq_active", 6),
      histogramFamily("cluster.orders.upstream_rq_time", { 10: 10 }, { sumMs: 50 }),
    ]);
    expect(rig.plane.takeReports()).toMatchObject([
      { inFlight: 6, latency: { count: 0, sumMs: 0 } },
    ]);
  });

  it("names clusters without a service, and not what only looks like one", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamMetrics");
    stream.pushMetrics(testNode("edge-1"), [
      gaugeFamily("cluster.control.upstream_rq_active", 1),
      counterFamily("cluster.orders.external.upstream_rq_completed", 1),
    ]);
    expect([...rig.plane.registry.unclaimedClusters]).toEqual(["control"]);
    expect(rig.plane.takeReports()).toEqual([]);
  });

  it("answers an Envoy that has no more to push", () => {
    const rig = new ControlRig();
    const stream = rig.open("StreamMetrics");
    stream.pushMetrics(testNode("edge-1"), []);
    stream.halfClose();
    expect(stream.sent.map((bytes) => fromBinary(StreamMetricsResponseSchema, bytes))).toHaveLength(
      1,
    );
    expect(stream.status).toBe(0);
  });

  it("ends a stream that sends what is no message, or says not whose it is", () => {
    const rig = new ControlRig();
    const garbled = rig.open("StreamMetrics");
    garbled.bytes(Buffer.from("no message"));
    expect(garbled.status).toBe(grpcStatuses.invalidArgument);
    const nameless = rig.open("StreamMetrics");
    nameless.pushMetrics(undefined, [gaugeFamily("cluster.orders.upstream_rq_active", 1)]);
    expect(nameless.status).toBe(grpcStatuses.invalidArgument);
    nameless.cancel();
    expect(rig.plane.takeReports()).toEqual([]);
  });
});
