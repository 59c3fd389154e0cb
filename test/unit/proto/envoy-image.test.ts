import { readFileSync } from "node:fs";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it } from "vitest";

const imageUrl = new URL("../../../proto/envoy-api-1.40.0.binpb", import.meta.url);

/** Fields that older copies of Envoy's API lack, or that the code cannot do without. */
const fields: ReadonlyArray<readonly [message: string, field: string]> = [
  ["envoy.service.ratelimit.v3.RateLimitRequest", "hits_addend"],
  ["envoy.service.ratelimit.v3.RateLimitResponse", "dynamic_metadata"],
  ["envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus", "duration_until_reset"],
  ["envoy.service.ratelimit.v3.RateLimitResponse.RateLimit", "unit_multiplier"],
  ["envoy.extensions.common.ratelimit.v3.RateLimitDescriptor", "hits_addend"],
  ["envoy.extensions.common.ratelimit.v3.RateLimitDescriptor", "is_negative_hits"],
  ["envoy.service.ext_proc.v3.ProcessingRequest", "observability_mode"],
  ["envoy.service.ext_proc.v3.ProcessingResponse", "immediate_response"],
  [
    "envoy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig" +
      ".ConcurrencyLimitCalculationParams",
    "min_concurrency_limit",
  ],
  ["envoy.service.rate_limit_quota.v3.RateLimitQuotaResponse", "bucket_action"],
  ["envoy.config.bootstrap.v3.Bootstrap", "overload_manager"],
  ["grpc.health.v1.HealthCheckResponse", "status"],
  ["ratelimit.config.ratelimit.v3.RateLimitConfig", "descriptors"],
  ["ratelimit.config.ratelimit.v3.RateLimitDescriptor", "quota_mode"],
  ["ratelimit.config.ratelimit.v3.RateLimitDescriptor", "metadata"],
];

const methods: ReadonlyArray<readonly [service: string, method: string, kind: string]> = [
  ["envoy.service.ratelimit.v3.RateLimitService", "ShouldRateLimit", "unary"],
  ["envoy.service.ext_proc.v3.ExternalProcessor", "Process", "bidi_streaming"],
  [
    "envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
    "StreamRateLimitQuotas",
    "bidi_streaming",
  ],
  ["envoy.service.runtime.v3.RuntimeDiscoveryService", "StreamRuntime", "bidi_streaming"],
  ["envoy.service.load_stats.v3.LoadReportingService", "StreamLoadStats", "bidi_streaming"],
  [
    "envoy.service.discovery.v3.AggregatedDiscoveryService",
    "StreamAggregatedResources",
    "bidi_streaming",
  ],
  ["envoy.service.metrics.v3.MetricsService", "StreamMetrics", "client_streaming"],
  ["grpc.health.v1.Health", "Check", "unary"],
  ["grpc.health.v1.Health", "Watch", "server_streaming"],
];

describe("the Envoy API image", () => {
  let image: FileDescriptorSet;
  let registry: FileRegistry;

  beforeAll(() => {
    image = fromBinary(FileDescriptorSetSchema, readFileSync(imageUrl));
    registry = createFileRegistry(image);
  });

  it("lists every file once, after the files it imports", () => {
    const seen = new Set<string>();
    for (const file of image.file) {
      expect(seen, `${file.name} is there twice`).not.toContain(file.name);
      for (const dependency of file.dependency) {
        expect(seen, `${file.name} stands before its import`).toContain(dependency);
      }
      seen.add(file.name);
    }
    expect(seen.size).toBe(726);
  });

  it.each(fields)("holds %s.%s", (message, field) => {
    const names = registry.getMessage(message)?.fields.map(({ name }) => name);
    expect(names).toContain(field);
  });

  it.each(methods)("holds %s/%s, %s", (service, method, kind) => {
    const found = registry.getService(service)?.methods.find(({ name }) => name === method);
    expect(found?.methodKind).toBe(kind);
  });
});
