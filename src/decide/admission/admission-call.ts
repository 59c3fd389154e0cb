import type { BufferedBody } from "../../core/admission/exchange.js";
import type {
  MetadataValues,
  Refusal,
  ScalarValue,
} from "../../core/admission/exchange-messages.js";
import type { Priority } from "../../core/admission/priority.js";
import type { HeaderField } from "../../core/base/header-field.js";
import type { CallFacts } from "../../core/budgets/usage.js";
import type { RequestEnding, ResponseStatus } from "../../core/calls/request-outcome.js";

/** One request that asks to be let in, as its headers and Envoy's attributes tell. */
export interface AdmissionRequest {
  /** As the route says (`x-headgate-service` in the stream's metadata); undefined: by host. */
  readonly serviceName: string | undefined;
  /** Who asks on its behalf, a proxy or all that show one certificate; see `Peer.identity`. */
  readonly peer: string;
  /** Wanted header fields by lower-case name, pseudo-headers among them. */
  readonly headers: ReadonlyMap<string, string>;
  /** Envoy's attributes by name, as far as they were sent. */
  readonly attributes: ReadonlyMap<string, ScalarValue>;
  /** Envoy waits for no answer: counted and learnt from, never refused and never held. */
  readonly isObserved: boolean;
  /** What its body says; see `AdmissionDecider.readBody`. Absent: it was not read. */
  readonly facts?: CallFacts;
}

/** What goes on with an admitted request. */
export interface AdmissionGrant {
  readonly priority: Priority;
  /** For the upstream: the class, and the time left where it is known. */
  readonly setHeaders: readonly HeaderField[];
  /** Never to be believed further on. */
  readonly removeHeaders: readonly string[];
  /** For later filters, in the namespace `headgate`; undefined: none. */
  readonly metadata: ReadonlyMap<string, ScalarValue> | undefined;
  /** Whether response headers are wanted for this request; undefined: as Envoy is set up. */
  readonly responseHeaders: "send" | "skip" | undefined;
  /**
   * Whether its end has to be known. False (a bypassed path, a service without admission): the
   * stream is ended with the answer, and Envoy sends nothing more.
   */
  readonly isFollowed: boolean;
  /**
   * Set on the response, such as the cookie of a session. Absent: none. Its headers are then asked
   * for, whatever `responseHeaders` says.
   */
  readonly responseSetHeaders?: readonly HeaderField[];
  /** Whether Envoy chooses the route again, by the headers that are set. Absent: it does not. */
  readonly clearsRoute?: true;
}

/** What `AdmissionDecider.begin` returns: what became of a request, as far as it is known. */
export type AdmissionAnswer =
  /** @property ticket undefined where nobody needs to know how it ends: see `isFollowed` */
  | {
      readonly kind: "admitted";
      readonly terms: AdmissionGrant;
      readonly ticket: AdmissionTicket | undefined;
    }
  | { readonly kind: "refused"; readonly refusal: Refusal }
  /** @property timeoutMs how long Envoy has to wait at most; our own answer comes first */
  | { readonly kind: "waiting"; readonly timeoutMs: number; readonly ticket: AdmissionTicket }
  /** The rate limit is asked. */
  | { readonly kind: "asking"; readonly ticket: AdmissionTicket };

/**
 * How much longer than our own wait Envoy is told to wait, in milliseconds: our answer comes first.
 * The filter's `max_message_timeout` must be the longest wait plus this, or Envoy takes no notice.
 */
export const waitTimeoutMarginMs = 200;

/** What became of a request. */
export type AdmissionVerdict = Exclude<AdmissionAnswer, { readonly kind: "asking" }>;

/** Who asks, for what is known only after `AdmissionDecider.begin` has returned. */
export interface AdmissionCall {
  /**
   * Nothing after `admitted` or `refused`, and nothing once the ticket's exchange has ended; after
   * `waiting` one of the two.
   */
  decided(verdict: AdmissionVerdict): void;
}

/** What the upstream answered. */
export interface ResponseFacts extends ResponseStatus {
  /** The header `endpoint-load-metrics`, as it came. */
  readonly loadMetrics: string | undefined;
  /** Wanted headers, or trailers, by lower-case name. Absent: they are of no interest. */
  readonly headers?: ReadonlyMap<string, string>;
  /** Wanted dynamic metadata of other filters, as it was then. Absent: none. */
  readonly metadata?: MetadataValues | undefined;
}

/** A request's hold on its place, from `AdmissionDecider.begin` on. */
export interface AdmissionTicket {
  /** The upstream's headers came, or trailers with more to say. At most a few times. */
  responded(facts: ResponseFacts): void;
  /**
   * The exchange is over: gives the permit back, or leaves the queue. Exactly once, whatever came
   * before; after a refusal it does nothing, and need not be told.
   *
   * @param end what the stream's end says; the ticket judges it with what it knows (deadline,
   * status)
   */
  end(end: RequestEnding): void;
}

/** Who decides per request: made by the composition root, used by the ext_proc service. */
export interface AdmissionDecider {
  /** Header names that it wants to see of requests, in lower case. */
  readonly requestHeaderNames: ReadonlySet<string>;
  /** Header names that it wants to see of responses, in lower case. */
  readonly responseHeaderNames: ReadonlySet<string>;
  /** Attribute names that it wants to see. */
  readonly attributeNames: ReadonlySet<string>;
  /** Paths in dynamic metadata of other filters that it wants to see, by namespace. */
  readonly metadataPaths: ReadonlyMap<string, ReadonlySet<string>>;
  /** Whether a request is decided with its body. Asked only where Envoy buffers one. */
  readsBody(request: AdmissionRequest): boolean;
  /** What the body says of a request, which `begin` is then given. The bytes are not kept. */
  readBody(request: AdmissionRequest, body: BufferedBody): CallFacts;
  /** @param call told what is not decided yet; never before this returns */
  begin(request: AdmissionRequest, call: AdmissionCall): AdmissionAnswer;
}
