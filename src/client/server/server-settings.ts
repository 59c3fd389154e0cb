import type { PoolSettings } from "../../core/admission/permit-pool.js";
import {
  defaultShedThresholds,
  priorities,
  type ShedThresholds,
  shedThreshold,
} from "../../core/admission/priority.js";
import type { QueueSettings } from "../../core/admission/request-queue.js";
import type { ConcurrencySettings } from "../../core/concurrency/concurrency-laws.js";
import type { QueueOptions } from "../admission.js";
import { checkNumber, checkWord, count, timeMs, withDefaults } from "../options.js";
import { byPriority } from "./server-counts.js";
import type { ServerAdmissionOptions, ServerConcurrencyOptions } from "./server-options.js";

/** Returns the limits of the requests in flight, and the queue settings. */
export function serverPoolSettings(options: ServerAdmissionOptions): PoolSettings {
  const { maxInFlight, queue } = options;
  const concurrency = options.concurrency ?? (maxInFlight === undefined ? {} : false);
  return {
    maxInFlight,
    concurrency: concurrency === false ? undefined : lawSettings(concurrency),
    queue: queue && queueSettings(queue),
  };
}

/** Returns thresholds by class. Undefined if no class is refused before another one. */
export function serverShedThresholds(
  shedAt: ServerAdmissionOptions["shedAt"] = {},
): ShedThresholds | undefined {
  if (shedAt === false) return undefined;
  return byPriority((priority) => {
    const hardRatio = shedAt[priority];
    if (hardRatio === undefined) return defaultShedThresholds[priority];
    // Critical requests have no soft threshold: none is refused while there is room.
    const isSoftless = priority === "critical";
    return isSoftless ? { softRatio: hardRatio, hardRatio } : shedThreshold(hardRatio);
  });
}

/** @throws RangeError that names an option which is out of bounds */
export function checkServerOptions(options: ServerAdmissionOptions): void {
  const { maxInFlight, deadline = {}, shedAt = {}, brownout = {}, retryAfter = {} } = options;
  if (maxInFlight !== undefined) checkNumber("maxInFlight", maxInFlight, count(1));
  const numbers: Record<string, readonly [given: number | undefined, min: number, max: number]> = {
    "deadline.minRemainingMs": [deadline === false ? 0 : deadline.minRemainingMs, 0, hourMs],
    "brownout.bandRatio": [brownout.bandRatio, 0, ratioMax],
    "brownout.memoryMs": [brownout.memoryMs, 1, hourMs],
    "retryAfter.secondsMin": [retryAfter.secondsMin, 1, hourMs / 1_000],
    "retryAfter.jitterRatio": [retryAfter.jitterRatio, 0, ratioMax],
  };
  for (const priority of priorities) {
    const shedRatio = shedAt === false ? undefined : shedAt[priority];
    const fromRatio = brownout.fromRatios?.[priority];
    numbers[`shedAt.${priority}`] = [shedRatio, ratioMin, ratioMax];
    numbers[`brownout.fromRatios.${priority}`] = [fromRatio, ratioMin, ratioMax];
  }
  for (const [name, [given, min, max]] of Object.entries(numbers)) {
    if (given !== undefined) checkNumber(name, given, { min, max });
  }
  for (const [cause, status] of Object.entries(options.statusByCause ?? {})) {
    checkNumber(`statusByCause.${cause}`, status, { min: 400, max: 599, isWhole: true });
  }
}

const hourMs = 3_600_000;

/** Bounds of load ratios; 1 is full. */
const ratioMin = 0.01;
const ratioMax = 10;

/** Returns settings with the defaults of the policy language. */
function lawSettings(options: ServerConcurrencyOptions): ConcurrencySettings {
  const { law, ...limits } = withDefaults<Required<ServerConcurrencyOptions>>(options, {
    name: "concurrency",
    defaults: { law: "knee", initial: 50, min: 1, max: 1_000 },
    bounds: { initial: count(1), min: count(1), max: count(1) },
  });
  checkWord("concurrency.law", law, ["knee", "gradient", "vegas", "aimd"]);
  const statistic = { kind: "mean" } as const;
  switch (law) {
    case "knee":
      return { law, limits };
    case "gradient":
      return { law, rttTolerance: 1.5, smoothingRatio: 0.2, baseline: "minRtt", statistic, limits };
    case "vegas":
      return { law, smoothingRatio: 1, statistic, limits };
    case "aimd":
      return { law, increase: 1, decreaseRatio: 0.5, limits };
  }
}

function queueSettings(options: QueueOptions): QueueSettings {
  const { codel, ...settings } = withDefaults<Required<QueueOptions>>(options, {
    name: "queue",
    defaults: { sizeMax: 100, waitMsMax: 2_000, order: "priority", codel: false },
    bounds: { sizeMax: count(0), waitMsMax: timeMs(1) },
  });
  checkWord("queue.order", settings.order, ["priority", "fifo", "newestFirstUnderOverload"]);
  if (codel === false) return { ...settings, codel: undefined };
  checkNumber("queue.codel.targetMs", codel.targetMs, timeMs(0));
  checkNumber("queue.codel.intervalMs", codel.intervalMs, timeMs(1));
  return { ...settings, codel };
}
