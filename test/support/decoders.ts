import type { DescMessage } from "@bufbuild/protobuf";
import * as discovery from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import * as extProc from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { LoadStatsRequestSchema } from "../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import * as metricsService from "../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import * as quotas from "../../src/gen/envoy/service/rate_limit_quota/v3/rlqs_pb.js";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { decodeDiscoveryResponse } from "../../src/rpc/ads-messages.js";
import { controlMessageBytesMax } from "../../src/rpc/control-plane.js";
import { decodeDiscoveryAsk } from "../../src/rpc/discovery-request.js";
import { decodeExchange } from "../../src/rpc/ext-proc-decoder.js";
import { WantedNames } from "../../src/rpc/ext-proc-names.js";
import { decodeLoads } from "../../src/rpc/load-message.js";
import { MetricsDecoder } from "../../src/rpc/metrics-message.js";
import { decodeUsage } from "../../src/rpc/quota-messages.js";
import { decodeRequest } from "../../src/rpc/rls-request-decoder.js";

/** What decodes messages of a peer. */
export interface PeerDecoder {
  readonly name: string;
  readonly schema: DescMessage;
  /** The largest message that reaches it, in bytes. */
  readonly bytesMax: number;
  readonly decode: (bytes: Buffer) => unknown;
}

const wanted = new WantedNames(new Set([":path"]));
const parts = { requestHeaders: wanted, responseHeaders: wanted, attributes: wanted };
const metrics = new MetricsDecoder();

/** The default of HEADGATE_REQUEST_BYTES_MAX. */
const requestBytesMax = 262_144;

/** Each decoder of messages that come over a port, or from a control plane. */
export const peerDecoders: readonly PeerDecoder[] = [
  {
    name: "decisions",
    schema: RateLimitRequestSchema,
    bytesMax: requestBytesMax,
    decode: decodeRequest,
  },
  {
    name: "exchanges",
    schema: extProc.ProcessingRequestSchema,
    bytesMax: requestBytesMax,
    decode: (bytes) => decodeExchange(bytes, { ...parts, attributesKey: wanted }),
  },
  {
    name: "discovery",
    schema: discovery.DiscoveryRequestSchema,
    bytesMax: controlMessageBytesMax,
    decode: decodeDiscoveryAsk,
  },
  {
    name: "load reports",
    schema: LoadStatsRequestSchema,
    bytesMax: controlMessageBytesMax,
    decode: decodeLoads,
  },
  {
    name: "metrics",
    schema: metricsService.StreamMetricsMessageSchema,
    bytesMax: controlMessageBytesMax,
    decode: (bytes) => metrics.decode(bytes),
  },
  {
    name: "usage",
    schema: quotas.RateLimitQuotaUsageReportsSchema,
    bytesMax: controlMessageBytesMax,
    decode: (bytes) => decodeUsage(bytes, 2_001),
  },
  {
    name: "sets of a control plane",
    schema: discovery.DiscoveryResponseSchema,
    bytesMax: controlMessageBytesMax,
    decode: (bytes) => decodeDiscoveryResponse(bytes),
  },
];
