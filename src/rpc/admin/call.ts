import {
  createContextKey,
  createContextValues,
  createHandlerContext,
  type HandlerContext,
} from "@connectrpc/connect";
import {
  type AdminRole,
  mayAct,
  type Principal,
  visibleDomains,
} from "../../core/base/access-list.js";
import type { AuditActor } from "../../core/base/audit-entry.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import { LimitService } from "../../gen/headgate/admin/v1/admin_pb.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import { AdminFailure } from "./failures.js";

/** A call whose caller is known. */
interface AdminCall {
  readonly principal: Principal;
  /** Looks again whether the caller is known, and may do what they might; for long calls. */
  readonly isStillAllowed: () => Promise<boolean>;
  /** Told when its message was read, as far as it is one of the method's. */
  readonly onRead: () => void;
  /** Told once how the call has ended, by its code; never for a request that could not be read. */
  readonly onEnd: (code: string) => void;
}

/** Where the port puts the call for the services. Nobody is let in without. */
export const adminCallKey = createContextKey<AdminCall>(
  {
    principal: { name: "nobody", grants: [] },
    isStillAllowed: async () => false,
    onRead: () => {},
    onEnd: () => {},
  },
  { description: "admin call" },
);

/** Where the caller of a call stands. */
export type CallerContext = Pick<HandlerContext, "values">;

/** A caller who has been authorized elsewhere. */
export function ownCaller(principal: Principal): CallerContext {
  const call = { principal, isStillAllowed: async () => true, onRead: () => {}, onEnd: () => {} };
  return { values: createContextValues().set(adminCallKey, call) };
}

/** The context of a call that came through no port; its caller has been authorized. */
export function ownContext(principal: Principal): HandlerContext {
  return createHandlerContext({
    service: LimitService,
    method: LimitService.method.tailDecisions,
    protocolName: "own",
    requestMethod: "POST",
    url: "http://own/",
    contextValues: ownCaller(principal).values,
  });
}

/** Who calls. */
export function callerOf(context: CallerContext): Principal {
  return context.values.get(adminCallKey).principal;
}

/** Who calls, as the audit log has it; only who may change something is in it. */
export function actorOf(context: HandlerContext): AuditActor {
  return { name: callerOf(context).name, role: "operator" };
}

/**
 * Sees that the caller has a role in a domain.
 *
 * @param domain undefined: in all of them
 * @throws AdminFailure forbidden, whether there is such a domain or not
 */
export function demandRole(
  context: CallerContext,
  role: AdminRole,
  domain: string | undefined,
): void {
  if (mayAct(callerOf(context), role, domain)) return;
  const where = domain === undefined ? "all domains" : "this domain";
  throw new AdminFailure("forbidden", `this needs the role ${role} in ${where}`);
}

/**
 * The domains that a call is about: the one that it names, or all that its caller may see.
 *
 * @returns undefined: all there are
 * @throws AdminFailure forbidden
 */
export function askedDomains(
  context: HandlerContext,
  domain: string,
): readonly string[] | undefined {
  if (domain === "") return visibleDomains(callerOf(context));
  demandRole(context, "reader", domain);
  return [domain];
}

/** Those domains that a caller may see. */
export function visibleAmong(context: CallerContext, domains: Iterable<string>): string[] {
  const principal = callerOf(context);
  return [...domains].filter((domain) => mayAct(principal, "reader", domain));
}

/** Which services a caller may see: each belongs to the domain of its limits, or else to none. */
export function serviceFilter(context: CallerContext): (service: ServicePolicy) => boolean {
  const principal = callerOf(context);
  return ({ rateLimit }) => mayAct(principal, "reader", rateLimit?.domain);
}

/** Says that there is nothing of a name, and which is the nearest of those one may see. */
export function notFound(what: string, name: string, names: Iterable<string>): AdminFailure {
  const nearest = findNearestName(name, [...names]);
  const hint = nearest === undefined ? "" : `; did you mean ${JSON.stringify(nearest)}?`;
  return new AdminFailure("notFound", `unknown ${what}${hint}`);
}

/** A part that this process has; a caller is told that there is none. */
export function demandPart<T>(part: T | undefined): T {
  if (part === undefined) throw new AdminFailure("absent", "this replica does not support it");
  return part;
}

/**
 * The domain whose readers may see a budget; undefined: the domains of its services are several, or
 * there is none.
 */
export function domainOfBudget(
  parts: { readonly policies: Pick<PolicySource, "current"> },
  { services }: BudgetPolicy,
): string | undefined {
  const all = parts.policies.current()?.services ?? [];
  const own = all.filter(({ name, usage }) => services?.includes(name) ?? usage !== undefined);
  const domains = new Set(own.map(({ rateLimit }) => rateLimit?.domain));
  return domains.size === 1 ? [...domains][0] : undefined;
}
