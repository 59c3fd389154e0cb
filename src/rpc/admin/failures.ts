import { type AdminRole, mayAct, type Principal } from "../../core/base/access-list.js";
import { grpcStatuses, othersGrpcStatuses } from "../../core/base/grpc-status.js";
import { findNearestName } from "../../policy/text/nearest-name.js";

/** A failure as callers see it. */
interface AdminFailureRow {
  /** The code in Connect and gRPC. */
  readonly code: number;
  readonly meaning: string;
}

/** Every failure of the admin API, and the only place where it becomes a code. */
export const adminFailureRows = {
  invalid: {
    code: grpcStatuses.invalidArgument,
    meaning: "A field of the request is invalid; the message names it.",
  },
  notFound: {
    code: grpcStatuses.notFound,
    meaning: "The named object does not exist; the message may suggest the nearest name.",
  },
  conflict: {
    code: othersGrpcStatuses.aborted,
    meaning: "Somebody else changed it first; the message contains the current version.",
  },
  forbidden: {
    code: grpcStatuses.permissionDenied,
    meaning: "The caller is known, but may not do this.",
  },
  unknownCaller: { code: othersGrpcStatuses.unauthenticated, meaning: "The caller is unknown." },
  refused: {
    code: grpcStatuses.failedPrecondition,
    meaning: "Not available here or now, because of how the process is configured.",
  },
  exhausted: { code: grpcStatuses.resourceExhausted, meaning: "A maximum is reached." },
  absent: { code: grpcStatuses.unimplemented, meaning: "This build does not contain this part." },
  unavailable: {
    code: grpcStatuses.unavailable,
    meaning: "Something that the answer needs cannot be reached, or this process stops.",
  },
} as const satisfies Record<string, AdminFailureRow>;

/** Why a call of the admin API cannot be answered as asked. */
type AdminFailureKind = keyof typeof adminFailureRows;

/** A failure with a message for its caller, which contains nothing about others. */
export class AdminFailure extends Error {
  override readonly name = "AdminFailure";
  readonly kind: AdminFailureKind;

  constructor(kind: AdminFailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Returns the failure for an unknown name, with the nearest name that the caller may see. */
export function notFound(what: string, name: string, names: Iterable<string>): AdminFailure {
  const nearest = findNearestName(name, [...names]);
  const hint = nearest === undefined ? "" : `; did you mean ${JSON.stringify(nearest)}?`;
  return new AdminFailure("notFound", `unknown ${what}${hint}`);
}

/**
 * Checks that a caller has a role in a domain.
 *
 * @param domain undefined: in all of them
 * @throws AdminFailure forbidden, whether there is such a domain or not
 */
export function demandRoleOf(caller: Principal, role: AdminRole, domain: string | undefined): void {
  if (mayAct(caller, role, domain)) return;
  const where = domain === undefined ? "all domains" : "this domain";
  throw new AdminFailure("forbidden", `this needs the role ${role} in ${where}`);
}
