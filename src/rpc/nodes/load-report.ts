import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { ProxyGroup } from "../../policy/services/service-clusters.js";
import type {
  BidiAnswers,
  BidiContext,
  BidiReader,
  ServiceHandlers,
} from "../../wire/grpc/service.js";
import type { ClusterLoad } from "./cluster-signals.js";
import { type ControlStream, type ControlStreams, readMessages } from "./control-stream.js";
import { decodeLoads, type LoadMessage } from "./load-message.js";

/** The full name of the service. Source: envoy/service/load_stats/v3/lrs.proto. */
const loadReportingName = "envoy.service.load_stats.v3.LoadReportingService";

/** Report interval of an Envoy that sends no metrics, in seconds. */
export const loadReportSeconds = 1;

/**
 * Report interval of an Envoy whose metrics include the same data. Its reports are a fallback. Each
 * contains the whole node, which is 60 KB for an Envoy 1.40.
 */
export const standbyLoadReportSeconds = 5;

/** The receivers of load reports. */
interface LoadReportParts {
  readonly streams: ControlStreams;
  /** Whether a cluster of an Envoy belongs to a service. */
  readonly isClaimed: (cluster: string, at: ProxyGroup) => boolean;
}

/**
 * Receives load reports of Envoys. When a stream starts, reports of all clusters are requested
 * every second. Load reports have no latencies. While the metrics of an Envoy arrive, fewer of its
 * reports are requested; all of them are requested again once its metrics stop.
 */
export function createLoadReportingService(parts: LoadReportParts): ServiceHandlers {
  return {
    name: loadReportingName,
    methods: [
      {
        kind: "bidi",
        name: "StreamLoadStats",
        open: (call, answers) => new LoadReportStream(parts, { call, answers }).reader,
      },
    ],
  };
}

class LoadReportStream {
  readonly reader: BidiReader;
  readonly #parts: LoadReportParts;
  readonly #stream: ControlStream;
  /** The interval that was last requested. Undefined if none was. */
  #askedSeconds: number | undefined;
  #lastMs: number | undefined;

  constructor(
    parts: LoadReportParts,
    { call, answers }: { readonly call: BidiContext; readonly answers: BidiAnswers },
  ) {
    this.#parts = parts;
    this.#stream = parts.streams.open("load_stats", answers, call);
    const take = (message: LoadMessage): void => this.#take(message);
    this.reader = readMessages({ stream: this.#stream, decode: decodeLoads, take });
  }

  #take(message: LoadMessage): void {
    const node = this.#stream.meet(message.node);
    if (node === undefined) return;
    if (this.#askedSeconds === undefined) {
      this.#stream.claim(node, "loadReports");
      this.#ask(loadReportSeconds);
      return;
    }
    const { registry, clock } = this.#parts.streams.parts;
    const nowMs = clock.monotonicMs();
    const loads: ClusterLoad[] = [];
    for (const load of message.loads) {
      if (this.#parts.isClaimed(load.cluster, node.identity)) loads.push(load);
      else registry.noteUnclaimed(load.cluster);
    }
    const sinceLastMs = nowMs - (this.#lastMs ?? nowMs);
    node.signals.addLoads(loads, { coveredMs: sinceLastMs, nowMs });
    this.#lastMs = nowMs;
    this.#ask(
      node.signals.hasMetricsOf(loads, nowMs) ? standbyLoadReportSeconds : loadReportSeconds,
    );
  }

  /**
   * Envoy starts a new interval with each response, so the same interval is not requested twice.
   */
  #ask(seconds: number): void {
    if (seconds === this.#askedSeconds) return;
    this.#askedSeconds = seconds;
    this.#stream.send(encodeAsk(seconds));
  }
}

/**
 * Encodes a request for reports of all clusters. Source:
 * envoy.service.load_stats.v3.LoadStatsResponse.
 */
function encodeAsk(seconds: number): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(2, WireType.LengthDelimited).fork().tag(1, WireType.Varint).int64(seconds).join();
  return writer.tag(4, WireType.Varint).bool(true).finish();
}
