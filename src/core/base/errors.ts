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

/** Every code there is. The documented table is held equal to these rows by a test. */
export const errorRows = {
  STORE_TIMEOUT: { meaning: "The store did not answer inside its budget.", transient: true },
  STORE_UNAVAILABLE: { meaning: "There is no usable connection to the store.", transient: true },
  STORE_CIRCUIT_OPEN: {
    meaning: "The store failed repeatedly and is not asked until a probe succeeds.",
    transient: true,
  },
  STORE_OUT_OF_MEMORY: {
    meaning: "The store refuses writes: its memory is full.",
    transient: true,
  },
  STORE_READ_ONLY: { meaning: "The store is a replica and refuses writes.", transient: true },
  STORE_NOT_SAVING: {
    meaning: "The store cannot save to disk, and refuses writes.",
    transient: true,
  },
  STORE_TOO_FEW_REPLICAS: {
    meaning: "The store has fewer replicas than it wants for writes, and refuses them.",
    transient: true,
  },
  STORE_TOO_MANY_CLIENTS: {
    meaning: "The store serves as many clients as it may, and refused our connection.",
    transient: true,
  },
  STORE_LOADING: { meaning: "The store is still loading its data.", transient: true },
  STORE_UNAUTHENTICATED: {
    meaning: "The store refused our user or password.",
    transient: false,
  },
  STORE_ACCESS_DENIED: {
    meaning: "The store knows our user and does not let it do this (see its ACL).",
    transient: false,
  },
  STORE_TLS_FAILED: { meaning: "TLS with the store failed.", transient: true },
  STORE_PROTOCOL: {
    meaning: "The store answered something we do not understand.",
    transient: false,
  },
  STORE_FULL: { meaning: "The embedded store holds as many keys as it may.", transient: true },
  STORE_CLOSED: { meaning: "The store was closed: this process is stopping.", transient: false },
  SIGNAL_TIMEOUT: { meaning: "A signal's source did not answer in time.", transient: true },
  SIGNAL_UNAVAILABLE: { meaning: "A signal's source cannot be reached.", transient: true },
  SIGNAL_REFUSED: {
    meaning: "A signal's source answered with an error, or sent us elsewhere.",
    transient: true,
  },
  SIGNAL_MALFORMED: {
    meaning: "A signal's source answered something we do not understand.",
    transient: true,
  },
  SIGNAL_TOO_LARGE: {
    meaning: "A signal's source answered more than we read.",
    transient: true,
  },
  SIGNAL_EMPTY: { meaning: "A signal's source has no such reading.", transient: true },
  SIGNAL_UNCONFIGURED: {
    meaning: "A signal's source is one that this process is not told how to reach.",
    transient: false,
  },
  OVERLOADED: {
    meaning: "This process has more work than it can do in time, and did not ask the store.",
    transient: true,
  },
  MEMORY_FULL: {
    meaning: "This process has used up its memory, and did not read the request.",
    transient: true,
  },
  POLICY_MISSING: { meaning: "No policy is loaded yet.", transient: true },
  REQUEST_TOO_LARGE: {
    meaning: "The request asks more than is counted in one, and is refused as one over its limit.",
    transient: false,
  },
  REQUEST_INVALID: { meaning: "The request breaks the API's contract.", transient: false },
  DEADLINE_PASSED: { meaning: "The caller's deadline passed before a decision.", transient: true },
  LISTEN_FAILED: { meaning: "A port could not be opened.", transient: false },
  CONFIG_INVALID: { meaning: "The process configuration is wrong.", transient: false },
  INTERNAL: { meaning: "A bug: the call failed, the process lives.", transient: false },
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
