import type { HandlerContext } from "@connectrpc/connect";
import { mayAct } from "../../../core/base/access-list.js";
import { auditEntry, reasonCharsMax } from "../../../core/base/audit-entry.js";
import { textLengthMax } from "../../../decide/rate-limit/query.js";
import type { AccountSelector } from "../../../gen/headgate/admin/v1/admin_pb.js";
import type { AccountPart } from "../../../policy/budgets/budget-form.js";
import type { BudgetPolicy } from "../../../policy/budgets/budget-policy.js";
import { domainOfBudget } from "../budget-parts.js";
import { actorOf, callerOf, demandRole } from "../call.js";
import { AdminFailure, notFound } from "../failures.js";
import { policyOf } from "../key-methods.js";
import type { RequestReader } from "../request-reader.js";
import { keyNameBounds } from "../request-reader.js";
import type { AdminServiceParts } from "../service-parts.js";

/** Dependencies of this service. */
export type BudgetServiceParts = Pick<
  AdminServiceParts,
  "budgets" | "clock" | "digest" | "policies" | "random" | "records" | "replica"
>;

/** The bounds of a name that a request must have. */
export const neededName = { ...keyNameBounds, isNeeded: true };
/** The bounds of the reason for a change. */
export const reasonRule = { charsMax: reasonCharsMax, isNeeded: true };

/** Reads the id of a change, which is made once per id. Empty: returns a new one. */
export function readId(
  id: string,
  reader: RequestReader,
  { prefix, random }: Pick<BudgetServiceParts, "random"> & { readonly prefix: string },
): string {
  if (id === "") return `${prefix}-${random.id()}`;
  if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(id)) {
    reader.report("id", "must be 1 to 64 lower-case letters, digits and hyphens");
  }
  return id;
}

/** The name of an account, whether it exists or not. */
export interface ReadSelector {
  readonly budget: string;
  readonly values: readonly string[];
}

/** Reads the account that a request names. */
export function readSelector(
  selector: AccountSelector | undefined,
  reader: RequestReader,
): ReadSelector {
  const { budget = "", values = [] } = selector ?? {};
  return {
    budget: reader.text("account.budget", budget, neededName),
    values: readValues("account.values", values, reader),
  };
}

/** Maximum number of parts of `per` that a request names. */
const valuesMax = 16;

/** Reads values, or patterns of values, of an account. */
export function readValues(
  place: string,
  values: readonly string[],
  reader: RequestReader,
): readonly string[] {
  if (values.length > valuesMax) {
    reader.report(place, `it has more than ${valuesMax} values`);
    return [];
  }
  return values.map((value, i) => {
    return reader.text(`${place}[${i}]`, value, { charsMax: textLengthMax });
  });
}

/** @throws AdminFailure invalid if the number of values is not that of the budget's parts */
export function demandAccount(budget: BudgetPolicy, selector: ReadSelector): ReadSelector {
  demandPartCount(budget, selector.values);
  return selector;
}

/** The same for values or patterns alone. */
export function demandPartCount({ per }: BudgetPolicy, values: readonly string[]): void {
  if (values.length === per.length) return;
  const parts = per.length === 0 ? "none" : per.map(partText).join(", ");
  throw new AdminFailure("invalid", `values: the budget needs one for each of its per: ${parts}`);
}

/** Returns the budgets that the caller may see, in the order of the policy. */
export function visibleBudgets(
  parts: Pick<BudgetServiceParts, "policies">,
  context: HandlerContext,
): readonly BudgetPolicy[] {
  const principal = callerOf(context);
  const all = policyOf(parts).budgets;
  return all.filter((budget) => mayAct(principal, "reader", domainOfBudget(parts, budget)));
}

interface BudgetCallOf {
  readonly context: HandlerContext;
  /** Default: `reader`. */
  readonly role?: "reader" | "operator";
}

/** Returns a budget that the caller may see, or change. Others are reported as unknown. */
export function demandBudget(
  parts: Pick<BudgetServiceParts, "policies">,
  name: string,
  { context, role = "reader" }: BudgetCallOf,
): BudgetPolicy {
  const visible = visibleBudgets(parts, context);
  const budget = visible.find((one) => one.name === name);
  if (budget === undefined) {
    throw notFound(
      "budget",
      name,
      visible.map((one) => one.name),
    );
  }
  demandRole(context, role, domainOfBudget(parts, budget));
  return budget;
}

/** Returns an entry of the audit log about a budget. */
export function budgetAudit(
  parts: BudgetServiceParts,
  {
    budget,
    context,
    ...facts
  }: {
    readonly action: "TopUpBudget" | "DeleteTopUp" | "RefundBudget";
    readonly budget: BudgetPolicy;
    readonly reason: string;
    readonly context: HandlerContext;
    readonly before: AuditSide;
    readonly after: AuditSide;
  },
) {
  const { replica } = parts;
  const domain = domainOfBudget(parts, budget);
  const subject = budget.name;
  return auditEntry({ ...facts, actor: actorOf(context), subject, domain, replica });
}

type AuditSide = Parameters<typeof auditEntry>[0]["before"];

/** Returns a part of `per` in the form of the API. */
export function partText(part: AccountPart): string {
  return part.kind === "header" ? `header ${part.header}` : part.kind;
}
