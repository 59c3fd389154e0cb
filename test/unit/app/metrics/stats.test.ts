import { beforeEach, describe, expect, it } from "vitest";
import {
  callCount,
  failedCounts,
  hitsPrefix,
  namedHits,
  serviceStats,
} from "../../../../src/app/metrics/stats.js";
import { createTestSources, type TestSources } from "../../../support/stats-sources.js";

let sources: TestSources;

beforeEach(() => {
  sources = createTestSources();
});

describe("namedHits()", () => {
  it("names hits by the policy's path, and only where there are any", () => {
    sources.count(1, { total: 3, within: 3 });
    const [named, ...others] = namedHits(sources);
    expect(named).toMatchObject({ domain: "shop", steps: ["plan_free", "user"] });
    expect(named && hitsPrefix(named)).toBe("ratelimit.service.rate_limit.shop.plan_free.user");
    expect(others).toEqual([]);
  });

  it("counts a rule that was only given back to", () => {
    sources.count(0, { refunded: 2 });
    expect([...namedHits(sources)]).toHaveLength(1);
  });

  it("names hits by callers' values where the policy asked for them, without harm", () => {
    sources.countDetailed(0, "user_10.1.2.3\nx:9|c", { total: 1 });
    const names = [...namedHits(sources)].map(hitsPrefix);
    expect(names).toEqual(["ratelimit.service.rate_limit.shop.user_10_1_2_3_x_9_c"]);
  });

  it("has none without a policy", () => {
    sources.count(0, { total: 1 });
    sources.policy = undefined;
    expect([...namedHits(sources)]).toEqual([]);
  });
});

describe("serviceStats()", () => {
  const value = (name: string): number | undefined =>
    serviceStats(sources).find((stat) => stat.name === name)?.value;

  it("tells failures because of the store from others, and counts both as calls", () => {
    sources.counters.okCount = 5;
    sources.counters.deniedCount = 2;
    sources.counters.countFailure("STORE_TIMEOUT");
    sources.counters.countFailure("REQUEST_INVALID");
    sources.counters.countFailure("OVERLOADED");
    expect(failedCounts(sources)).toEqual({ redisErrorCount: 1, serviceErrorCount: 2 });
    expect(callCount(sources)).toBe(10);
    expect(value("ratelimit.service.call.should_rate_limit.redis_error")).toBe(1);
    expect(value("ratelimit.service.call.should_rate_limit.service_error")).toBe(2);
    expect(value("ratelimit_server.ShouldRateLimit.total_requests")).toBe(10);
  });

  it("tells of policies, of the shadow mode and of unknown domains", () => {
    sources.counters.shadowedCount = 4;
    sources.counters.unknownDomainCount = 7;
    expect(value("ratelimit.service.config_load_success")).toBe(2);
    expect(value("ratelimit.service.config_load_error")).toBe(1);
    expect(value("ratelimit.service.global_shadow_mode")).toBe(4);
    expect(value("ratelimit.service.rate_limit.unknown.domain_not_found")).toBe(7);
  });

  it("tells of the connections to each Redis", () => {
    sources.pools = [
      { name: "redis_pool", counts: { activeCount: 2, openedCount: 5 } },
      { name: "redis_per_second_pool", counts: { activeCount: 1, openedCount: 1 } },
    ];
    expect(value("ratelimit.redis_pool.cx_active")).toBe(2);
    expect(value("ratelimit.redis_pool.cx_total")).toBe(5);
    expect(value("ratelimit.redis_pool.cx_local_close")).toBe(3);
    expect(value("ratelimit.redis_per_second_pool.cx_active")).toBe(1);
  });
});
