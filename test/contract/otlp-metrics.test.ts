import { beforeEach, describe, expect, it } from "vitest";
import { StartFailure } from "../../src/app/base/failure.js";
import type { LogEvent, Logger } from "../../src/app/base/logger.js";
import { createProcessMetrics, type Metrics } from "../../src/app/base/metrics.js";
import type { OtlpProtocol } from "../../src/app/config/otlp-choice.js";
import { latencyHistogram } from "../../src/app/metrics/decision-metrics.js";
import {
  closeMsMax,
  type OpenExport,
  openMetricExport,
} from "../../src/app/telemetry/otlp-export.js";
import type { Clock } from "../../src/core/base/clock.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { FakeClock, settlePromises } from "../support/fake-clock.js";
import {
  type CollectorAnswer,
  type OtlpCollector,
  type ReceivedExport,
  type ReceivedPoint,
  startOtlpCollector,
  startOtlpGrpcCollector,
} from "../support/otlp-collector.js";
import { realClock } from "../support/real-clock.js";
import { useStage } from "../support/stage.js";
import { useEnvironment } from "../support/test-environment.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");
const environment = useEnvironment();

const hourMs = 3_600_000;

let events: LogEvent[];
let counters: DecisionCounters;
let metrics: Metrics;

beforeEach(() => {
  events = [];
  counters = new DecisionCounters();
  metrics = createProcessMetrics();
  metrics.add({
    counters: [
      {
        name: "headgate_requests_total",
        help: "Requests.",
        labelNames: ["code"],
        read: (add) => add(counters.okCount, { code: "ok" }),
      },
    ],
    gauges: [
      {
        name: "headgate_admission_inflight_max",
        help: "Most.",
        labelNames: ["service"],
        read: (add) => {
          add(Number.POSITIVE_INFINITY, { service: "open" });
          add(7.5, { service: 'a "b"\n' });
        },
      },
    ],
    histograms: [
      latencyHistogram(counters, { name: "headgate_decision_duration_seconds", unitMs: 1_000 }),
    ],
  });
  for (const elapsedMs of [0.05, 0.7, 0.7, 5_000]) counters.countLatency(elapsedMs);
  counters.okCount = 4;
});

const note = (event: LogEvent): void => {
  events.push(event);
};
const logger: Logger = { debug: note, info: note, warn: note, error: note };

async function open(
  port: number,
  {
    protocol = "http/protobuf" as OtlpProtocol,
    intervalMs = hourMs,
    clock = realClock as Clock,
  } = {},
): Promise<OpenExport> {
  const path = protocol === "grpc" ? "" : "/v1/metrics";
  environment.set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", `http://127.0.0.1:${port}${path}`);
  const choice = { service: { serviceName: "limits" }, metrics: { protocol, intervalMs } };
  const opened = await openMetricExport(choice, { clock, logger, replica: "r-1", metrics });
  if (opened === undefined) throw new Error("nothing was opened");
  return opened;
}

/** The series of messages in the words of a scrape, without those that change by themselves. */
function lines(exports: readonly ReceivedExport[]): readonly string[] {
  return exports
    .flatMap((one) => one.metrics)
    .flatMap(({ name, points }) => points.flatMap((point) => pointLines(name, point)))
    .filter((line) => line.startsWith("headgate_"))
    .sort();
}

function pointLines(name: string, { labels, value, histogram }: ReceivedPoint): readonly string[] {
  if (histogram === undefined) return [`${name}${labelText(labels)} ${numberText(value)}`];
  const { bounds, counts, count, sum } = histogram;
  let below = 0;
  const buckets = counts.map((inBucket, i) => {
    below += inBucket;
    return `${name}_bucket${labelText({ ...labels, le: bounds[i] ?? "+Inf" })} ${below}`;
  });
  return [...buckets, `${name}_sum${labelText(labels)} ${sum}`, `${name}_count ${count}`];
}

