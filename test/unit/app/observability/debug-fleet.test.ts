import { describe, expect, it } from "vitest";
import { controlMetrics } from "../../../../src/app/metrics/control-port-metrics.js";
import { renderFleet, shownNodesMax } from "../../../../src/app/observability/debug-fleet.js";
import {
  ControlRig,
  gaugeFamily,
  reportedService,
  testNode,
} from "../../../support/control-rig.js";
import { testSnapshot } from "../../../support/share-snapshots.js";

/** The page, as whoever reads it gets it. */
function pageOf(rig: ControlRig, nodeId?: string) {
  const page = renderFleet({ plane: rig.plane, nowMs: () => rig.nowMs }, nodeId);
  return JSON.parse(JSON.stringify(page));
}

describe("renderFleet()", () => {
  it("says of an Envoy what it was sent, has taken and may let in, and what it did", () => {
    const rig = new ControlRig([reportedService("orders"), reportedService("carts")]);
    rig.plane.useSnapshot(testSnapshot(1, { orders: { shares: { "edge-1": 8 } } }, 3));
    const layers = rig.subscribed("edge-1");
    layers.acknowledge();
    const metrics = rig.open("StreamMetrics");
    metrics.pushMetrics(testNode("edge-1"), [
      gaugeFamily("cluster.orders.upstream_rq_active", 5),
      gaugeFamily("cluster.control.upstream_rq_active", 1),
    ]);
    rig.clock.advance(1_000);
    rig.plane.useSnapshot(testSnapshot(2, { orders: { shares: { "edge-1": 9 } } }, 3));
    rig.plane.takeReports();
    const page = pageOf(rig);
    expect(page).toMatchObject({ snapshot: { term: 3, version: 2 }, nodeCount: 1 });
    expect(page.problems).toMatchObject({
      servicesWithoutCluster: ["carts"],
      clustersWithoutService: ["control"],
    });
    expect(page.nodes).toMatchObject([
      {
        id: "edge-1",
        heardSecondsAgo: 1,
        streams: ["layers", "metrics"],
        problems: [],
        layer: { sentVersion: "3.2", acknowledgedVersion: "3.1", sentSecondsAgo: 0 },
        clusters: { orders: { heardSecondsAgo: 1 } },
        services: {
          orders: {
            sentShare: 9,
            acknowledgedShare: 8,
            heldShare: 9,
            reportSecondsAgo: 1,
            inFlight: 5,
          },
        },
      },
    ]);
  });

  it("shows so many Envoys, and says how many there are", () => {
    const rig = new ControlRig();
    for (let i = 0; i <= shownNodesMax; i += 1) rig.subscribed(`edge-${i}`);
    const page = pageOf(rig);
    expect(page.nodes).toHaveLength(shownNodesMax);
    expect(page.nodeCount).toBe(shownNodesMax + 1);
  });

  it("shows the one that is asked for, wherever it stands", () => {
    const rig = new ControlRig();
    for (let i = 0; i <= shownNodesMax; i += 1) rig.subscribed(`edge-${i}`);
    expect(pageOf(rig, `edge-${shownNodesMax}`).nodes).toMatchObject([
      { id: `edge-${shownNodesMax}` },
    ]);
    expect(pageOf(rig, "nobody").nodes).toEqual([]);
  });

  it("says why a layer was refused", () => {
    const rig = new ControlRig();
    const layers = rig.subscribed("edge-1");
    layers.refuse("no such layer");
    expect(pageOf(rig).nodes).toMatchObject([
      { problems: ["layer_refused"], refusal: "no such layer" },
    ]);
  });

  it("names all that is wrong, as a metric counts it", () => {
    const shared = { clusters: ["both"] };
    const rig = new ControlRig([
      reportedService("orders", shared),
      reportedService("carts", shared),
      reportedService("search", {}, { feedback: ["adaptiveConcurrency"] }),
    ]);
    rig.subscribed("old").cancel();
    rig.open("StreamRuntime").subscribe(testNode("old", [1, 20]));
    rig.open("StreamRuntime").subscribe(testNode(""));
    const page = pageOf(rig);
    expect(page.problems).toEqual({
      servicesWithoutCluster: ["orders", "carts", "search"],
      clustersOfSeveralServices: { both: ["orders", "carts"] },
      servicesWithContestedPins: [],
      servicesWithUnfixedPins: ["search"],
      clustersWithoutService: [],
      failedStreams: { node_without_id: 1 },
    });
    expect(page.nodes).toMatchObject([{ id: "old", problems: ["other_version"] }]);
    const { gauges = [], counters = [] } = controlMetrics({
      plane: rig.plane,
      nowMs: () => rig.nowMs,
    });
    const valuesOf = (name: string): Readonly<Record<string, number>> => {
      const values: Record<string, number> = {};
      const metric = [...gauges, ...counters].find((one) => one.name === name);
      metric?.read((value, labels = {}) => {
        if (value > 0) values[Object.values(labels).join()] = value;
      });
      return values;
    };
    expect(valuesOf("headgate_control_service_problems")).toEqual({
      no_cluster: 3,
      cluster_of_two: 1,
      pin_without_fixed_rtt: 1,
    });
    expect(valuesOf("headgate_control_node_problems")).toEqual({ other_version: 1 });
    expect(valuesOf("headgate_control_failed_streams_total")).toEqual({ node_without_id: 1 });
  });
});
