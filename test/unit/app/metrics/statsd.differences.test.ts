import { beforeEach, describe, expect, it } from "vitest";
import {
  type StatChange,
  StatDifferences,
  statNameLengthMax,
} from "../../../../src/app/metrics/statsd.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { createTestSources, type TestSources } from "../../../support/stats-sources.js";

const hitsName = "ratelimit.service.rate_limit.shop.user";

let sources: TestSources;
let differences: StatDifferences;
let droppedCount: number;

beforeEach(() => {
  sources = createTestSources();
  differences = new StatDifferences(sources);
  droppedCount = 0;
});

function take(): readonly StatChange[] {
  return [
    ...differences.take(() => {
      droppedCount += 1;
    }),
  ];
}

describe("StatDifferences", () => {
  it("tells each count once, and only what has grown since", () => {
    sources.count(0, { total: 3, within: 2, over: 1 });
    const first = take();
    expect(first).toContainEqual({ kind: "counter", name: `${hitsName}.total_hits`, increase: 3 });
    expect(first).toContainEqual({ kind: "counter", name: `${hitsName}.over_limit`, increase: 1 });
    expect(first).toContainEqual({
      kind: "counter",
      name: "ratelimit.service.config_load_success",
      increase: 2,
    });
    expect(take()).toEqual([]);
    sources.count(0, { total: 2, within: 2 });
    expect(take()).toEqual([
      { kind: "counter", name: `${hitsName}.total_hits`, increase: 2 },
      { kind: "counter", name: `${hitsName}.within_limit`, increase: 2 },
    ]);
  });

  it("tells states each time", () => {
    sources.pools = [{ name: "redis_pool", counts: { activeCount: 1, openedCount: 1 } }];
    const gauge = { kind: "gauge", name: "ratelimit.redis_pool.cx_active", value: 1 };
    expect(take()).toContainEqual(gauge);
    expect(take()).toEqual([gauge]);
  });

  it("tells times by the upper bounds of their buckets, and the longest by the last bound", () => {
    take();
    sources.counters.countLatency(0.3);
    sources.counters.countLatency(0.4);
    sources.counters.countLatency(90_000);
    const name = "ratelimit_server.ShouldRateLimit.response_time";
    expect(take()).toEqual([
      { kind: "times", name, timeMs: 0.5, count: 2 },
      { kind: "times", name, timeMs: 1_000, count: 1 },
    ]);
    expect(take()).toEqual([]);
  });

  it("counts on over a reload that keeps a rule, and from nothing for one that came back", () => {
    take();
    sources.count(0, { total: 3 });
    take();
    sources.policy = testPolicy([{ path: ["user"], effect: [testLimit(9)] }], "v2");
    sources.count(0, { total: 1 });
    const one = { kind: "counter", name: `${hitsName}.total_hits`, increase: 1 };
    expect(take()).toEqual([one]);
    sources.policy = testPolicy([{ path: ["other"], effect: [testLimit(9)] }], "v3");
    expect(take()).toEqual([]);
    sources.policy = testPolicy([{ path: ["user"], effect: [testLimit(9)] }], "v4");
    sources.count(0, { total: 1 });
    expect(take()).toEqual([one]);
  });

  it("leaves out a name that fits into no packet, and says so", () => {
    take();
    sources.countDetailed(0, "x".repeat(statNameLengthMax), { total: 1 });
    expect(take()).toEqual([]);
    expect(droppedCount).toBe(1);
  });
});
