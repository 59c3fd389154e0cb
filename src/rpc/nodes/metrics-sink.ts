import type { ProxyGroup } from "../../policy/services/service-clusters.js";
import type {
  BidiAnswers,
  BidiContext,
  BidiReader,
  ServiceHandlers,
} from "../../wire/grpc/service.js";
import { type ControlStream, type ControlStreams, readMessages } from "./control-stream.js";
import { type MetricSample, MetricsDecoder, type MetricsMessage } from "./metrics-message.js";
import type { NodeIdentity } from "./node-identity.js";
import type { Node } from "./node-registry.js";

/** The full name of the service. Source: envoy/service/metrics/v3/metrics_service.proto. */
const metricsName = "envoy.service.metrics.v3.MetricsService";

/** Source: envoy.service.metrics.v3.StreamMetricsResponse, which has no fields. */
const emptyAnswer: Uint8Array = new Uint8Array(0);

/** The receivers of metrics. */
interface MetricsSinkParts {
  readonly streams: ControlStreams;
  /** Whether a cluster of an Envoy belongs to a service. */
  readonly isClaimed: (cluster: string, at: ProxyGroup) => boolean;
}

/**
 * Receives the metrics that Envoys push at each flush. Counters are deltas since the previous flush
 * (`report_counters_as_deltas`), and so are histograms. The call streams in one direction only; it
 * is served as a bidirectional one and answered at its end.
 */
export function createMetricsService(parts: MetricsSinkParts): ServiceHandlers {
  const decoder = new MetricsDecoder();
  return {
    name: metricsName,
    methods: [
      {
        kind: "bidi",
        name: "StreamMetrics",
        open: (call, answers) => openMetrics(parts, decoder, { call, answers }),
      },
    ],
  };
}

function openMetrics(
  parts: MetricsSinkParts,
  decoder: MetricsDecoder,
  { call, answers }: { readonly call: BidiContext; readonly answers: BidiAnswers },
): BidiReader {
  const stream = parts.streams.open("metrics", answers, call);
  let node: Node | undefined;
  const isWanted = (cluster: string, said: NodeIdentity | undefined): boolean => {
    if (node?.signals.follows(cluster) === true) return true;
    const at = said ?? node?.identity;
    return at === undefined || parts.isClaimed(cluster, at);
  };
  return readMessages({
    stream,
    decode: (bytes) => decoder.decode(bytes, isWanted),
    take: (message) => {
      node = stream.meet(message.node);
      if (node !== undefined) takeMetrics(parts, stream, { node, samples: message.samples });
    },
    onEnd: () => {
      stream.send(emptyAnswer);
    },
  });
}

function takeMetrics(
  parts: MetricsSinkParts,
  stream: ControlStream,
  { node, samples }: { readonly node: Node; readonly samples: MetricsMessage["samples"] },
): void {
  stream.claim(node, "metrics");
  const { registry, clock } = parts.streams.parts;
  let wanted: string | undefined;
  const isWanted = (sample: MetricSample): boolean => {
    if (sample.kind === "gradient" || sample.cluster === wanted) return true;
    const { cluster } = sample;
    if (node.signals.follows(cluster) || parts.isClaimed(cluster, node.identity)) {
      wanted = cluster;
      return true;
    }
    // Envoy also has counters and times by origin and zone, whose names look like clusters.
    if (sample.kind === "inFlight") registry.noteUnclaimed(sample.cluster);
    return false;
  };
  node.signals.addMetrics(samples, clock.monotonicMs(), isWanted);
}
