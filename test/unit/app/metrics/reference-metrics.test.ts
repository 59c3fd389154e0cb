import { beforeEach, describe, expect, it } from "vitest";
import {
  createReferenceMetrics,
  type ReferenceMetricsOptions,
} from "../../../../src/app/metrics/reference-metrics.js";
import { createTestSources, type TestSources } from "../../../support/stats-sources.js";

let sources: TestSources;

beforeEach(() => {
  sources = createTestSources();
});

const own = { contentType: "text/plain; version=0.0.4", render: async () => "own_metric 1\n" };

async function lines(options: Partial<ReferenceMetricsOptions> = {}): Promise<readonly string[]> {
  const metrics = createReferenceMetrics(sources, own, {
    isMilliseconds: false,
    tags: [],
    ...options,
  });
  await metrics.render();
  return (await metrics.render()).split("\n");
}

describe("createReferenceMetrics()", () => {
  it("labels one level by key1, two by key2 as well, and adds deeper ones up", async () => {
    sources.count(0, { total: 1, within: 1 });
    sources.count(1, { total: 2, over: 2, shadow: 1, overFromMemory: 1 });
    sources.count(2, { total: 3, over: 3 });
    const text = await lines();
    const name = "ratelimit_service_rate_limit";
    expect(text).toContain(`${name}_total_hits{domain="shop",key1="user"} 1`);
    expect(text).toContain(`${name}_within_limit{domain="shop",key1="user"} 1`);
    const both = 'domain="shop",key1="plan_free",key2="user"';
    expect(text).toContain(`${name}_total_hits{${both}} 5`);
    expect(text).toContain(`${name}_over_limit{${both}} 5`);
    expect(text).toContain(`${name}_shadow_mode{${both}} 1`);
    expect(text).toContain(`${name}_over_limit_with_local_cache{${both}} 1`);
    expect(text.join("\n")).not.toContain(`${name}_near_limit{`);
  });

  it("shows calls, errors and policies by the reference's names", async () => {
    sources.counters.okCount = 3;
    sources.counters.countFailure("STORE_TIMEOUT");
    const text = await lines();
    for (const line of [
      'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 4',
      'ratelimit_service_should_rate_limit_error{err_type="redis_error"} 1',
      'ratelimit_service_should_rate_limit_error{err_type="service_error"} 0',
      "ratelimit_service_config_load_success 2",
      "ratelimit_service_config_load_error 1",
    ]) {
      expect(text).toContain(line);
    }
  });

  it("shows response times in seconds, or in milliseconds where that is wanted", async () => {
    sources.counters.countLatency(4);
    const name = "ratelimit_service_response_time_seconds";
    const method = 'grpc_method="ShouldRateLimit"';
    const seconds = await lines();
    expect(seconds).toContain(`${name}_bucket{${method},le="0.0025"} 0`);
    expect(seconds).toContain(`${name}_bucket{${method},le="0.005"} 1`);
    expect(seconds).toContain(`${name}_sum{${method}} 0.004`);
    const milliseconds = await lines({ isMilliseconds: true });
    expect(milliseconds).toContain(`${name}_bucket{${method},le="5"} 1`);
    expect(milliseconds).toContain(`${name}_sum{${method}} 4`);
  });

  it("adds tags as labels with allowed names, and leaves our own series alone", async () => {
    const text = await lines({ tags: [{ name: "team-a", value: 'x"y' }] });
    expect(text).toContain('ratelimit_service_config_load_success{team_a="x\\"y"} 2');
    expect(text).toContain("own_metric 1");
  });
});
