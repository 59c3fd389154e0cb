import { create, toBinary } from "@bufbuild/protobuf";
import { StreamMetricsResponseSchema } from "../gen/envoy/service/metrics/v3/metrics_service_pb.js";
import type { BidiAnswers, BidiReader, ServiceHandlers } from "../wire/service.js";
import type { ControlStream, ControlStreams } from "./control-stream.js";
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
        open: (_call, answers) => new MetricsStream(parts, answers),
      },
    ],
  };
}

class MetricsStream implements BidiReader {
  readonly #parts: MetricsSinkParts;
  readonly #stream: ControlStream;

  constructor(parts: MetricsSinkParts, answers: BidiAnswers) {
    this.#parts = parts;
    this.#stream = parts.streams.open("metrics", answers);
  }

  onMessage(bytes: Uint8Array): void {
    this.#stream.guard(() => this.#read(bytes));
    this.#stream.next();
  }

  onEnd(): void {
    this.#stream.send(toBinary(StreamMetricsResponseSchema, create(StreamMetricsResponseSchema)));
    this.#stream.end();
  }

  onCancel(): void {
    this.#stream.end();
  }

  onDrain(): void {}

  #read(bytes: Uint8Array): void {
    const message = decodeMessage(bytes);
    if (message === undefined) {
      this.#stream.fail("unreadable");
      return;
    }
    const node = this.#stream.meet(message.node);
    if (node === undefined) return;
    this.#stream.claim(node, "metrics");
    const { clock } = this.#parts.streams.parts;
    const samples = message.samples.filter((sample) => this.#isWanted(sample));
    node.signals.addMetrics(samples, clock.monotonicMs());
  }

  #isWanted(sample: MetricSample): boolean {
    if (sample.kind === "gradient" || this.#parts.isClaimed(sample.cluster)) return true;
    // Of counters and times Envoy has more, by origin and zone, whose names look like clusters.
    if (sample.kind === "inFlight")
      this.#parts.streams.parts.registry.noteUnclaimed(sample.cluster);
    return false;
  }
}

function decodeMessage(bytes: Uint8Array): MetricsMessage | undefined {
  try {
    return decodeMetrics(bytes);
  } catch {
    return undefined;
  }
}
