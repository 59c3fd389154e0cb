import { LogInterval } from "../../core/base/log-interval.js";
import { type BudgetEvent, Budgets } from "../../decide/budget/budgets.js";
import { LedgerKeyCounts } from "../../fleet/budgets/ledger-key-counts.js";
import {
  type BudgetLedgerEvent,
  StoreBudgetLedger,
} from "../../fleet/budgets/store-budget-ledger.js";
import { TopUpRegistry } from "../../fleet/records/top-up-registry.js";
import type { Logger } from "../base/logger.js";
import { sha256 } from "../base/sha256.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { budgetMetrics } from "../metrics/budget-metrics.js";
import { remedyOf } from "../store/store-remedies.js";

interface OpenBudgetsParts extends Pick<Foundation, "policies" | "opened" | "operator"> {
  readonly fleet: Pick<Fleet, "replicaCount">;
}

/** Number of renewals of reservations' lease during its duration. */
const beatsPerLease = 6;

/** Time between two log lines on one service's unread responses, in milliseconds. */
const unreadIntervalMs = 3_600_000;

/** Budgets of this process. */
export interface OpenBudgets {
  readonly budgets: Budgets;
  readonly topUps: TopUpRegistry;
  /** Calls in flight by key over all replicas. Undefined if the store is not shared. */
  readonly sharedKeys: LedgerKeyCounts | undefined;
  /** Settles what is left, if the store accepts it. Never rejects. */
  close(): Promise<void>;
}

/** Opens budgets. Without a shared store their accounts are only in this process. */
export function openBudgets(
  runtime: Runtime,
  { policies, opened, operator, fleet }: OpenBudgetsParts,
): OpenBudgets {
  const { clock, random, logger, metrics, config } = runtime;
  const leaseMs = config.budgetLeaseMs;
  const { coordination } = opened;
  const topUps = new TopUpRegistry({ records: operator.records, clock });
  const ledger = new StoreBudgetLedger({
    store: coordination.budgets,
    clock,
    random,
    replicaCount: fleet.replicaCount,
    reserveTimeoutMs: config.storeBudgetMs,
    leaseMs,
    heartbeatMs: leaseMs / beatsPerLease,
    onEvent: (event) => logLedger(event, logger),
  });
  const unread = new LogInterval<string>(unreadIntervalMs);
  const budgets = new Budgets({
    policies: policies.feed,
    ledger,
    clock,
    topUps,
    digest: sha256,
    onEvent: (event) => {
      const subject = `${event.service} ${event.reason}`;
      if (unread.begins(subject, clock.monotonicMs())) logUnread(event, logger);
    },
  });
  metrics.add(budgetMetrics({ budgets, ledger, topUps }));
  return {
    budgets,
    topUps,
    sharedKeys: coordination.isShared ? new LedgerKeyCounts(ledger, sha256) : undefined,
    close: async () => {
      budgets.close();
      topUps.close();
      await ledger.close();
    },
  };
}

function logLedger(event: BudgetLedgerEvent, logger: Logger): void {
  switch (event.kind) {
    case "budgetStoreLost":
      logger.warn(
        { event: event.kind, code: event.code, remedy: remedyOf(event.code) },
        "The store does not answer for budgets: each budget's onStoreFailure decides.",
      );
      break;
    case "budgetStoreFound":
      logger.info({ event: event.kind }, "The store answers for budgets again.");
      break;
    case "settlementsDropped":
      logger.warn(
        { event: event.kind },
        "Too many ended calls wait for the store: the oldest are not charged.",
      );
  }
}

const unreadReasons: Readonly<Record<BudgetEvent["reason"], string>> = {
  unknownForm: "it is neither JSON nor a stream of events",
  compressed: "it is compressed: remove accept-encoding from requests to the service",
  tooLong: "it reports nothing in its first 256 MiB",
  notFound: "none of the fields is in it",
};

function logUnread({ service, reason }: BudgetEvent, logger: Logger): void {
  logger.warn(
    { event: "usageUnrecognised", service, reason },
    `No usage was found in a response, since ${unreadReasons[reason]}. ` +
      "Its output tokens are estimated by its size.",
  );
}
