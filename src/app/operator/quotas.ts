import type { Clock, Random } from "../../core/base/clock.js";
import { type QuotaEvent, QuotaRegistry } from "../../decide/quota/quota-registry.js";
import type { DecisionCounters } from "../../decide/rate-limit/counters.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import { MemoryQuotaLeases, QuotaLeases } from "../../fleet/claims/quota-leases.js";
import { cacheBounds } from "../base/cache-bounds.js";
import { sha256 } from "../base/digest.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import { switchesOf } from "../options/decision-options.js";
import type { OpenStore } from "../store/store.js";
import { remedyOf } from "../store/store-remedies.js";
import type { OperatorRecords } from "./operator-records.js";

/** What quotas are opened with. */
export interface QuotasParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly policies: PolicySource;
  readonly operator: Pick<OperatorRecords, "overrides">;
  readonly opened: OpenStore;
  readonly counters: DecisionCounters;
  readonly replicaCount: () => number;
  readonly onBug: (thrown: unknown) => void;
}

/** Opens what divides quotas among Envoys, and with a shared store among replicas. */
export function openQuotas(parts: QuotasParts): QuotaRegistry {
  const { config, clock, random, logger, policies, operator, opened, ...others } = parts;
  const leases =
    opened.kind === "memory"
      ? new MemoryQuotaLeases({ clock, random })
      : new QuotaLeases({
          connection: opened.connections.fleet,
          clock,
          random,
          keyPrefix: config.keyPrefix,
        });
  return new QuotaRegistry({
    ...others,
    policies,
    overrides: operator.overrides,
    store: opened.store,
    leases,
    clock,
    switches: switchesOf(config),
    digest: sha256,
    identityPercentMax: config.identityPercentMax,
    bucketsBytesMax: cacheBounds().quotaBucketsBytesMax,
    onEvent: (event) => logQuotas(event, logger),
  });
}

function logQuotas(event: QuotaEvent, logger: Logger): void {
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
