import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import { AdminFailure, adminFailureRows } from "./failures.js";

declare global {
  /** What the library's types name and only a browser's declare. */
  type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>;
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
