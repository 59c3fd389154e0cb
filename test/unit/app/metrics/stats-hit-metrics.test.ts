import { beforeEach, describe, expect, it } from "vitest";
import { createMetrics } from "../../../../src/app/base/metrics.js";
import {
  detailedLabelLengthMax,
  hitMetrics,
} from "../../../../src/app/metrics/stats-hit-metrics.js";
import { createTestSources, type TestSources } from "../../../support/stats-sources.js";

let sources: TestSources;

beforeEach(() => {
  sources = createTestSources();
});

async function lines(): Promise<readonly string[]> {
  const metrics = createMetrics();
  metrics.add({ counters: hitMetrics(sources) });
  // Twice: what is read when scraped must not add up.
  await metrics.render();
  return (await metrics.render())
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
}

describe("hitMetrics()", () => {
  it("shows nothing of rules that nobody met", async () => {
    expect(await lines()).toEqual([]);
  });

  it("shows outcomes that exclude each other", async () => {
    const hits = { total: 10, within: 4, over: 6, shadow: 2, near: 1, overFromMemory: 3 };
    sources.count(0, { ...hits, refunded: 5 });
    const labels = 'domain="shop",rule="user"';
    expect(await lines()).toEqual([
      `headgate_hits_total{${labels},outcome="within"} 4`,
      `headgate_hits_total{${labels},outcome="over"} 4`,
      `headgate_hits_total{${labels},outcome="shadow_over"} 2`,
      `headgate_hits_total{${labels},outcome="refunded"} 5`,
      `headgate_near_limit_hits_total{${labels}} 1`,
      `headgate_over_limit_cache_hits_total{${labels}} 3`,
    ]);
  });

  it("shows callers' values only under names of their own, escaped", async () => {
    sources.countDetailed(0, 'user_a"b\\c\nd', { total: 1, within: 1 });
    expect(await lines()).toEqual([
      'headgate_detailed_hits_total{domain="shop",rule="user",path="user_a\\"b\\\\c_d",' +
        'outcome="within"} 1',
    ]);
  });

  it("cuts long values off, between characters, and adds up what then reads the same", async () => {
    const start = `user_${"x".repeat(detailedLabelLengthMax - 6)}`;
    sources.countDetailed(0, `${start}\u{1F600}1`, { total: 1, within: 1 });
    sources.countDetailed(0, `${start}\u{1F600}2`, { total: 1, within: 1 });
    expect(await lines()).toEqual([
      `headgate_detailed_hits_total{domain="shop",rule="user",path="${start}",outcome="within"} 2`,
    ]);
  });
});
