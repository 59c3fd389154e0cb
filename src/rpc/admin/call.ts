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

/** Who calls. */
export function callerOf(context: CallerContext): Principal {
  return context.values.get(adminCallKey).principal;
}

/** Who calls, as the audit log has it; only who may change something is in it. */
export function actorOf(context: HandlerContext): AuditActor {
  return { name: callerOf(context).name, role: "operator" };
}

/** As `demandRoleOf`, of a call. */
export function demandRole(
  context: CallerContext,
  role: AdminRole,
  domain: string | undefined,
): void {
  demandRoleOf(callerOf(context), role, domain);
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

/** A part that this process has; a caller is told that there is none. */
export function demandPart<T>(part: T | undefined): T {
  if (part === undefined) throw new AdminFailure("absent", "this replica does not support it");
  return part;
}
