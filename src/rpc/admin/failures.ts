import { Code, ConnectError } from "@connectrpc/connect";
import { assertNever, type ErrorCode, toServiceError } from "../../core/base/errors.js";

declare global {
  /** What the library's types name and only a browser's declare. */
  type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>;
}

/** Why a call of the admin API cannot be answered as asked. */
export type AdminFailureKind =
  /** A field of the request breaks its rule; the message says which. */
  | "invalid"
  /** There is nothing of that name; the message may name the nearest. */
  | "notFound"
  /** Somebody else was faster; the message says the version that there is. */
  | "conflict"
  /** The caller is known, and may not do this. */
  | "forbidden"
  /** Nobody known. */
  | "unknownCaller"
  /** Not here, or not now: the process is set up otherwise. */
  | "refused"
  /** There are as many as there may be. */
  | "exhausted"
  /** This build has no such part. */
  | "absent"
  /** What is needed to answer cannot be reached, or this process stops. */
  | "unavailable";

/** A failure with words for its caller; they hold nothing of others. */
export class AdminFailure extends Error {
  override readonly name = "AdminFailure";
  readonly kind: AdminFailureKind;

  constructor(kind: AdminFailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The one place where a failure of the admin API becomes a code of Connect and gRPC. */
function codeOfKind(kind: AdminFailureKind): Code {
  switch (kind) {
    case "invalid":
      return Code.InvalidArgument;
    case "notFound":
      return Code.NotFound;
    case "conflict":
      return Code.Aborted;
    case "forbidden":
      return Code.PermissionDenied;
    case "unknownCaller":
      return Code.Unauthenticated;
    case "refused":
      return Code.FailedPrecondition;
    case "exhausted":
      return Code.ResourceExhausted;
    case "absent":
      return Code.Unimplemented;
    case "unavailable":
      return Code.Unavailable;
    default:
      return assertNever(kind);
  }
}

/** The code of an environment failure: another time, another place, or never. */
function codeOfError(code: ErrorCode): Code {
  switch (code) {
    case "REQUEST_INVALID":
      return Code.InvalidArgument;
    case "DEADLINE_PASSED":
      return Code.DeadlineExceeded;
    case "STORE_UNAUTHENTICATED":
    case "STORE_ACCESS_DENIED":
      return Code.FailedPrecondition;
    case "STORE_FULL":
      return Code.ResourceExhausted;
    case "STORE_PROTOCOL":
    case "CONFIG_INVALID":
    case "LISTEN_FAILED":
    case "INTERNAL":
      return Code.Internal;
    default:
      return Code.Unavailable;
  }
}

/**
 * Any thrown value as what its caller may see, and whether a bug threw it: a bug's own words stay
 * inside.
 */
export function toConnectError(thrown: unknown): {
  readonly error: ConnectError;
  readonly isBug: boolean;
} {
  if (thrown instanceof ConnectError) return { error: thrown, isBug: false };
  if (thrown instanceof AdminFailure) {
    return { error: new ConnectError(thrown.message, codeOfKind(thrown.kind)), isBug: false };
  }
  const { code, message } = toServiceError(thrown);
  return { error: new ConnectError(message, codeOfError(code)), isBug: code === "INTERNAL" };
}

/** A code as metrics and the wire of Connect name it, such as `permission_denied`. */
export function codeName(code: Code): string {
  return (Code[code] ?? "Unknown").replace(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase();
}
