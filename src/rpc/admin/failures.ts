import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";

declare global {
  /** What the library's types name and only a browser's declare. */
  type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>;
}

/** What a failure is for its caller. */
interface AdminFailureRow {
  /** Of Connect and gRPC. */
  readonly code: Code;
  readonly meaning: string;
}

/** Every failure of the admin API, and the one place where it becomes a code. */
export const adminFailureRows = {
  invalid: {
    code: Code.InvalidArgument,
    meaning: "A field of the request is invalid; the message names it.",
  },
  notFound: {
    code: Code.NotFound,
    meaning: "The named object does not exist; the message may suggest the nearest name.",
  },
  conflict: {
    code: Code.Aborted,
    meaning: "Somebody else changed it first; the message contains the current version.",
  },
  forbidden: { code: Code.PermissionDenied, meaning: "The caller is known, but may not do this." },
  unknownCaller: { code: Code.Unauthenticated, meaning: "The caller is unknown." },
  refused: {
    code: Code.FailedPrecondition,
    meaning: "Not available here or now, because of how the process is configured.",
  },
  exhausted: { code: Code.ResourceExhausted, meaning: "A maximum is reached." },
  absent: { code: Code.Unimplemented, meaning: "This build does not contain this part." },
  unavailable: {
    code: Code.Unavailable,
    meaning: "Something that the answer needs cannot be reached, or this process stops.",
  },
} as const satisfies Record<string, AdminFailureRow>;

/** Why a call of the admin API cannot be answered as asked. */
type AdminFailureKind = keyof typeof adminFailureRows;

/** A failure with words for its caller; they hold nothing of others. */
export class AdminFailure extends Error {
  override readonly name = "AdminFailure";
  readonly kind: AdminFailureKind;

  constructor(kind: AdminFailureKind, message: string) {
    super(message);
    this.kind = kind;
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
    return {
      error: new ConnectError(thrown.message, adminFailureRows[thrown.kind].code),
      isBug: false,
    };
  }
  const { code, message } = toServiceError(thrown);
  return { error: new ConnectError(message, codeOfError(code)), isBug: code === "INTERNAL" };
}

/** A code as metrics and the wire of Connect name it, such as `permission_denied`. */
export function codeName(code: Code): string {
  return (Code[code] ?? "Unknown").replace(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase();
}
