import type { Clock } from "../../core/base/clock.js";
import { LogInterval } from "../../core/base/log-interval.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger, ProcessLogger } from "../base/logger.js";
import type { AddSeries, MetricGroup, Metrics } from "../base/metrics.js";
import type { OtlpChoice } from "../config/otlp-choice.js";
import { type ExportCounts, type ExportParts, failedEvent } from "./export-parts.js";

/** An open export to a collector. */
export interface OpenExport {
  readonly counts: ExportCounts;
  /** Sends what is left, within `closeMsMax`. Never rejects. */
  close(): Promise<void>;
}

interface OpenParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Identifier of this replica, if the choice has none. */
  readonly replica: string;
}

/** Maximum time for the last messages, in milliseconds. */
export const closeMsMax = 5_000;

/** Minimum time between two log lines on failures to send, in ms. Each failure is counted. */
const failedLineMsMin = 60_000;

/**
 * Pushes metrics to a collector, in addition to scraping.
 *
 * @returns undefined if the choice has no metrics
 * @throws StartFailure for settings of OpenTelemetry that its libraries refuse
 */
export async function openMetricExport(
  choice: OtlpChoice | undefined,
  parts: OpenParts & { readonly metrics: Metrics },
): Promise<OpenExport | undefined> {
  if (choice?.metrics === undefined) return undefined;
  const { metrics, service } = choice;
  const { clock, logger, replica: serviceInstanceId } = parts;
  const { createMetricExport } = await import("./metrics-sdk.js");
  const exportParts = createParts("metrics", parts);
  const opened = createBySettings(() =>
    createMetricExport(
      { ...metrics, identity: { serviceInstanceId, ...service } },
      { ...exportParts, families: () => parts.metrics.families() },
    ),
  );
  logger.info({ event: "metricExport", ...metrics }, "Metrics are pushed to a collector.");
  return { counts: exportParts.counts, close: () => endWithin(clock, opened) };
}

/**
 * Sends each line of the log to a collector, from now on.
 *
 * @returns undefined if the choice has no logs
 * @throws StartFailure for settings of OpenTelemetry that its libraries refuse
 */
export async function openLogExport(
  choice: OtlpChoice | undefined,
  parts: OpenParts & { readonly logger: ProcessLogger },
): Promise<OpenExport | undefined> {
  if (choice?.logs === undefined) return undefined;
  const { logs, service } = choice;
  const { clock, logger, replica: serviceInstanceId } = parts;
  const { createLogExport } = await import("./logs-sdk.js");
  const exportParts = createParts("logs", parts);
  const opened = createBySettings(() =>
    createLogExport({ ...logs, identity: { serviceInstanceId, ...service } }, exportParts),
  );
  logger.onLine(opened.take);
  logger.info({ event: "logExport", ...logs }, "Log lines are sent to a collector.");
  return { counts: exportParts.counts, close: () => endWithin(clock, opened) };
}

/** Returns the metrics of exports. An export that is off has none. */
export function exportMetrics(exports: {
  readonly metrics: OpenExport | undefined;
  readonly logs: OpenExport | undefined;
}): MetricGroup {
  const { metrics, logs } = exports;
  const isAny = metrics !== undefined || logs !== undefined;
  return {
    counters: [
      ...(isAny
        ? [
            {
              name: "headgate_otlp_failed_exports_total",
              help: "Messages that no OpenTelemetry collector took, by what is in them.",
              labelNames: ["signal"],
              read: (add: AddSeries) => {
                if (metrics !== undefined) add(metrics.counts.failedCount, { signal: "metrics" });
                if (logs !== undefined) add(logs.counts.failedCount, { signal: "logs" });
              },
            },
          ]
        : []),
      ...(logs === undefined
        ? []
        : [
            {
              name: "headgate_otlp_dropped_log_lines_total",
              help: "Log lines that were not sent to a collector because the queue was full.",
              read: (add: AddSeries) => add(logs.counts.droppedCount),
            },
          ]),
    ],
  };
}

function createParts(signal: "metrics" | "logs", { clock, logger }: OpenParts): ExportParts {
  const counts = { failedCount: 0, droppedCount: 0 };
  const lines = new LogInterval<"failed">(failedLineMsMin);
  const onFailed = (reason: string): void => {
    counts.failedCount += 1;
    if (!lines.begins("failed", clock.monotonicMs())) return;
    const { failedCount } = counts;
    const words = `The OpenTelemetry collector takes no ${signal}; decisions go on.`;
    logger.warn({ event: failedEvent, signal, reason, failedCount }, words);
  };
  return { counts, onFailed };
}

/**
 * Creates a part of the SDK, which reads its own settings then. Its error is not passed on, because
 * it may quote the settings, including secrets.
 */
export function createBySettings<T>(create: () => T): T {
  try {
    return create();
  } catch {
    const words =
      "OpenTelemetry refuses a setting. Check OTEL_EXPORTER_OTLP_HEADERS and the others that " +
      "begin with OTEL_EXPORTER_OTLP_.";
    throw new StartFailure(exitCodes.usage, words);
  }
}

/** Closes within a time: an unreachable collector must not delay the end. Failures are ignored. */
export function endWithin(clock: Clock, open: { close(): Promise<void> }): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(closeMsMax, resolve);
    const end = (): void => {
      cancel();
      resolve();
    };
    open.close().then(end, end);
  });
}
