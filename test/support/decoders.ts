import { create, type DescMessage, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { isServiceError } from "../../src/core/errors.js";
import * as config from "../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import * as discovery from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import * as extProc from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { LoadStatsRequestSchema } from "../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import * as metricsService from "../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import * as quotas from "../../src/gen/envoy/service/rate_limit_quota/v3/rlqs_pb.js";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { type AdminMethod, adminMethods } from "../../src/rpc/admin/methods.js";
import { checkBinary, checkJson, jsonBytesMax } from "../../src/rpc/admin/request-body.js";
import { decodeDiscoveryResponse } from "../../src/rpc/ads-messages.js";
import { controlMessageBytesMax } from "../../src/rpc/control-plane.js";
import { decodeDiscoveryAsk } from "../../src/rpc/discovery-request.js";
import { decodeExchange } from "../../src/rpc/ext-proc-decoder.js";
import { WantedNames } from "../../src/rpc/ext-proc-names.js";
import { decodeLoads } from "../../src/rpc/load-message.js";
import { MetricsDecoder } from "../../src/rpc/metrics-message.js";
import { decodeUsage } from "../../src/rpc/quota-messages.js";
import { rateLimitConfigTypeUrl, readRateLimitConfigs } from "../../src/rpc/rate-limit-config.js";
import {
  decodeReflectionRequest,
  reflectionRequestBytesMax,
} from "../../src/rpc/reflection-messages.js";
import { decodeRequest } from "../../src/rpc/rls-request-decoder.js";
import { type WorstMessage, wholeMessage, worstMessages } from "./worst-messages.js";
import { worstJson } from "./worst-texts.js";

/** What decodes what comes from elsewhere. */
export interface PeerDecoder {
  readonly name: string;
  /** The largest input that reaches it, in bytes. */
  readonly bytesMax: number;
  /** Inputs of that many bytes that cost as much as they can. */
  readonly worst: (byteCount: number) => readonly WorstMessage[];
  /** Inputs that it reads; what is fuzzed begins with these. */
  readonly valid: readonly Buffer[];
  /** All that is made of an input; what it throws is a refusal. */
  readonly decode: (bytes: Buffer) => unknown;
  /** What stands in memory on the way, where that is more than what is made. Default: `decode`. */
  readonly held?: (bytes: Buffer) => unknown;
  /** As `decode`, where it is read in turns: each for itself keeps others waiting. */
  readonly turns?: (bytes: Buffer) => Iterator<undefined, unknown>;
  /** Whether it is not read by the thread that answers calls: only its memory matters. */
  readonly isElsewhere?: boolean;
}

const wanted = new WantedNames(new Set([":path"]));
const parts = { requestHeaders: wanted, responseHeaders: wanted, attributes: wanted };
const metrics = new MetricsDecoder();

/** The default of HEADGATE_REQUEST_BYTES_MAX. */
const requestBytesMax = 262_144;

interface MessageRow extends Pick<PeerDecoder, "name" | "bytesMax" | "decode" | "isElsewhere"> {
  readonly schema: DescMessage;
}

const messageRows: readonly MessageRow[] = [
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
  {
    name: "policies of a control plane",
    schema: config.RateLimitConfigSchema,
    bytesMax: controlMessageBytesMax,
    isElsewhere: true,
    decode: decodeConfig,
  },
  ...[...adminMethods.values()].map(adminRow),
];

/** What a refused set has made is gone; what an accepted one was made of is not yet. */
function decodeConfig(bytes: Buffer): unknown {
  const read = readRateLimitConfigs([{ typeUrl: rateLimitConfigTypeUrl, value: bytes }]);
  if (read.kind === "unreadable") return read;
  return [read, fromBinary(config.RateLimitConfigSchema, bytes, { readUnknownFields: false })];
}

function adminRow({ method, messageBytesMax }: AdminMethod): MessageRow {
  return {
    name: `admin API, ${method.name}`,
    schema: method.input,
    bytesMax: messageBytesMax,
    decode: (bytes) => {
      checkBinary(bytes, method.input);
      return refusing(() => fromBinary(method.input, bytes, { readUnknownFields: false }));
    },
  };
}

function adminJsonRow({ method, messageBytesMax }: AdminMethod): PeerDecoder {
  return {
    name: `admin API in JSON, ${method.name}`,
    bytesMax: Math.min(messageBytesMax, jsonBytesMax),
    worst: (byteCount) => worstJson(byteCount - 64, namesOfLists(method.input)),
    valid: [Buffer.from("{}")],
    decode: (bytes) => {
      checkJson(bytes);
      return refusing(() => {
        const tree = JSON.parse(bytes.toString());
        return [tree, fromJson(method.input, tree, { ignoreUnknownFields: true })];
      });
    },
  };
}

function namesOfLists({ fields }: DescMessage): readonly string[] {
  return fields.filter(({ fieldKind }) => fieldKind === "list").map(({ jsonName }) => jsonName);
}

/** What the library of the admin API throws it answers as a refusal, whatever it is. */
function refusing<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw new ConnectError("no message of this method", undefined, undefined, undefined, cause);
  }
}

/** Each decoder of messages that come over a port, or from a control plane. */
export const messageDecoders: readonly PeerDecoder[] = [
  ...messageRows.map(
    ({ schema, ...row }): PeerDecoder => ({
      ...row,
      worst: (byteCount) => worstMessages(schema, byteCount),
      valid: [Buffer.from(toBinary(schema, create(schema))), wholeMessage(schema)],
    }),
  ),
  ...[...adminMethods.values()].map(adminJsonRow),
  {
    name: "reflection",
    bytesMax: reflectionRequestBytesMax,
    worst: (byteCount) => {
      const units = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((field) => {
        const tag = field * 8 + 2;
        return [
          [tag, 0],
          [tag, 1, 0x61],
          [tag, 2, 0x10, 1],
          [field * 8, 1],
        ];
      });
      return units.map((unit) => ({
        what: unit.join(" "),
        bytes: Buffer.alloc(byteCount, Buffer.of(...unit)),
      }));
    },
    valid: [Buffer.of(0x3a, 1, 0x2a), Buffer.from("\u001a\u0003a.b")],
    decode: decodeReflectionRequest,
  },
];

/** Whether what a decoder throws is a refusal of its own, and no mistake of ours. */
export function isRefusal(thrown: unknown): boolean {
  if (isServiceError(thrown)) return thrown.code !== "INTERNAL";
  if (thrown instanceof ConnectError) return true;
  const refusals = ["the bytes are no message", "the message has too many fields"];
  return thrown instanceof Error && refusals.includes(thrown.message);
}
