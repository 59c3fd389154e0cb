import type { Clock } from "../../core/base/clock.js";
import { LogInterval } from "../../core/base/log-interval.js";
import type { DeciderEvent } from "../../decide/rate-limit/decider.js";
import type { OverloadCause } from "../../decide/rate-limit/pressure.js";
import { type LoggedRefusal, RefusalLog } from "../../decide/rate-limit/refusal-log.js";
import { type CpuWatch, lateReasonOf, lateRemedies } from "../base/cpu-watch.js";
import type { Logger } from "../base/logger.js";
import type { ReadMetric } from "../base/metrics.js";
import type { Config } from "../config/config.js";
import { remedyOf } from "../store/store-remedies.js";

interface DeciderLogParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly cpu: Pick<CpuWatch, "use">;
}

/** Minimum time between two lines about stalls, in milliseconds: a throttled pod has many. */
const stallLogMsMin = 60_000;

/** Creates a log of a decider's changes, not of single failures: an outage has thousands. */
export function createDeciderLog(parts: DeciderLogParts): (event: DeciderEvent) => void {
  const { clock, logger, cpu } = parts;
  const stallLines = new LogInterval<"stall">(stallLogMsMin);
  return (event) => {
    if (event.kind === "circuitOpened") {
      logger.warn(
        { event: event.kind, code: event.code, remedy: remedyOf(event.code) },
        "The store fails: limits answer with their on_store_failure, and single " +
          "probes test the store.",
      );
    } else if (event.kind === "circuitClosed") {
      logger.info({ event: event.kind }, "The store answers again.");
    } else if (event.kind === "overloadBegan") {
      logOverload(event.cause, parts);
    } else if (event.kind === "overloadEnded") {
      logger.info({ event: event.kind }, "No overload for 10 s.");
    } else if (event.kind === "loopStalled") {
      if (!stallLines.begins("stall", clock.monotonicMs())) return;
      const { stalledMs } = event;
      logger.info(
        { event: event.kind, stalledMs: Math.round(stalledMs), ...lateness(cpu, stalledMs) },
        "The process was paused for a moment. Logged at most once a minute.",
      );
    }
  };
}

function logOverload(cause: OverloadCause, { logger, cpu }: DeciderLogParts): void {
  const line = { event: "overloadBegan", cause };
  if (cause === "heap" || cause === "residentMemory") {
    logger.warn(
      line,
      "Memory is exhausted: calls are answered without parsing, by the strictest " +
        "on_store_failure, and admission answers by ownOverload.",
    );
  } else if (cause === "inFlight") {
    logger.warn(line, "Too many requests in flight: limits answer with their on_store_failure.");
  } else {
    logger.warn(
      { ...line, ...lateness(cpu, cpu.use.elapsedMs) },
      "Responses stay late: store limits answer with their on_store_failure, and " +
        "admission by ownOverload.",
    );
  }
}

/** Returns facts that distinguish a throttled process from a busy one. */
function lateness(cpu: Pick<CpuWatch, "use">, lateMs: number) {
  const { use } = cpu;
  const reason = lateReasonOf(use, lateMs);
  return { reason, remedy: lateRemedies[reason], cpu: use };
}

/** Log levels that include lines of refusals. */
const writtenLevels: ReadonlySet<Config["logLevel"]> = new Set(["trace", "debug", "info"]);

/** Creates the log of refusals. Undefined if the configuration turns it off. */
export function createRefusalLog(
  { logLevel, refusalsLoggedPerSecond }: Pick<Config, "logLevel" | "refusalsLoggedPerSecond">,
  logger: Logger,
): RefusalLog | undefined {
  if (refusalsLoggedPerSecond === 0 || !writtenLevels.has(logLevel)) return undefined;
  const onRefused = (reported: LoggedRefusal): void => logRefusal(reported, logger);
  return new RefusalLog({ perSecondMax: refusalsLoggedPerSecond, onRefused });
}

function logRefusal({ kind, ...reported }: LoggedRefusal, logger: Logger): void {
  const sentence =
    kind === "rule"
      ? "A rule denies requests; refusedCount is their number since its last line."
      : "A service refuses requests; refusedCount is their number for this cause " +
        "since its last line.";
  logger.info({ event: "refused", ...reported }, sentence);
}

/** Counts refusals without their own log line. */
export function refusalLogMetric(log: RefusalLog): ReadMetric {
  return {
    name: "headgate_refusals_unlogged_total",
    help: "Refused requests without their own log line; later lines contain their number.",
    labelNames: [],
    read: (add) => add(log.unloggedCount, {}),
  };
}
