import { RefusalLog, type ToldRefusal } from "../../decide/rate-limit/refusal-log.js";
import type { Logger } from "../base/logger.js";
import type { ReadMetric } from "../base/metrics.js";
import type { Config } from "../config/config.js";

/** Levels at which lines of refusals are written. */
const writtenLevels: ReadonlySet<Config["logLevel"]> = new Set(["trace", "debug", "info"]);

/** Tells the log of refusals; undefined where the configuration wants none of it. */
export function createRefusalLog(
  { logLevel, refusalsLoggedPerSecond }: Pick<Config, "logLevel" | "refusalsLoggedPerSecond">,
  logger: Logger,
): RefusalLog | undefined {
  if (refusalsLoggedPerSecond === 0 || !writtenLevels.has(logLevel)) return undefined;
  const onRefused = (told: ToldRefusal): void => logRefusal(told, logger);
  return new RefusalLog({ perSecondMax: refusalsLoggedPerSecond, onRefused });
}

function logRefusal({ kind, ...told }: ToldRefusal, logger: Logger): void {
  const sentence =
    kind === "rule"
      ? "A rule refuses requests: refusedCount of them since its line before."
      : "A service refuses requests: refusedCount of them for this cause since its line before.";
  logger.info({ event: "refused", ...told }, sentence);
}

/** What the log does not say of refusals. */
export function refusalLogMetric(log: RefusalLog): ReadMetric {
  return {
    name: "headgate_refusals_unlogged_total",
    help: "Refused requests without a log line of their own; later lines say how many they were.",
    labelNames: [],
    read: (add) => add(log.untoldCount, {}),
  };
}
