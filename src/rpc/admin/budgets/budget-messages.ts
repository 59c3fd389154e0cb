import type { MessageInitShape } from "@bufbuild/protobuf";
import { projectWindow } from "../../../core/budgets/projection.js";
import type {
  BudgetAccountSchema,
  BudgetSchema,
  BudgetSumsSchema,
  TopUpSchema,
} from "../../../gen/headgate/admin/v1/admin_pb.js";
import type { BudgetPolicy } from "../../../policy/budgets/budget-policy.js";
import type { AccountView, BudgetAdministration, TopUpView } from "../budget-parts.js";
import { domainOfBudget } from "../budget-parts.js";
import { demandPart } from "../call.js";
import { policyOf } from "../key-methods.js";
import { durationOf, encodeUnit, timeOf, wideOf } from "../messages.js";
import { type AccountSums, usedRatioOf } from "./account-sums.js";
import { type BudgetServiceParts, partText } from "./budget-requests.js";

/** The encoding of budgets, accounts and top-ups. */

/** Encodes a top-up. */
export function encodeTopUp({ topUp, version }: TopUpView): MessageInitShape<typeof TopUpSchema> {
  const { id, budget, values, amount, untilMs, reason, actor } = topUp;
  return {
    id,
    account: { budget, values: [...values] },
    amount: wideOf(amount),
    expiresAt: timeOf(untilMs),
    reason,
    author: actor,
    version: wideOf(version),
  };
}

/** Encodes a budget of the policy. @param sums absent: they were not requested */
export function encodeBudget(
  parts: Pick<BudgetServiceParts, "budgets" | "policies">,
  budget: BudgetPolicy,
  sums?: MessageInitShape<typeof BudgetSumsSchema>,
): MessageInitShape<typeof BudgetSchema> {
  const { name, amount, services, models, per, period, over, warnAt } = budget;
  const window = demandPart(parts.budgets).window(budget);
  return {
    name,
    ...encodeUnit(budget, policyOf(parts).prices),
    amount: wideOf(amount),
    services: [...(services ?? [])],
    models: [...models],
    per: per.map(partText),
    ...(period.kind === "calendar"
      ? { period: period.unit, timeZone: period.timeZone }
      : { drainPeriod: durationOf(period.periodUs) }),
    ...(window === undefined
      ? {}
      : { windowStart: timeOf(window.startUs / 1_000), windowEnd: timeOf(window.endUs / 1_000) }),
    over: over?.kind ?? "refuse",
    ...(warnAt === undefined ? {} : { warnAt }),
    onStoreFailure: budget.onStoreFailure,
    whenLost: budget.whenLost,
    isDryRun: budget.isDryRun,
    domain: domainOfBudget(parts, budget) ?? "",
    ...(sums === undefined ? {} : { sums }),
  };
}

/** Encodes sums, and when they were read. */
export function encodeSums(
  sums: AccountSums,
  readMs: number,
): MessageInitShape<typeof BudgetSumsSchema> {
  const { accountCount, warnedCount, overCount, projectedOverCount, usedRatioMax } = sums;
  return {
    accountCount: wideOf(accountCount),
    spent: bounded(sums.spent),
    reserved: bounded(sums.reserved),
    spentBefore: bounded(sums.spentBefore),
    lost: bounded(sums.lost),
    capacity: bounded(sums.capacity),
    warnedCount: wideOf(warnedCount),
    overCount: wideOf(overCount),
    projectedOverCount: wideOf(projectedOverCount),
    usedRatioMax,
    ...(sums.projected === undefined ? {} : { projected: bounded(sums.projected) }),
    readAt: timeOf(readMs),
  };
}

/** Caps a sum at what programs can read exactly. */
function bounded(sum: bigint): bigint {
  return sum < sumMax ? sum : sumMax;
}

const sumMax = BigInt(Number.MAX_SAFE_INTEGER);

/** Encodes an account in its current state. */
export function encodeAccount(
  account: AccountView,
  {
    parts,
    budgets,
    budget,
  }: {
    readonly parts: Pick<BudgetServiceParts, "clock">;
    readonly budgets: BudgetAdministration;
    readonly budget: BudgetPolicy;
  },
): MessageInitShape<typeof BudgetAccountSchema> {
  const { values, capacity, toppedUp, spent, reserved, spentBefore, lost } = account;
  const window = budgets.window(budget);
  const projection = window && projectWindow(account, window, parts.clock.epochUs());
  return {
    account: { budget: budget.name, values: [...values] },
    capacity: wideOf(capacity),
    toppedUp: wideOf(toppedUp),
    spent: wideOf(spent),
    reserved: wideOf(reserved),
    spentBefore: wideOf(spentBefore),
    lost: wideOf(lost),
    usedRatio: usedRatioOf(account),
    ...(projection === undefined ? {} : { projected: wideOf(projection.amount) }),
    ...(projection?.exhaustedUs === undefined
      ? {}
      : { exhaustedAt: timeOf(projection.exhaustedUs / 1_000) }),
  };
}
