import type { Admission, CallOptions } from "../admission.js";
import type { HoldOptions } from "./permit-hold.js";

/** Options of one request. The adapter sets the other options of the call. */
export type RequestOptions = Pick<CallOptions<unknown>, "priority" | "timeoutMs" | "isIdempotent">;

/** Options that all adapters share. `Request` is the list of arguments that describe a request. */
export interface AdapterOptions<Request extends readonly unknown[]> {
  /**
   * Returns the options of a request. Default: priority `normal`, the timeout of the admission, and
   * idempotent if the request's method is
   */
  readonly optionsOf?: (...request: Request) => RequestOptions;
  /**
   * Maximum time that a response keeps its permit while nothing reads it, in milliseconds, so that
   * a response that is dropped unread does not hold a permit for ever. The response itself is not
   * affected. Default 30,000
   */
  readonly unreadMsMax?: number;
}

/** Returns how long the responses of an adapter hold permits. */
export function holdOptions(
  { clock }: Admission,
  { unreadMsMax = 30_000 }: Pick<AdapterOptions<[]>, "unreadMsMax">,
): HoldOptions {
  return { clock, unreadMsMax };
}
