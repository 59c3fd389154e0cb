import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createLogger, type ProcessLogger } from "../../src/app/base/logger.js";
import { createMetrics } from "../../src/app/base/metrics.js";
import type { OtlpProtocol } from "../../src/app/config/otlp-choice.js";
import { queuedLinesMax } from "../../src/app/telemetry/logs-sdk.js";
import {
  exportMetrics,
  type OpenExport,
  openLogExport,
} from "../../src/app/telemetry/otlp-export.js";
import {
  type CollectorAnswer,
  type ReceivedLog,
  startOtlpCollector,
  startOtlpGrpcCollector,
} from "../support/otlp-collector.js";
import { realClock } from "../support/real-clock.js";
import { useStage } from "../support/stage.js";
import { useEnvironment } from "../support/test-environment.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const environment = useEnvironment();

interface Opened {
  readonly logger: ProcessLogger;
  readonly logExport: OpenExport;
  readonly written: () => string;
}

async function open(
  port: number,
  {
    protocol = "http/protobuf" as OtlpProtocol,
    logLevel = "info" as const,
    logFormat = "json" as "json" | "text",
  } = {},
): Promise<Opened> {
  const path = protocol === "grpc" ? "" : "/v1/logs";
  environment.set("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", `http://127.0.0.1:${port}${path}`);
  const file = join(stage.folder, "log");
  // It stays open: an export that fails after its test writes a line, and would write it into
  // whatever has this number by then.
  const fd = openSync(file, "w");
  const logger = await createLogger({ logLevel, logFormat }, { fd, isTerminal: false });
  const choice = { service: { serviceName: "limits" }, logs: { protocol } };
  const logExport = await openLogExport(choice, { clock: realClock, logger, replica: "r-1" });
  if (logExport === undefined) throw new Error("nothing was opened");
  return { logger, logExport, written: () => readFileSync(file, "utf8") };
}

const taken: CollectorAnswer = { status: 200 };

describe("openLogExport()", () => {
  it.each([
    ["http/protobuf", "json"],
    ["http/protobuf", "text"],
    ["grpc", "json"],
  ] as const)("sends over %s what is written as %s", async (protocol, logFormat) => {
    const start = protocol === "grpc" ? startOtlpGrpcCollector : startOtlpCollector;
    const collector = await start(stage);
    const { logger, logExport } = await open(collector.port, { protocol, logFormat });
    const facts = { version: "v1", ruleCount: 3, ratio: 0.5, isNew: true, ports: [1, 2] };
    logger.info({ event: "policyLoaded", ...facts, at: { line: 7 } }, "A policy.");
    logger.debug({ event: "detail" }, "Too fine for this level.");
    logger.warn({ event: "w" }, "Warned.");
    logger.error({ event: "e" }, "Failed.");
    await logExport.close();
    const logs: readonly ReceivedLog[] = collector.exports.flatMap((one) => one.logs);
    expect(logs.map(({ severity, event, body }) => ({ severity, event, body }))).toEqual([
      { severity: 9, event: "logExport", body: "Log lines are sent to a collector." },
      { severity: 9, event: "policyLoaded", body: "A policy." },
      { severity: 13, event: "w", body: "Warned." },
      { severity: 17, event: "e", body: "Failed." },
    ]);
    expect(logs[1]?.attributes).toEqual({ ...facts, at: { line: 7 } });
    expect(logs[1]?.timeNano).toBeGreaterThan(0n);
    expect(collector.exports[0]?.resource).toMatchObject({
      "service.name": "limits",
      "service.instance.id": "r-1",
    });
  });

  it("sends nothing that must never be written", async () => {
    const collector = await startOtlpCollector(stage);
    const { logger, logExport, written } = await open(collector.port);
    logger.info({ event: "x", password: "secret-73", target: { auth: "secret-73" } }, "x");
    await logExport.close();
    expect(collector.text).toContain("[redacted]");
    expect(collector.text).not.toContain("secret-73");
    expect(written()).not.toContain("secret-73");
  });

  it("does not send what it writes of itself when a collector takes nothing", async () => {
    environment.set("OTEL_EXPORTER_OTLP_TIMEOUT", "300");
    const collector = await startOtlpCollector(stage, (n) => (n === 1 ? { status: 500 } : taken));
    const { logger, logExport, written } = await open(collector.port);
    await waitFor("the first message fails", () => logExport.counts.failedCount === 1);
    expect(written()).toContain('"otlpExportFailed"');
    logger.info({ event: "later" }, "Later.");
    await logExport.close();
    const logs = collector.exports.flatMap((one) => one.logs);
    expect(logs.map(({ event }) => event)).toEqual(["later"]);
  });

  it("drops and counts lines above the bound while a collector does not answer", async () => {
    environment.set("OTEL_EXPORTER_OTLP_TIMEOUT", "60000");
    const collector = await startOtlpCollector(stage, () => "silence");
    const { logger, logExport } = await open(collector.port);
    // One line tells that lines are sent.
    for (let i = 0; i < queuedLinesMax + 99; i += 1) logger.info({ event: "x", i }, "x");
    expect(logExport.counts.droppedCount).toBe(100);
    const metrics = createMetrics();
    metrics.add(exportMetrics({ metrics: undefined, logs: logExport }));
    const text = await metrics.render();
    expect(text).toContain("headgate_otlp_dropped_log_lines_total 100");
    expect(text).toContain('headgate_otlp_failed_exports_total{signal="logs"} 0');
    await waitFor("it got a message", () => collector.messageCount > 0);
  });

  it("has room again for lines after a message that nobody took", async () => {
    environment.set("OTEL_EXPORTER_OTLP_TIMEOUT", "300");
    const collector = await startOtlpCollector(stage, () => ({ status: 400 }));
    const { logger, logExport } = await open(collector.port);
    for (let i = 0; i < queuedLinesMax + 99; i += 1) logger.info({ event: "x", i }, "x");
    await waitFor("all messages fail", () => logExport.counts.failedCount >= 4);
    const { droppedCount } = logExport.counts;
    logger.info({ event: "y" }, "y");
    expect(logExport.counts.droppedCount).toBe(droppedCount);
    await logExport.close();
  });

  it("cuts long texts", async () => {
    const collector = await startOtlpCollector(stage);
    const { logger, logExport } = await open(collector.port);
    logger.info({ event: "x", long: "a".repeat(100_000) }, "b".repeat(100_000));
    await logExport.close();
    expect(collector.text.length).toBeLessThan(20_000);
  });
});
