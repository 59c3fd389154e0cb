import { describe, expect, it } from "vitest";
import {
  NativeTransportCounts,
  nativeTransportMetrics,
} from "../../../../src/app/metrics/grpc-port-metrics.js";

describe("nativeTransportMetrics()", () => {
  it("tells ends by their causes, and resets by their codes", () => {
    const counts = new NativeTransportCounts();
    counts.countEnd({ kind: "peer" });
    counts.countEnd({ kind: "left" });
    counts.countEnd({ kind: "time", why: "stalled" });
    counts.countEnd({ kind: "error", code: 0xb });
    counts.countEnd({ kind: "error", code: 0xb });
    counts.countReset(0x7);
    const seen: unknown[] = [];
    for (const { name, read } of nativeTransportMetrics(counts)) {
      read((value, labels) => seen.push([name, value, labels]));
    }
    expect(seen).toEqual([
      ["headgate_native_transport_ended_connections_total", 1, { cause: "peer" }],
      ["headgate_native_transport_ended_connections_total", 1, { cause: "left" }],
      ["headgate_native_transport_ended_connections_total", 1, { cause: "stalled" }],
      ["headgate_native_transport_ended_connections_total", 2, { cause: "enhance_your_calm" }],
      ["headgate_native_transport_reset_streams_total", 1, { code: "refused_stream" }],
    ]);
  });
});
