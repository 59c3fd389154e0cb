import type { QuotaEvent } from "../../decide/quota/quota-registry.js";
import type { Logger } from "../base/logger.js";
import { remedyOf } from "../store/store-remedies.js";

/** Logs what happens to the shares of quotas. */
export function logQuotas(event: QuotaEvent, logger: Logger): void {
  const { kind, ...facts } = event;
  const line = { event: kind, ...facts };
  switch (event.kind) {
    case "quotaLeasesUnrenewed":
      logger.warn(
        { ...line, remedy: remedyOf(event.code) },
        "Shares of quotas cannot be claimed from the store: the last ones hold for their time.",
      );
      return;
    case "quotaLeasesLost":
      logger.warn(line, "Shares of quotas are over: limits go by their on_store_failure.");
      return;
    case "quotaLeasesFound":
      logger.info(line, "Shares of quotas are claimed from the store again.");
      return;
    case "quotaBucketsIgnored":
      logger.warn(line, "Envoys report buckets that have no share: their own settings decide.");
      return;
    case "quotaNodeTwice":
      logger.warn(
        { ...line, header: "x-headgate-node" },
        "Two live Envoys have one name: each counts for itself. Names must be unique.",
      );
      return;
  }
}
