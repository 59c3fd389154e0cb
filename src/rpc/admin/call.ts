import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import {
  type AdminRole,
  mayAct,
  type Principal,
  visibleDomains,
} from "../../core/base/access-list.js";
import type { AuditActor } from "../../core/base/audit-entry.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { AdminFailure, demandRoleOf } from "./failures.js";

/** A call whose caller is known. */
interface AdminCall {
  readonly principal: Principal;
  /** Checks again whether the caller is known, and still has the permissions; for long calls. */
  readonly isStillAllowed: () => Promise<boolean>;
  /** Called when its message was read, and is a message of the method. */
  readonly onRead: () => void;
  /** Called once with the code of its end. Not called for a request that could not be read. */
  readonly onEnd: (code: string) => void;
}

/** The key under which the port passes the call to services. Without it, nothing is allowed. */
export const adminCallKey = createContextKey<AdminCall>(
  {
    principal: { name: "nobody", grants: [] },
    isStillAllowed: async () => false,
    onRead: () => {},
    onEnd: () => {},
  },
  { description: "admin call" },
);

/** The part of a context that contains the caller. */
export type CallerContext = Pick<HandlerContext, "values">;

/** Returns the caller. */
export function callerOf(context: CallerContext): Principal {
  return context.values.get(adminCallKey).principal;
}

/** Returns the caller for the audit log, which contains only operators. */
export function actorOf(context: HandlerContext): AuditActor {
  return { name: callerOf(context).name, role: "operator" };
}

/** Like `demandRoleOf`, for the caller of a call. */
export function demandRole(
  context: CallerContext,
  role: AdminRole,
  domain: string | undefined,
): void {
  demandRoleOf(callerOf(context), role, domain);
}

/**
 * Returns the domains of a call: the one that it names, or all that its caller may see.
 *
 * @returns undefined: all domains
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

/** Returns those of the domains that a caller may see. */
export function visibleAmong(context: CallerContext, domains: Iterable<string>): string[] {
  const principal = callerOf(context);
  return [...domains].filter((domain) => mayAct(principal, "reader", domain));
}

/** Returns which services a caller may see. Each belongs to the domain of its limits, if any. */
export function serviceFilter(context: CallerContext): (service: ServicePolicy) => boolean {
  const principal = callerOf(context);
  return ({ rateLimit }) => mayAct(principal, "reader", rateLimit?.domain);
}

/** Returns a part of this process. @throws AdminFailure absent if it has none */
export function demandPart<T>(part: T | undefined): T {
  if (part === undefined) throw new AdminFailure("absent", "this replica does not support it");
  return part;
}
