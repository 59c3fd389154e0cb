import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorCode, toServiceError } from "../../core/base/errors.js";
import { AdminFailure, adminFailureRows } from "./failures.js";

declare global {
  /** Named by the library's types, but declared only by those of browsers. */
  type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>;
}

/** Returns the code of an environment failure: retry later, elsewhere, or never. */
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
 * Converts any thrown value to what its caller may see, and reports whether it is a bug, whose
 * message is not disclosed.
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

/** Returns the name of a code in metrics and in Connect, such as `permission_denied`. */
export function codeName(code: Code): string {
  return (Code[code] ?? "Unknown").replace(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase();
}
