import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  fromJson,
  toBinary,
} from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { httpBodyBytesMax } from "../../src/app/ports/http.js";
import { isServiceError } from "../../src/core/base/errors.js";
import { descriptorCountMax, entryCountMax } from "../../src/decide/rate-limit/query.js";
import * as config from "../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import * as discovery from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import * as extProc from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { LoadStatsRequestSchema } from "../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import * as metricsService from "../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import * as quotas from "../../src/gen/envoy/service/rate_limit_quota/v3/rlqs_pb.js";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { HealthCheckRequestSchema } from "../../src/gen/grpc/health/v1/health_pb.js";
import { type AdminMethod, adminMethods } from "../../src/rpc/admin/methods.js";
import { checkBinary, checkJson, jsonBytesMax } from "../../src/rpc/admin/request-body.js";
import { controlMessageBytesMax } from "../../src/rpc/control/control-plane.js";
import { decodeDiscoveryAsk } from "../../src/rpc/control/discovery-request.js";
import { decodeUsage } from "../../src/rpc/control/quota-messages.js";
import { decodeExchange } from "../../src/rpc/ext-proc/ext-proc-decoder.js";
import { WantedNames } from "../../src/rpc/ext-proc/ext-proc-names.js";
import { createHealthService, Health, healthRequestBytesMax } from "../../src/rpc/grpc/health.js";
import { GrpcFailure } from "../../src/rpc/grpc/status.js";
import { decodeLoads } from "../../src/rpc/nodes/load-message.js";
import { MetricsDecoder } from "../../src/rpc/nodes/metrics-message.js";
import { decodeDiscoveryResponse } from "../../src/rpc/policy-xds/ads-messages.js";
import {
  rateLimitConfigTypeUrl,
  readRateLimitConfigs,
} from "../../src/rpc/policy-xds/rate-limit-config.js";
import { readJsonRequest } from "../../src/rpc/rls/json.js";
import { decodeRequest } from "../../src/rpc/rls/rls-request-decoder.js";
import type { MethodHandler } from "../../src/wire/grpc/service.js";
import { commandBytesMax, commandPartsMax, readCommand } from "../../src/wire/resp/resp-reader.js";
import { rawField } from "./raw-field.js";
import { encodeCommand } from "./resp-client.js";
import { answerOf } from "./unary.js";
import { type WorstMessage, wholeMessage, worstMessages } from "./worst-messages.js";
import { worstJson } from "./worst-texts.js";

/** What decodes what comes from elsewhere. */
export interface PeerDecoder {
  readonly name: string;
  /** Paths of the methods whose requests it reads; absent: it is no method's. */
  readonly methods?: readonly string[];
  /** The largest input that reaches it, in bytes. */
  readonly bytesMax: number;
  /** Inputs of that many bytes that cost as much as they can, each made as it is asked for. */
  readonly worst: (byteCount: number) => Iterable<WorstMessage>;
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
  /** What an input may take however short it is, in bytes. Default `freeBytesDefault`. */
  readonly freeBytes?: number;
}

/** What an input may take however short it is, in bytes, beside ten times its own. */
export const freeBytesDefault = 131_072;

const wanted = new WantedNames(new Set([":path"]));
const plainPath = { path: ":path", paths: undefined };
const parts = {
  requestHeaders: wanted,
  responseHeaders: wanted,
  attributes: wanted,
  attributesKey: wanted,
  metadataKeys: wanted,
  metadata: new Map([[":path", { names: wanted, inner: new Map([[":path", plainPath]]) }]]),
};
const metrics = new MetricsDecoder();

/** The default of HEADGATE_REQUEST_BYTES_MAX. */
const requestBytesMax = 262_144;

interface MessageRow
  extends Pick<
    PeerDecoder,
    "name" | "methods" | "bytesMax" | "decode" | "isElsewhere" | "freeBytes"
  > {
  readonly schema: DescMessage;
  /** Inputs that only make something where they say a name that is looked for. */
  readonly worstOfNames?: PeerDecoder["worst"];
}

