import type { Clock, Random } from "../../core/base/clock.js";
import { LogInterval } from "../../core/base/log-interval.js";
import { systemClock, systemRandom } from "../../host/clock.js";
import { createRefusedReport, type SharedPort } from "../base/address-bound.js";
import { bugTrace } from "../base/failure.js";
import { type Logger, silentLogger } from "../base/logger.js";
import { LoopActivity } from "../base/loop-activity.js";
import { createProcessMetrics, type Metrics } from "../base/metrics.js";
import { readVersion } from "../base/version.js";
import type { Config } from "../config/config.js";
import {
  newProcessCounts,
  type ProcessCounts,
  processMetrics,
} from "../metrics/process-metrics.js";
import { type ParsesPolicies, parsePolicyInWorker } from "../policy/policy-parsing.js";
import type { OpenExport } from "../telemetry/otlp-export.js";

/** What every subsystem has. */
export interface Runtime {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly parser: ParsesPolicies;
  /** What this replica is called in the fleet and in the audit log. */
  readonly replica: string;
  /** Where the lines of the log are sent; undefined: nowhere. */
  readonly logExport: OpenExport | undefined;
  /** Each subsystem adds its own. */
  readonly metrics: Metrics;
  readonly loopActivity: LoopActivity;
  readonly processCounts: ProcessCounts;
  /** Counts a bug and logs where it happened. */
  readonly onBug: (thrown: unknown) => void;
  /** Counts connections to a port above what one address may have, and logs them. */
  readonly refusedAt: (port: SharedPort) => () => void;
}

/** What may be given from outside; the defaults are the real ones, and a silent log. */
export interface AppParts {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly logger?: Logger;
  /** Reads policies. Default: a worker thread, so that a long one holds up no call. */
  readonly parser?: ParsesPolicies;
  /** What this replica is called. Default: random. */
  readonly replica?: string;
  /** Where the lines of the log are sent; undefined: nowhere. */
  readonly logExport?: OpenExport | undefined;
  /** Called once all is open, before the first call is answered. Default: nothing. */
  readonly beforeServing?: (() => void) | undefined;
}

/** What subsystems run with. */
export function createRuntime(config: Config, given: AppParts): Runtime {
  const { clock = systemClock, random = systemRandom, logger = silentLogger } = given;
  const { parser = parsePolicyInWorker, replica = random.id(), logExport } = given;
  const processCounts = newProcessCounts();
  const loopActivity = new LoopActivity({ clock });
  const metrics = createProcessMetrics(loopActivity.metrics);
  metrics.add(processMetrics(processCounts, readVersion()));
  const parts = { config, clock, random, logger, parser };
  const common = { ...parts, metrics, processCounts, loopActivity };
  return {
    ...common,
    replica,
    logExport,
    onBug: createBugReport(common),
    refusedAt: createRefusedReport(processCounts.refusedConnections, common),
  };
}

/** Least time between two reports of bugs: a caller that found one may repeat it at full speed. */
const bugReportMsMin = 1_000;

/** Counts every bug and logs where it happened, within `bugReportMsMin` once. */
function createBugReport({
  clock,
  logger,
  processCounts,
}: Pick<Runtime, "clock" | "logger" | "processCounts">): (thrown: unknown) => void {
  const lines = new LogInterval<"bug">(bugReportMsMin);
  return (thrown) => {
    processCounts.bugCount += 1;
    if (!lines.begins("bug", clock.monotonicMs())) return;
    logger.error(
      { event: "bug", ...bugTrace(thrown) },
      "A call failed because of an internal error.",
    );
  };
}
