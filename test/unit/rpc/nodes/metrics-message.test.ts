import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import * as metricsService from "../../../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import {
  bucketsMax,
  type MetricSample,
  MetricsDecoder,
} from "../../../../src/rpc/nodes/metrics-message.js";
import {
  counterFamily,
  gaugeFamily,
  histogramFamily,
  summaryFamily,
  testNode,
} from "../../../support/control-rig.js";

const { StreamMetricsMessageSchema } = metricsService;

type Families = Parameters<typeof encode>[0];

/** One for all tests, as one is for all streams. */
const decoder = new MetricsDecoder();

function encode(
  envoyMetrics: ReturnType<typeof counterFamily>[],
  node?: ReturnType<typeof testNode>,
): Uint8Array {
  const identifier = node && { identifier: { node } };
  const init = { ...identifier, envoyMetrics };
  return toBinary(StreamMetricsMessageSchema, create(StreamMetricsMessageSchema, init));
}

function samplesOf(...families: Families): readonly MetricSample[] {
  return decoder.decode(encode(families)).samples;
}

describe("MetricsDecoder", () => {
  it("reads what a breaker at HIGH has left, and none at DEFAULT", () => {
    const name = (priority: string, cluster = "orders.") =>
      `cluster.${cluster}circuit_breakers.${priority}.remaining_rq`;
    const labels = { "envoy.cluster_name": "orders" };
    const expected = { kind: "highRemaining", cluster: "orders", value: 7, stampMs: 0 };
    expect(samplesOf(gaugeFamily(name("high"), 7))).toEqual([expected]);
    expect(samplesOf(gaugeFamily(name("high", ""), 7, { labels }))).toEqual([expected]);
    expect(samplesOf(gaugeFamily(name("default"), 7))).toEqual([]);
  });

  it("reads who sends it, where that is said", () => {
    expect(decoder.decode(encode([], testNode("edge-1"))).node).toEqual({
      id: "edge-1",
      cluster: "edge",
      agent: "envoy",
      version: "1.40.0",
    });
    expect(decoder.decode(encode([])).node).toBeUndefined();
  });

  it.each([
    ["upstream_rq_completed", "completed"],
    ["upstream_rq_5xx", "failed"],
    ["upstream_rq_active_overflow", "overflowed"],
    ["upstream_rq_pending_overflow", "overflowed"],
    ["upstream_rq_drop_overload", "dropped"],
    ["upstream_cx_overflow", "connectionsOverflowed"],
  ])("reads %s as %s", (stat, counter) => {
    const family = counterFamily(`cluster.orders.${stat}`, 3, { stampMs: 7 });
    expect(samplesOf(family)).toEqual([
      { kind: "count", cluster: "orders", counter, series: stat, delta: 3, stampMs: 7 },
    ]);
  });

  it.each([
    ["a plain name", "cluster.orders.upstream_rq_active", {}, "orders"],
    [
      "a name with dots and bars",
      "cluster.outbound|80||orders.shop.svc.cluster.local.upstream_rq_active",
      {},
      "outbound|80||orders.shop.svc.cluster.local",
    ],
    ["a name that Istio ends", "cluster.orders;.upstream_rq_active", {}, "orders"],
    [
      "a label",
      "cluster.upstream_rq_active",
      { "envoy.cluster_name": "outbound|80||orders" },
      "outbound|80||orders",
    ],
    ["no name at all", "cluster.upstream_rq_active", {}, ""],
  ])("finds the cluster in %s", (_, name, labels, cluster) => {
    const [sample] = samplesOf(gaugeFamily(name, 4, { labels }));
    expect(sample).toEqual({ kind: "inFlight", cluster, value: 4, stampMs: 0 });
  });

  it("reads of labelled classes of responses the fifth alone", () => {
    const family = (value: string) =>
      counterFamily("cluster.upstream_rq_xx", 2, {
        labels: { "envoy.cluster_name": "orders", "envoy.response_code_class": value },
      });
    expect(samplesOf(family("2"), family("5"), family("4"))).toMatchObject([
      { counter: "failed", cluster: "orders", delta: 2 },
    ]);
  });

  it("reads times by bucket and by quantile", () => {
    const name = "cluster.orders.upstream_rq_time";
    expect(
      samplesOf(
        summaryFamily(name, { 0: 3, 0.5: 8, 0.99: 20 }, { count: 5, sumMs: 44 }),
        histogramFamily(name, { 5: 1, 10: 3, 25: 1 }, { sumMs: 44 }),
      ),
    ).toEqual([
      {
        kind: "quantiles",
        cluster: "orders",
        stampMs: 0,
        count: 5,
        sumMs: 44,
        minMs: 3,
        p50Ms: 8,
      },
      {
        kind: "latency",
        cluster: "orders",
        stampMs: 0,
        count: 5,
        sumMs: 44,
        buckets: [
          { upTo: 5, count: 1 },
          { upTo: 10, count: 4 },
          { upTo: 25, count: 5 },
        ],
      },
    ]);
  });

  it.each([
    ["concurrency_limit", "concurrencyLimit", 40, 40],
    ["gradient", "gradient", 1_250, 1.25],
    ["min_rtt_msecs", "minRttMs", 12, 12],
    ["sample_rtt_msecs", "sampleRttMs", 15, 15],
    ["burst_queue_size", "burstQueueSize", 6, 6],
  ])("reads a gradient controller's %s", (stat, fact, sent, value) => {
    const controller = "adaptive_concurrency.gradient_controller";
    const labels = { "envoy.http_conn_manager_prefix": "ingress" };
    const expected = { kind: "gradient", prefix: "ingress", fact, value };
    expect(samplesOf(gaugeFamily(`http.ingress.${controller}.${stat}`, sent))).toEqual([expected]);
    expect(samplesOf(gaugeFamily(`http.${controller}.${stat}`, sent, { labels }))).toEqual([
      expected,
    ]);
  });

  it.each([
    ["below nothing", -1],
    ["not a number", Number.NaN],
    ["without end", Number.POSITIVE_INFINITY],
    ["beyond what can be counted", 2 ** 60],
  ])("passes over a value that is %s", (_, value) => {
    expect(samplesOf(counterFamily("cluster.orders.upstream_rq_completed", value))).toEqual([]);
    expect(samplesOf(gaugeFamily("cluster.orders.upstream_rq_active", value))).toEqual([]);
    const name = "cluster.orders.upstream_rq_time";
    expect(samplesOf(histogramFamily(name, { 5: 1 }, { sumMs: value }))).toEqual([]);
    expect(samplesOf(summaryFamily(name, {}, { count: 1, sumMs: value }))).toEqual([]);
  });

  it("passes over families of other names, without a name, and of another kind", () => {
    expect(
      samplesOf(
        counterFamily("cluster.orders.upstream_cx_total", 1),
        counterFamily("server.upstream_rq_5xx_", 1),
        counterFamily("listener.upstream_rq_completed", 1),
        counterFamily("", 1),
        gaugeFamily("cluster.orders.upstream_rq_completed", 1),
        counterFamily("cluster.orders.upstream_rq_time", 1),
      ),
    ).toEqual([]);
  });

  it("takes so many buckets, and no more", () => {
    const name = "cluster.orders.upstream_rq_time";
    const buckets = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [i + 1, 1]));
    expect(samplesOf(histogramFamily(name, buckets(bucketsMax), { sumMs: 1 }))).toHaveLength(1);
    expect(samplesOf(histogramFamily(name, buckets(bucketsMax + 1), { sumMs: 1 }))).toEqual([]);
  });

  // Of more, four megabytes of empty ones took 7 ms of everybody's time.
  it("takes the metrics of a thousand services, and no message of more", () => {
    const at = { stampMs: 1_700_000_000_000 };
    const family = gaugeFamily("cluster.orders.upstream_rq_active", 7, at);
    const message = (count: number) => {
      const metric = Array(count).fill(family.metric).flat();
      return encode([{ ...family, metric }]);
    };
    expect(decoder.decode(message(16_384)).samples).toHaveLength(16_384);
    expect(() => decoder.decode(message(16_385))).toThrow("too many fields");
  });

  it("reads in one message what an Envoy of 600 services says of them", () => {
    const reported = Array.from({ length: 600 }, (_, i) => {
      const name = (stat: string) => `cluster.orders-${i}.upstream_rq_${stat}`;
      const buckets = Object.fromEntries(Array.from({ length: 20 }, (_, j) => [j + 1, j + 1]));
      const quantiles = Object.fromEntries(Array.from({ length: 10 }, (_, j) => [j / 10, j + 1]));
      return [
        ...["completed", "5xx", "active_overflow", "pending_overflow", "drop_overload"].map(
          (stat) => counterFamily(name(stat), 1),
        ),
        gaugeFamily(name("active"), 1),
        histogramFamily(name("time"), buckets, { sumMs: 1 }),
        summaryFamily(name("time"), quantiles, { count: 1, sumMs: 1 }),
      ];
    });
    expect(samplesOf(...reported.flat())).toHaveLength(4_800);
  });

  it("throws at what is no message", () => {
    const whole = encode([counterFamily("cluster.orders.upstream_rq_completed", 1)]);
    expect(() => decoder.decode(whole.subarray(0, whole.length - 1))).toThrow();
    expect(() => decoder.decode(Buffer.from("no message"))).toThrow();
  });
});
