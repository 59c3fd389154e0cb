import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { TimedRequest } from "../../src/recommend/services/request-sweep.js";
import { captureCli } from "../support/cli.js";
import { startPrometheus } from "../support/prometheus.js";
import { runWorld } from "../support/service-world.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limit: {unit: second, requests_per_unit: 20}
  services:
    - name: orders
      hosts: [orders.example]
      upstream: {address: orders.shop.svc, port: 80}
      admission: {}
    - name: quiet
      hosts: [quiet.example]
`;

/** Envoy's default buckets of a histogram, in milliseconds. */
const bucketsMs = [0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000];
const manyBucketsMs = [...bucketsMs, 60_000, 300_000, 600_000, 1_800_000, 3_600_000];

const scrapeMs = 15_000;

/** What an Envoy of the world would have told a Prometheus, up to now. */
function samplesOf(requests: readonly TimedRequest[], nowMs: number): string {
  const ended = requests
    .map(({ startUs, durationUs }) => ({ endMs: (startUs + durationUs) / 1_000, durationUs }))
    .sort((one, other) => one.endMs - other.endMs);
  const shiftMs = nowMs - (ended.at(-1)?.endMs ?? 0);
  const counts = manyBucketsMs.map(() => 0);
  let [count, sumMs, at] = [0, 0, 0];
  const series = new Map<string, string[]>();
  const add = (name: string, value: number, timeMs: number): void => {
    const lines = series.get(name) ?? [];
    series.set(name, lines);
    lines.push(`${name} ${value} ${timeMs / 1_000}`);
  };
  const cluster = 'envoy_cluster_name="orders"';
  const firstMs = (ended[0]?.endMs ?? 0) + shiftMs;
  for (let timeMs = firstMs; timeMs <= nowMs; timeMs += scrapeMs) {
    for (; at < ended.length; at += 1) {
      const { endMs = Number.POSITIVE_INFINITY, durationUs = 0 } = ended[at] ?? {};
      if (endMs + shiftMs > timeMs) break;
      count += 1;
      sumMs += durationUs / 1_000;
      for (const [i, boundMs] of manyBucketsMs.entries()) {
        if (durationUs / 1_000 <= boundMs) counts[i] = (counts[i] ?? 0) + 1;
      }
    }
    for (const [i, bucket] of counts.entries()) {
      const labels = `${cluster},le="${manyBucketsMs[i]}"`;
      add(`envoy_cluster_upstream_rq_time_bucket{${labels}}`, bucket, timeMs);
    }
    add(`envoy_cluster_upstream_rq_time_bucket{${cluster},le="+Inf"}`, count, timeMs);
    add(`envoy_cluster_upstream_rq_time_count{${cluster}}`, count, timeMs);
    add(`envoy_cluster_upstream_rq_time_sum{${cluster}}`, sumMs, timeMs);
    const failed = `${cluster},envoy_response_code_class="5"`;
    add(`envoy_cluster_upstream_rq_xx{${failed}}`, Math.floor(count / 50), timeMs);
    add(`envoy_cluster_upstream_cx_active{${cluster}}`, 700, timeMs);
    add('envoy_server_memory_heap_size{instance="edge-1"}', 150 * 2 ** 20, timeMs);
    for (const address of ["a", "b"]) {
      const labels = `instance="edge-1",envoy_listener_address="${address}"`;
      add(`envoy_listener_downstream_cx_active{${labels}}`, 400, timeMs);
    }
    add('headgate_decisions_total{domain="shop",rule="user",outcome="ok"}', 2 * count, timeMs);
  }
  return `${[...series.values()].flat().join("\n")}\n# EOF\n`;
}

describe("headgate recommend --prometheus", () => {
  it("finds the workers of a service in a real Prometheus", async () => {
    const world = {
      workers: 20,
      serviceTime: { kind: "lognormal", medianMs: 400, p99Ms: 2_500 },
      seed: 1,
    } as const;
    const phases = [0.2, 0.5, 0.8, 1.2, 0.7, 0.3].map((loadRatio) => ({ loadRatio, seconds: 900 }));
    const { requests, capacity } = runWorld(world, phases);
    const url = await startPrometheus(stage, samplesOf(requests, Date.now()));
    const policyPath = join(stage.folder, "policy.yaml");
    const editedPath = join(stage.folder, "edited.yaml");
    await writeFile(policyPath, policy);
    const args = ["recommend", "--policy", policyPath, "--prometheus", url, "--range", "100m"];
    const files = ["--write", editedPath, "--fixed", "-o", "json"];
    const { code, out, err } = await captureCli([...args, ...files]);
    expect(err).toBe("");
    expect(code).toBe(0);
    const { recommendation } = JSON.parse(out);
    const [orders, quiet] = recommendation.services;
    expect(orders.verdict.kind).toBe("seen");
    const { knee, perSecondMax } = orders.verdict.fit;
    expect(knee).toBeGreaterThan(16);
    expect(knee).toBeLessThan(27);
    expect(perSecondMax / capacity).toBeGreaterThan(0.9);
    expect(perSecondMax / capacity).toBeLessThan(1.1);
    expect(orders.observations.errorRatio).toBeCloseTo(0.02, 2);
    const valueAt = (path: string) =>
      [...orders.settings, ...recommendation.overload].find(
        (one: { readonly path: string }) => one.path === path,
      )?.value;
    expect(valueAt("admission.maxInFlight")).toBeGreaterThan(knee);
    expect(valueAt("circuitBreakers.maxConnections")).toBe(1_400);
    expect(valueAt("overload.maxHeap")).toBe("320Mi");
    expect(valueAt("overload.maxConnections")).toBe(1_600);
    expect(quiet.verdict).toEqual({ kind: "few", levelCount: 0 });
    expect(quiet.missing.join("\n")).toContain("--show-queries prints the queries");
    expect(recommendation.notEnough).toMatchObject([
      { subject: "shop/user", missing: [expect.stringContaining("needs an access log")] },
    ]);
    const check = await captureCli(["check", editedPath]);
    expect(check).toMatchObject({ code: 0 });
  });
});
