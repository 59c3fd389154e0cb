import type { Admission, CallOptions } from "../admission.js";
import type { HoldOptions } from "./permit-hold.js";

/** What one request asks for; the rest of a call's options is its adapter's. */
export type RequestOptions = Pick<CallOptions<unknown>, "priority" | "timeoutMs" | "isIdempotent">;

/** What adapters have in common; `Request` are the arguments that a request is made of. */
export interface AdapterOptions<Request extends readonly unknown[]> {
  /**
   * What a request asks for. Default: priority `normal`, the time of the admission, and idempotent
   * where its method says so
   */
  readonly optionsOf?: (...request: Request) => RequestOptions;
  /**
   * How long a response keeps its permit while nobody asks for more of it, in milliseconds: who
   * drops a response unread does not hold a permit for ever. The response itself stays as it is.
   * Default 30,000
   */
  readonly unreadMsMax?: number;
}

/** How long the responses of an adapter hold permits. */
export function holdOptions(
  { clock }: Admission,
  { unreadMsMax = 30_000 }: Pick<AdapterOptions<[]>, "unreadMsMax">,
): HoldOptions {
  return { clock, unreadMsMax };
}
