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

/** Parts that every subsystem receives. */
export interface Runtime {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly parser: ParsesPolicies;
  /** Identifier of this replica in the fleet and in the audit log. */
  readonly replica: string;
  /** Destination of exported log lines. Undefined: there is none. */
  readonly logExport: OpenExport | undefined;
  /** Each subsystem adds its own metrics. */
  readonly metrics: Metrics;
  readonly loopActivity: LoopActivity;
  readonly processCounts: ProcessCounts;
  /** Counts a bug and logs where it happened. */
  readonly onBug: (thrown: unknown) => void;
  /** Returns a callback that counts and logs connections to a port above one address's maximum. */
  readonly refusedAt: (port: SharedPort) => () => void;
}

/** Parts that may be given from outside. The defaults are the real ones, and a silent log. */
export interface AppParts {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly logger?: Logger;
  /** Parses policies. Default: a worker thread, so that a long policy delays no call. */
  readonly parser?: ParsesPolicies;
  /** Identifier of this replica. Default: random. */
  readonly replica?: string;
  /** Destination of exported log lines. Undefined: there is none. */
  readonly logExport?: OpenExport | undefined;
  /** Called when everything is open, before the first call is answered. Default: nothing. */
  readonly beforeServing?: (() => void) | undefined;
}

/** Creates the parts that subsystems run with. */
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

/** Minimum time between two reports of bugs, in ms: a caller may repeat a bug at full speed. */
const bugReportMsMin = 1_000;

/** Counts every bug and logs where it happened, at most once in `bugReportMsMin`. */
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
