import { describe, expect, it } from "vitest";
import { LaneCounts, laneMetrics } from "../../../../src/app/metrics/lane-metrics.js";

describe("laneMetrics()", () => {
  it("tells ends by their causes, and resets by their codes", () => {
    const counts = new LaneCounts();
    counts.countEnd({ kind: "peer" });
    counts.countEnd({ kind: "left" });
    counts.countEnd({ kind: "time", why: "stalled" });
    counts.countEnd({ kind: "error", code: 0xb });
    counts.countEnd({ kind: "error", code: 0xb });
    counts.countReset(0x7);
    const seen: unknown[] = [];
    for (const { name, read } of laneMetrics(counts)) {
      read((value, labels) => seen.push([name, value, labels]));
    }
    expect(seen).toEqual([
      ["headgate_lane_ended_connections_total", 1, { cause: "peer" }],
      ["headgate_lane_ended_connections_total", 1, { cause: "left" }],
      ["headgate_lane_ended_connections_total", 1, { cause: "stalled" }],
      ["headgate_lane_ended_connections_total", 2, { cause: "enhance_your_calm" }],
      ["headgate_lane_reset_streams_total", 1, { code: "refused_stream" }],
    ]);
  });
});
