import { create, toBinary } from "@bufbuild/protobuf";
import { StreamMetricsResponseSchema } from "../gen/envoy/service/metrics/v3/metrics_service_pb.js";
import type { BidiAnswers, BidiReader, ServiceHandlers } from "../wire/service.js";
import { type ControlStream, type ControlStreams, readMessages } from "./control-stream.js";
import { decodeMetrics, type MetricSample, type MetricsMessage } from "./metrics-message.js";

/** The service's full name. Source: envoy/service/metrics/v3/metrics_service.proto. */
const metricsName = "envoy.service.metrics.v3.MetricsService";

/** Whom statistics are told to. */
export interface MetricsSinkParts {
  readonly streams: ControlStreams;
  /** Whether a cluster leads to a service. */
  readonly isClaimed: (cluster: string) => boolean;
}

/**
 * Takes the statistics that Envoys push at each flush: counters as what was counted since the flush
 * before (`report_counters_as_deltas`), histograms as what was seen since. A call has messages one
 * way only; it is served as one with both, and answered at its end.
 */
export function createMetricsService(parts: MetricsSinkParts): ServiceHandlers {
  return {
    name: metricsName,
    methods: [
      {
        kind: "bidi",
        name: "StreamMetrics",
        open: (_call, answers) => openMetrics(parts, answers),
      },
    ],
  };
}

function openMetrics(parts: MetricsSinkParts, answers: BidiAnswers): BidiReader {
  const stream = parts.streams.open("metrics", answers);
  return readMessages({
    stream,
    decode: decodeMetrics,
    take: (message) => takeMetrics(parts, stream, message),
    onEnd: () => {
      stream.send(toBinary(StreamMetricsResponseSchema, create(StreamMetricsResponseSchema)));
    },
  });
}

function takeMetrics(
  parts: MetricsSinkParts,
  stream: ControlStream,
  message: MetricsMessage,
): void {
  const node = stream.meet(message.node);
  if (node === undefined) return;
  stream.claim(node, "metrics");
  const { registry, clock } = parts.streams.parts;
  const isWanted = (sample: MetricSample): boolean => {
    if (sample.kind === "gradient" || parts.isClaimed(sample.cluster)) return true;
    // Of counters and times Envoy has more, by origin and zone, whose names look like clusters.
    if (sample.kind === "inFlight") registry.noteUnclaimed(sample.cluster);
    return false;
  };
  node.signals.addMetrics(message.samples.filter(isWanted), clock.monotonicMs());
}