function labelText(labels: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    return `${name}="${String(value).replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
  });
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function numberText(value: number | undefined): string {
  return value === Number.POSITIVE_INFINITY ? "+Inf" : String(value);
}

async function scraped(): Promise<readonly string[]> {
  const text = await metrics.render();
  return text
    .split("\n")
    .filter((line) => line.startsWith("headgate_"))
    .sort();
}

function failures(): readonly LogEvent[] {
  return events.filter(({ event }) => event === "otlpExportFailed");
}

describe("openMetricExport()", () => {
  it.each(["http/protobuf", "http/json", "grpc"] as const)(
    "pushes over %s what a scrape shows, under the same names",
    async (protocol) => {
      const start = protocol === "grpc" ? startOtlpGrpcCollector : startOtlpCollector;
      const collector = await start(stage);
      await (await open(collector.port, { protocol })).close();
      const expected = await scraped();
      // JSON has no infinity.
      const known =
        protocol === "http/json" ? expected.filter((one) => !/Inf$/.test(one)) : expected;
      expect(lines(collector.exports)).toEqual(known);
      const all = collector.exports.flatMap((one) => one.metrics);
      expect(all.map(({ name }) => name)).toContain("process_cpu_seconds_total");
      expect(new Set(all.map(({ unit }) => unit))).toEqual(new Set([""]));
      const kinds = new Map(all.map((one) => [one.name, one] as const));
      expect(kinds.get("headgate_requests_total")).toMatchObject({
        kind: "sum",
        isMonotonic: true,
        temporality: 2,
      });
      expect(kinds.get("headgate_decision_duration_seconds")).toMatchObject({
        kind: "histogram",
        temporality: 2,
      });
      expect(kinds.get("headgate_admission_inflight_max")?.kind).toBe("gauge");
      expect(collector.exports[0]?.resource).toMatchObject({
        "service.name": "limits",
        "service.instance.id": "r-1",
      });
    },
  );

  it("goes on counting from the start of the process, from push to push", async () => {
    const collector = await startOtlpCollector(stage);
    const opened = await open(collector.port, { intervalMs: 100 });
    await waitFor("the first push", () => collector.exports.length > 0);
    counters.okCount = 9;
    await opened.close();
    const points = collector.exports.flatMap((one) =>
      one.metrics.flatMap(({ name, points: own }) =>
        name === "headgate_requests_total" ? own : [],
      ),
    );
    const [first, last] = [points[0], points.at(-1)];
    expect([first?.value, last?.value]).toEqual([4, 9]);
    expect(last?.startNano).toBe(first?.startNano);
    const startMs = Number((first?.startNano ?? 0n) / 1_000_000n);
    expect(startMs).toBe(Math.floor(performance.timeOrigin));
    expect(first?.timeNano).toBeLessThanOrEqual(last?.timeNano ?? 0n);
    expect(first?.timeNano).toBeGreaterThan(first?.startNano ?? 0n);
  });

  it("splits what is too much for a message", async () => {
    const collector = await startOtlpCollector(stage);
    metrics.add({
      gauges: [
        {
          name: "headgate_many",
          help: "Many.",
          labelNames: ["n"],
          read: (add) => {
            for (let n = 0; n < 10_000; n += 1) add(n, { n: String(n) });
          },
        },
      ],
    });
    await (await open(collector.port)).close();
    expect(collector.exports.length).toBeGreaterThanOrEqual(5);
    expect(lines(collector.exports)).toEqual(await scraped());
  });

  it("sends the headers that the standard variable has", async () => {
    environment.set("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "authorization=Bearer%20secret-73");
    const collector = await startOtlpCollector(stage);
    await (await open(collector.port)).close();
    expect(collector.exports[0]?.headers.authorization).toBe("Bearer secret-73");
    expect(JSON.stringify(events)).not.toContain("secret-73");
  });
});

describe("openMetricExport() without a collector that takes metrics", () => {
  it.each<[string, CollectorAnswer, string]>([
    ["an error", { status: 500 }, "status 500"],
    ["a refusal", { status: 401 }, "status 401"],
    ["a wait of 30 years", { status: 503, headers: { "retry-after": "999999999" } }, "no answer"],
    ["a wait of no number", { status: 429, headers: { "retry-after": "NaN, x" } }, "no answer"],
    ["a wait below 0", { status: 503, headers: { "retry-after": "-5" } }, "no answer"],
  ])("counts and logs %s, once for many pushes", async (_, answer, reason) => {
    environment.set("OTEL_EXPORTER_OTLP_TIMEOUT", "300");
    const collector = await startOtlpCollector(stage, () => answer);
    const opened = await open(collector.port, { intervalMs: 400 });
    await waitFor("two pushes fail", () => opened.counts.failedCount >= 2);
    expect(failures()).toHaveLength(1);
    expect(failures()[0]).toMatchObject({ signal: "metrics" });
    expect(failures()[0]?.["reason"]).toContain(reason);
    await opened.close();
  });

  it.each([
    ["is away", 9],
    ["never answers", undefined],
  ])("ends although a collector %s", async (_, awayPort) => {
    environment.set("OTEL_EXPORTER_OTLP_TIMEOUT", "60000");
    const collector = await startOtlpCollector(stage, () => "silence");
    const clock = new FakeClock();
    const opened = await open(awayPort ?? collector.port, { clock });
    let hasEnded = false;
    const ending = opened.close().then(() => {
      hasEnded = true;
    });
    clock.advance(closeMsMax - 1);
    await settlePromises();
    expect(hasEnded).toBe(false);
    clock.advance(1);
    await within("it ends", 1_000, ending);
  });

  it("pushes again when a collector is back", async () => {
    environment.set("OTEL_EXPORTER_OTLP_TIMEOUT", "300");
    const collector = await startOtlpCollector(stage, (n) => ({ status: n < 3 ? 500 : 200 }));
    const opened = await open(collector.port, { intervalMs: 300 });
    await waitFor("a push arrives", () => collector.exports.length > 0);
    expect(opened.counts.failedCount).toBe(2);
    await opened.close();
  });

  it.each(["http/protobuf", "grpc"] as const)(
    "says nothing of headers that cannot be sent over %s",
    async (protocol) => {
      environment.set("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "token=secret-73%0d%0ax: y");
      const start = protocol === "grpc" ? startOtlpGrpcCollector : startOtlpCollector;
      const collector: OtlpCollector = await start(stage);
      const opening = open(collector.port, { protocol });
      if (protocol === "grpc") {
        await expect(opening).rejects.toThrow(StartFailure);
        await expect(opening).rejects.toThrow(/OTEL_EXPORTER_OTLP_HEADERS/);
        await expect(opening).rejects.not.toThrow(/secret-73/);
      } else {
        const opened = await opening;
        await opened.close();
        expect(opened.counts.failedCount).toBe(1);
      }
      expect(collector.messageCount).toBe(0);
      expect(JSON.stringify(events)).not.toContain("secret-73");
    },
  );
});