const messageRows: readonly MessageRow[] = [
  {
    name: "decisions",
    methods: ["/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"],
    schema: RateLimitRequestSchema,
    bytesMax: requestBytesMax,
    decode: decodeRequest,
  },
  {
    name: "exchanges",
    methods: ["/envoy.service.ext_proc.v3.ExternalProcessor/Process"],
    schema: extProc.ProcessingRequestSchema,
    bytesMax: requestBytesMax,
    decode: (bytes) => decodeExchange(bytes, parts),
  },
  {
    name: "discovery",
    methods: [
      "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
      "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime",
    ],
    schema: discovery.DiscoveryRequestSchema,
    bytesMax: controlMessageBytesMax,
    decode: decodeDiscoveryAsk,
  },
  {
    name: "load reports",
    methods: ["/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"],
    schema: LoadStatsRequestSchema,
    bytesMax: controlMessageBytesMax,
    decode: decodeLoads,
  },
  {
    name: "metrics",
    methods: ["/envoy.service.metrics.v3.MetricsService/StreamMetrics"],
    schema: metricsService.StreamMetricsMessageSchema,
    bytesMax: controlMessageBytesMax,
    worstOfNames: worstFamilies,
    decode: (bytes) => metrics.decode(bytes),
  },
  {
    name: "usage",
    methods: ["/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas"],
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
    // A worker of its own reads it, once for each change; what it takes is bounded by its parts.
    freeBytes: 33_554_432,
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

/** Families by names that are looked for, with as many parts as fit; the first ones are read. */
function worstFamilies(byteCount: number): readonly WorstMessage[] {
  const inFamily = (name: string, unit: Buffer): Buffer =>
    rawField(
      0x12,
      Buffer.concat([
        rawField(0x0a, Buffer.from(`cluster.a.${name}`)),
        Buffer.alloc(Math.max(unit.length, byteCount - (byteCount % unit.length)), unit),
      ]),
    );
  const inMetric = (tag: number, unit: Buffer): Buffer => {
    const count = Math.max(1, Math.floor(byteCount / unit.length));
    return rawField(0x22, rawField(tag, Buffer.alloc(count * unit.length, unit)));
  };
  const metric = (...bytes: readonly number[]): Buffer => rawField(0x22, Buffer.of(...bytes));
  const labels = Buffer.concat(Array(Math.floor(byteCount / 2)).fill(Buffer.of(0x0a, 0)));
  const empty = Buffer.of(0x1a, 0);
  const text = Buffer.of(0x0a, 1, 0x61);
  return [
    { what: "gauges", bytes: inFamily("upstream_rq_active", metric(0x12, 0)) },
    { what: "counters", bytes: inFamily("upstream_rq_completed", metric(0x1a, 0)) },
    { what: "times", bytes: inFamily("upstream_rq_time", metric(0x3a, 0)) },
    { what: "labels", bytes: inFamily("upstream_rq_active", metric(0x0a, 0, 0x12, 0)) },
    { what: "labels of one", bytes: inFamily("upstream_rq_active", rawField(0x22, labels)) },
    { what: "names of a label", bytes: inFamily("upstream_rq_active", inMetric(0x0a, text)) },
    { what: "quantiles of one", bytes: inFamily("upstream_rq_time", inMetric(0x22, empty)) },
    { what: "buckets of one", bytes: inFamily("upstream_rq_time", inMetric(0x3a, empty)) },
  ];
}

function adminRow({ method, messageBytesMax }: AdminMethod): MessageRow {
  return {
    name: `admin API, ${method.name}`,
    methods: [pathOf(method)],
    schema: method.input,
    bytesMax: messageBytesMax,
    decode: (bytes) => {
      checkBinary(bytes, method.input);
      return refusing(() => fromBinary(method.input, bytes, { readUnknownFields: false }));
    },
  };
}

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
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
    throw new ConnectError("not a message of this method", undefined, undefined, undefined, cause);
  }
}

