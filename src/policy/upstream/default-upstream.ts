import { adaptiveConcurrency } from "./adaptive-concurrency.js";
import { admissionControl } from "./admission-control.js";
import { circuitBreakers } from "./circuit-breakers.js";
import { healthChecks } from "./health-checks.js";
import { loadBalancing } from "./load-balancing.js";
import { localRateLimit } from "./local-rate-limit.js";
import { outlierDetection } from "./outlier-detection.js";
import { retries, timeouts } from "./retries.js";

const defaultUpgrades: readonly string[] = ["websocket"];

/** The meaning of each block if it is present and empty. */
export const defaultBlocks = {
  circuitBreakers: circuitBreakers.defaults,
  outlierDetection: outlierDetection.defaults,
  healthChecks: healthChecks.defaults,
  loadBalancing: loadBalancing.defaults,
  retries: retries.defaults,
  timeouts: timeouts.defaults,
  upgrades: defaultUpgrades,
  localRateLimit: localRateLimit.defaults,
  adaptiveConcurrency: adaptiveConcurrency.defaults,
  admissionControl: admissionControl.defaults,
};
