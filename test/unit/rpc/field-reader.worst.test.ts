import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import * as discovery from "../../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import * as extProc from "../../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { LoadStatsRequestSchema } from "../../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import * as metricsService from "../../../src/gen/envoy/service/metrics/v3/metrics_service_pb.js";
import * as quotas from "../../../src/gen/envoy/service/rate_limit_quota/v3/rlqs_pb.js";
import { RateLimitRequestSchema } from "../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { decodeDiscoveryResponse } from "../../../src/rpc/ads-messages.js";
import { decodeDiscoveryAsk } from "../../../src/rpc/discovery-request.js";
import { decodeExchange } from "../../../src/rpc/ext-proc-decoder.js";
import { WantedNames } from "../../../src/rpc/ext-proc-names.js";
import { decodeLoads } from "../../../src/rpc/load-message.js";
import { MetricsDecoder } from "../../../src/rpc/metrics-message.js";
import { decodeUsage } from "../../../src/rpc/quota-messages.js";
import { decodeRequest } from "../../../src/rpc/rls-request-decoder.js";
import { sizeOf } from "../../support/size-of.js";
import { worstMessages } from "../../support/worst-messages.js";

const { DiscoveryRequestSchema } = discovery;
const { StreamMetricsMessageSchema } = metricsService;

/** Small enough that a thousand of them take seconds; what is bounded is a part of the bytes. */
const byteCount = 262_144;

const wanted = new WantedNames(new Set([":path"]));
const parts = { requestHeaders: wanted, responseHeaders: wanted, attributes: wanted };
const metrics = new MetricsDecoder();

const decoders: readonly {
  readonly name: string;
  readonly schema: DescMessage;
  readonly decode: (bytes: Buffer) => unknown;
}[] = [
  { name: "decisions", schema: RateLimitRequestSchema, decode: decodeRequest },
  {
    name: "exchanges",
    schema: extProc.ProcessingRequestSchema,
    decode: (bytes) => decodeExchange(bytes, { ...parts, attributesKey: wanted }),
  },
  { name: "discovery", schema: DiscoveryRequestSchema, decode: decodeDiscoveryAsk },
  { name: "load reports", schema: LoadStatsRequestSchema, decode: decodeLoads },
  { name: "metrics", schema: StreamMetricsMessageSchema, decode: (bytes) => metrics.decode(bytes) },
  {
    name: "sets of a control plane",
    schema: discovery.DiscoveryResponseSchema,
    decode: (bytes) => decodeDiscoveryResponse(bytes),
  },
  {
    name: "usage",
    schema: quotas.RateLimitQuotaUsageReportsSchema,
    decode: (bytes) => decodeUsage(bytes, 2_001),
  },
];

describe("the worst messages of a type", () => {
  it.each(decoders)("are refused, or take no more than ten times their bytes: $name", (row) => {
    const worst = worstMessages(row.schema, byteCount);
    expect(worst.length).toBeGreaterThan(20);
    for (const { what, bytes } of worst) {
      let size = 0;
      try {
        size = sizeOf(row.decode(bytes));
      } catch {
        // It is refused, before anything is made of the rest.
      }
      expect([what, size <= 10 * byteCount]).toEqual([what, true]);
    }
  });

  it.each(decoders)("do not keep the least one from being read: $name", ({ schema, decode }) => {
    expect(() => decode(Buffer.from(toBinary(schema, create(schema))))).not.toThrow();
  });
});