/** Each decoder of messages that come over a port, or from a control plane. */
export const messageDecoders: readonly PeerDecoder[] = [
  ...messageRows.map(
    ({ schema, worstOfNames = () => [], ...row }): PeerDecoder => ({
      ...row,
      *worst(byteCount) {
        yield* worstMessages(schema, byteCount);
        yield* worstOfNames(byteCount);
      },
      valid: [Buffer.from(toBinary(schema, create(schema))), wholeMessage(schema)],
    }),
  ),
  ...[...adminMethods.values()].map(adminJsonRow),
  ...createHealthService(new Health()).methods.map(healthRow),
  {
    name: "POST /json",
    bytesMax: httpBodyBytesMax,
    worst: (byteCount) => [
      ...worstJson(byteCount - 64, namesOfLists(RateLimitRequestSchema)),
      { what: "entries", bytes: shortEntries(byteCount) },
    ],
    valid: [
      Buffer.from('{"domain":"a","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}'),
      Buffer.from('{"domain":"a","descriptors":[{"entries":[{"key":"k"}],"hitsAddend":"7"}]}'),
    ],
    decode: (bytes) => readJsonRequest(bytes.toString()),
    held: (bytes) => {
      const text = bytes.toString();
      return [text, readJsonRequest(text), JSON.parse(text)];
    },
  },
  {
    name: "RESP",
    bytesMax: commandBytesMax,
    worst: (byteCount) => [
      { what: "parts", bytes: encodeCommand(...Array<string>(commandPartsMax).fill("a")) },
      { what: "a key", bytes: encodeCommand("CL.THROTTLE", "k".repeat(byteCount - 64), "1") },
    ],
    valid: [encodeCommand("PING"), encodeCommand("CL.THROTTLE", "user", "15", "30", "60", "1")],
    decode: (bytes) => readCommand(bytes, 0),
  },
];

/** A request in JSON of as many entries as are read, as short as they may be, and a long value. */
function shortEntries(byteCount: number): Buffer {
  const entries = Array(entryCountMax).fill('{"key":"a"}').join(",");
  const descriptor = `{"entries":[${entries}],"hitsAddend":"7"}`;
  const count = Math.min(descriptorCountMax, Math.floor(byteCount / (2 * descriptor.length)));
  const last = `{"entries":[{"key":"${"k".repeat(byteCount / 2 - 100)}"}]}`;
  const descriptors = [...Array<string>(Math.max(0, count - 1)).fill(descriptor), last];
  return Buffer.from(`{"domain":"a","descriptors":[${descriptors.join(",")}]}`);
}

/** A method of the service of health, as the port calls it. */
function healthRow(method: MethodHandler): PeerDecoder {
  const call = { deadlineMs: 0, metadata: () => undefined, signal: AbortSignal.abort() };
  return {
    name: `health, ${method.name}`,
    methods: [`/grpc.health.v1.Health/${method.name}`],
    bytesMax: healthRequestBytesMax,
    worst: (byteCount) => worstMessages(HealthCheckRequestSchema, byteCount),
    valid: ["", "ratelimit"].map((service) =>
      Buffer.from(
        toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })),
      ),
    ),
    decode: async (bytes) => {
      if (method.kind === "unary") return answerOf(method.handle, bytes, call);
      if (method.kind === "bidi") throw new Error("no method of health is one");
      return allOf(method.handle(bytes, call));
    },
  };
}

async function allOf<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/**
 * What a thread of its own reads is bounded by how many parts it has, not by its bytes: in so many
 * bytes, parts that come in numbers are more than that, and the others grow with the bytes.
 */
const elsewhereBytes = 524_288;

/** Beside the largest of all: where bounds on parts hold, and where a message is short. */
const byteCounts = [262_144, 65_536, 4_096];

/** The worst inputs of a decoder, of the largest that reaches it and of shorter ones. */
export function* worstInputs({
  bytesMax,
  worst,
  isElsewhere,
}: Pick<PeerDecoder, "bytesMax" | "worst" | "isElsewhere">): Generator<WorstMessage> {
  if (isElsewhere === true) {
    // Shorter ones could not take more than what any may.
    yield* worst(Math.min(bytesMax, elsewhereBytes));
    return;
  }
  for (const byteCount of [bytesMax, ...byteCounts.filter((one) => one < bytesMax)]) {
    yield* worst(byteCount);
  }
}

/** Whether what a decoder throws is a refusal of its own, and no mistake of ours. */
export function isRefusal(thrown: unknown): boolean {
  if (isServiceError(thrown)) return thrown.code !== "INTERNAL";
  if (thrown instanceof ConnectError || thrown instanceof GrpcFailure) return true;
  const refusals = ["the bytes are not a message", "the message has too many fields"];
  return thrown instanceof Error && refusals.includes(thrown.message);
}
