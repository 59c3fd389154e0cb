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

/** The service's full name. Source: envoy/service/load_stats/v3/lrs.proto. */
const loadReportingName = "envoy.service.load_stats.v3.LoadReportingService";

/** How often an Envoy is asked to report whose statistics do not come, in seconds. */
export const loadReportSeconds = 1;

/**
 * The same for one whose statistics say all that reports would: its reports stand by until those
 * fail. Each has the whole node in it, which is 60 KB of an Envoy 1.40.
 */
export const standbyLoadReportSeconds = 5;

/** Whom load reports are told to. */
interface LoadReportParts {
  readonly streams: ControlStreams;
  /** Whether a cluster of an Envoy leads to a service. */
  readonly isClaimed: (cluster: string, at: ProxyGroup) => boolean;
}

/**
 * Takes the load reports of Envoys: asked for when a stream begins, of all clusters and each
 * second; they then come by themselves. They have no latencies. An Envoy is asked anew for fewer of
 * them while its statistics come, and for all of them at the first one after those have stopped.
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
  /** What was asked for last; undefined: nothing yet. */
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

  /** Envoy begins a new interval with each answer: nothing is asked for twice. */
  #ask(seconds: number): void {
    if (seconds === this.#askedSeconds) return;
    this.#askedSeconds = seconds;
    this.#stream.send(encodeAsk(seconds));
  }
}

/** Asks for reports of all clusters. Source: envoy.service.load_stats.v3.LoadStatsResponse. */
function encodeAsk(seconds: number): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(2, WireType.LengthDelimited).fork().tag(1, WireType.Varint).int64(seconds).join();
  return writer.tag(4, WireType.Varint).bool(true).finish();
}
