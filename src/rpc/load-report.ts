import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import type { ClusterStats } from "../gen/envoy/config/endpoint/v3/load_report_pb.js";
import {
  type LoadStatsRequest,
  LoadStatsRequestSchema,
  LoadStatsResponseSchema,
} from "../gen/envoy/service/load_stats/v3/lrs_pb.js";
import type { BidiAnswers, BidiReader, ServiceHandlers } from "../wire/service.js";
import type { ClusterLoad } from "./cluster-signals.js";
import { type ControlStream, type ControlStreams, readMessages } from "./control-stream.js";
import { nodeIdentity } from "./node-identity.js";

/** The service's full name. Source: envoy/service/load_stats/v3/lrs.proto. */
const loadReportingName = "envoy.service.load_stats.v3.LoadReportingService";

/** How often Envoys are asked to report, in seconds. */
export const loadReportSeconds = 1;

/** Whom load reports are told to. */
export interface LoadReportParts {
  readonly streams: ControlStreams;
  /** Whether a cluster leads to a service. */
  readonly isClaimed: (cluster: string) => boolean;
}

/**
 * Takes the load reports of Envoys: asked for once a stream, of all clusters and each second; they
 * then come by themselves. They have no latencies.
 */
export function createLoadReportingService(parts: LoadReportParts): ServiceHandlers {
  return {
    name: loadReportingName,
    methods: [
      {
        kind: "bidi",
        name: "StreamLoadStats",
        open: (_call, answers) => new LoadReportStream(parts, answers).reader,
      },
    ],
  };
}

class LoadReportStream {
  readonly reader: BidiReader;
  readonly #parts: LoadReportParts;
  readonly #stream: ControlStream;
  #isAsked = false;
  #lastMs: number | undefined;

  constructor(parts: LoadReportParts, answers: BidiAnswers) {
    this.#parts = parts;
    this.#stream = parts.streams.open("load_stats", answers);
    const take = (request: LoadStatsRequest): void => this.#take(request);
    this.reader = readMessages({ stream: this.#stream, decode: decodeRequest, take });
  }

  #take(request: LoadStatsRequest): void {
    const node = this.#stream.meet(request.node && nodeIdentity(request.node));
    if (node === undefined) return;
    if (!this.#isAsked) {
      this.#isAsked = true;
      this.#stream.claim(node, "loadReports");
      this.#stream.send(encodeAsk());
      return;
    }
    const { registry, clock } = this.#parts.streams.parts;
    const nowMs = clock.monotonicMs();
    const loads: ClusterLoad[] = [];
    for (const stats of request.clusterStats) {
      if (this.#parts.isClaimed(stats.clusterName)) loads.push(loadOf(stats));
      else registry.noteUnclaimed(stats.clusterName);
    }
    const sinceLastMs = nowMs - (this.#lastMs ?? nowMs);
    node.signals.addLoads(loads, { coveredMs: sinceLastMs, nowMs });
    this.#lastMs = nowMs;
  }
}

function decodeRequest(bytes: Uint8Array): LoadStatsRequest {
  return fromBinary(LoadStatsRequestSchema, bytes, { readUnknownFields: false });
}

function encodeAsk(): Uint8Array {
  const response = create(LoadStatsResponseSchema, {
    sendAllClusters: true,
    loadReportingInterval: create(DurationSchema, { seconds: BigInt(loadReportSeconds) }),
    reportEndpointGranularity: false,
  });
  return toBinary(LoadStatsResponseSchema, response);
}

/** Source: envoy.config.endpoint.v3.ClusterStats and UpstreamLocalityStats. */
function loadOf({
  clusterName: cluster,
  upstreamLocalityStats: localities,
  totalDroppedRequests,
  loadReportInterval,
}: ClusterStats): ClusterLoad {
  let inFlight = 0;
  let successCount = 0;
  let errorCount = 0;
  for (const locality of localities) {
    inFlight += Number(locality.totalRequestsInProgress);
    successCount += Number(locality.totalSuccessfulRequests);
    errorCount += Number(locality.totalErrorRequests);
  }
  const dropCount = Number(totalDroppedRequests);
  const coveredMs = loadReportInterval === undefined ? 0 : durationMs(loadReportInterval);
  return { cluster, inFlight, successCount, errorCount, dropCount, coveredMs };
}

function durationMs({ seconds, nanos }: Duration): number {
  return Math.max(0, Number(seconds) * 1_000 + nanos / 1_000_000);
}
