/**
 * Why the environment failed us. Outcomes (denied) are values, bad user text is `Problem[]`, bugs
 * are failed asserts; only failures of the world outside carry one of these codes.
 */
interface ErrorRow {
  /** What happened, in words for a person; never holds a caller's value or a credential. */
  readonly meaning: string;
  /** Whether the same call may succeed when it is made again later. */
  readonly transient: boolean;
}

function passing(meaning: string): ErrorRow {
  return { meaning, transient: true };
}

function lasting(meaning: string): ErrorRow {
  return { meaning, transient: false };
}

/** Every code there is. The documented table is held equal to these rows by a test. */
export const errorRows = {
  STORE_TIMEOUT: passing("The store did not answer inside its budget."),
  STORE_UNAVAILABLE: passing("There is no usable connection to the store."),
  STORE_CIRCUIT_OPEN: passing(
    "The store failed repeatedly and is not asked until a probe succeeds.",
  ),
  STORE_OUT_OF_MEMORY: passing("The store refuses writes: its memory is full."),
  STORE_READ_ONLY: passing("The store is a replica and refuses writes."),
  STORE_NOT_SAVING: passing("The store cannot save to disk, and refuses writes."),
  STORE_TOO_FEW_REPLICAS: passing(
    "The store has fewer replicas than it wants for writes, and refuses them.",
  ),
  STORE_TOO_MANY_CLIENTS: passing(
    "The store serves as many clients as it may, and refused our connection.",
  ),
  STORE_LOADING: passing("The store is still loading its data."),
  STORE_UNAUTHENTICATED: lasting("The store refused our user or password."),
  STORE_ACCESS_DENIED: lasting(
    "The store knows our user and does not let it do this (see its ACL).",
  ),
  STORE_TLS_FAILED: passing("TLS with the store failed."),
  STORE_PROTOCOL: lasting("The store answered something we do not understand."),
  STORE_FULL: passing("The embedded store holds as many keys as it may."),
  STORE_CLOSED: lasting("The store was closed: this process is stopping."),
  SIGNAL_TIMEOUT: passing("A signal's source did not answer in time."),
  SIGNAL_UNAVAILABLE: passing("A signal's source cannot be reached."),
  SIGNAL_REFUSED: passing("A signal's source answered with an error, or sent us elsewhere."),
  SIGNAL_MALFORMED: passing("A signal's source answered something we do not understand."),
  SIGNAL_TOO_LARGE: passing("A signal's source answered more than we read."),
  SIGNAL_EMPTY: passing("A signal's source has no such reading."),
  SIGNAL_UNCONFIGURED: lasting(
    "A signal's source is one that this process is not told how to reach.",
  ),
  OVERLOADED: passing(
    "This process has more work than it can do in time, and did not ask the store.",
  ),
  MEMORY_FULL: passing("This process has used up its memory, and did not read the request."),
  POLICY_MISSING: passing("No policy is loaded yet."),
  REQUEST_TOO_LARGE: lasting(
    "The request asks more than is counted in one, and is refused as one over its limit.",
  ),
  REQUEST_INVALID: lasting("The request breaks the API's contract."),
  DEADLINE_PASSED: passing("The caller's deadline passed before a decision."),
  LISTEN_FAILED: lasting("A port could not be opened."),
  CONFIG_INVALID: lasting("The process configuration is wrong."),
  INTERNAL: lasting("A bug: the call failed, the process lives."),
} as const satisfies Record<string, ErrorRow>;

/** A row's name. Match on this, never on a message and never with `instanceof` across packages. */
export type ErrorCode = keyof typeof errorRows;

/**
 * An environment failure. `message` is safe to log; `cause` is not always and is dropped at the
 * edge.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly transient: boolean;

  /** `detail` adds what to do or which setting to look at; it must hold no caller's value. */
  constructor(code: ErrorCode, detail?: string, options?: { readonly cause?: unknown }) {
    const { meaning, transient } = errorRows[code];
    super(detail === undefined ? meaning : `${meaning} ${detail}`, options);
    this.code = code;
    this.transient = transient;
  }
}

/** True for a `ServiceError`, also one made by another copy of this module. */
export function isServiceError(value: unknown): value is ServiceError {
  return value instanceof Error && value.name === "ServiceError" && "code" in value;
}

/**
 * Any thrown value as a `ServiceError`; what is not one becomes `INTERNAL` with the value as cause.
 */
export function toServiceError(value: unknown): ServiceError {
  return isServiceError(value) ? value : new ServiceError("INTERNAL", undefined, { cause: value });
}

/**
 * Ends an exhausted switch: the compiler refuses a forgotten alternative, a bug at run time throws.
 */
export function assertNever(value: never): never {
  // The value itself may be a caller's: it stays out of the text.
  throw new Error(`assertion failed: an alternative of type ${typeof value} was forgotten`);
}

/** Throws when a condition that only a bug could break does not hold. */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`);
}
