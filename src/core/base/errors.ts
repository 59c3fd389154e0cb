/**
 * A kind of environment failure. Outcomes such as denials are values, invalid user text is
 * `Problem[]`, and bugs are failed asserts. Only failures outside of this process have these codes.
 */
interface ErrorRow {
  /** What happened, for people. Never contains a caller's value or a credential. */
  readonly meaning: string;
  /** Whether the same call may succeed later. */
  readonly transient: boolean;
}

function passing(meaning: string): ErrorRow {
  return { meaning, transient: true };
}

function lasting(meaning: string): ErrorRow {
  return { meaning, transient: false };
}

/** All error codes. A test verifies that the documented table is equal to these rows. */
export const errorRows = {
  STORE_TIMEOUT: passing("The store did not answer in time."),
  STORE_UNAVAILABLE: passing("The store is unavailable."),
  STORE_CIRCUIT_OPEN: passing(
    "The store failed repeatedly. No call is made to it until a probe succeeds.",
  ),
  STORE_OUT_OF_MEMORY: passing("The store rejects writes because its memory is full."),
  STORE_READ_ONLY: passing("The store is a read-only replica and rejects writes."),
  STORE_NOT_SAVING: passing("The store cannot save to disk and rejects writes."),
  STORE_TOO_FEW_REPLICAS: passing("The store has too few replicas and rejects writes."),
  STORE_TOO_MANY_CLIENTS: passing(
    "The store has reached its maximum number of clients and refused the connection.",
  ),
  STORE_LOADING: passing("The store is still loading its data."),
  STORE_UNAUTHENTICATED: lasting("The store rejected the user or password."),
  STORE_ACCESS_DENIED: lasting("The user lacks a permission in the store (see its ACL)."),
  STORE_TLS_FAILED: passing("The TLS connection to the store failed."),
  STORE_PROTOCOL: lasting("The store sent an unexpected response."),
  STORE_FULL: passing("The in-process store has reached its maximum number of keys."),
  STORE_CLOSED: lasting("The store is closed because this process is stopping."),
  SIGNAL_TIMEOUT: passing("The source of a signal did not answer in time."),
  SIGNAL_UNAVAILABLE: passing("The source of a signal cannot be reached."),
  SIGNAL_REFUSED: passing("The source of a signal answered with an error or a redirect."),
  SIGNAL_MALFORMED: passing("The source of a signal sent an unexpected response."),
  SIGNAL_TOO_LARGE: passing("The source of a signal sent a response that is too large."),
  SIGNAL_EMPTY: passing("The source of a signal has no such value."),
  SIGNAL_UNCONFIGURED: lasting("The source of a signal is not configured in this process."),
  OVERLOADED: passing("This process is overloaded and did not call the store."),
  MEMORY_FULL: passing("This process has reached its memory limit and did not read the request."),
  POLICY_MISSING: passing("No policy is loaded yet."),
  REQUEST_TOO_LARGE: lasting(
    "The request asks for more than one request may, and is denied as over its limit.",
  ),
  REQUEST_INVALID: lasting("The request is invalid."),
  DEADLINE_PASSED: passing("The caller's deadline passed before the decision."),
  LISTEN_FAILED: lasting("A port could not be opened."),
  CONFIG_INVALID: lasting("The configuration of this process is invalid."),
  INTERNAL: lasting(
    "Internal error: the call failed because of a bug in Headgate; the process continues.",
  ),
} as const satisfies Record<string, ErrorRow>;

/** The code of a failure. Match on it, never on a message or with `instanceof` across packages. */
export type ErrorCode = keyof typeof errorRows;

/**
 * An environment failure. `message` is safe to log. `cause` is not always safe, and is dropped at
 * the edge.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly transient: boolean;

  /** `detail` adds what to do or which setting to check. It must not contain a caller's value. */
  constructor(code: ErrorCode, detail?: string, options?: { readonly cause?: unknown }) {
    const { meaning, transient } = errorRows[code];
    super(detail === undefined ? meaning : `${meaning} ${detail}`, options);
    this.code = code;
    this.transient = transient;
  }
}

/** Reports whether a value is a `ServiceError`, including one from another copy of this module. */
export function isServiceError(value: unknown): value is ServiceError {
  return value instanceof Error && value.name === "ServiceError" && "code" in value;
}

/**
 * Returns a thrown value as a `ServiceError`. Any other value becomes the cause of an `INTERNAL`.
 */
export function toServiceError(value: unknown): ServiceError {
  return isServiceError(value) ? value : new ServiceError("INTERNAL", undefined, { cause: value });
}

/**
 * Ends an exhaustive switch: the compiler rejects a missing case, and a bug at run time throws.
 */
export function assertNever(value: never): never {
  // The value itself may be a caller's, so the message does not contain it.
  throw new Error(`assertion failed: an alternative of type ${typeof value} is not handled`);
}

/** Throws if a condition is false that only a bug can make false. */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`);
}
