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

/** A request to decide, described by its headers and Envoy's attributes. */
export interface AdmissionRequest {
  /** Service that the route names (`x-headgate-service` in metadata). Undefined: found by host. */
  readonly serviceName: string | undefined;
  /** The peer that sent it: a proxy, or all with the same certificate; see `Peer.identity`. */
  readonly peer: string;
  /** Requested header fields by lower-case name, including pseudo-headers. */
  readonly headers: ReadonlyMap<string, string>;
  /** Envoy's attributes by name, if they were sent. */
  readonly attributes: ReadonlyMap<string, ScalarValue>;
  /** Envoy does not wait for an answer: counted and measured, never refused or delayed. */
  readonly isObserved: boolean;
  /** Facts from its body; see `AdmissionDecider.readBody`. Absent: the body was not read. */
  readonly facts?: CallFacts;
}

/** Instructions for an admitted request. */
export interface AdmissionGrant {
  readonly priority: Priority;
  /** Headers for the upstream: the class, and the remaining time if it is known. */
  readonly setHeaders: readonly HeaderField[];
  /** Headers to remove, because the upstream must not trust them. */
  readonly removeHeaders: readonly string[];
  /** Metadata for later filters, in the namespace `headgate`. Undefined: none. */
  readonly metadata: ReadonlyMap<string, ScalarValue> | undefined;
  /** Whether Envoy sends response headers for this request. Undefined: as it is configured. */
  readonly responseHeaders: "send" | "skip" | undefined;
  /**
   * Whether Headgate needs the end of the request. False (a bypassed path, a service without
   * admission): the stream ends with the answer, and Envoy sends nothing more.
   */
  readonly isFollowed: boolean;
  /**
   * Headers to set on the response, such as a session cookie. Absent: none. If present, Envoy is
   * asked for response headers whatever `responseHeaders` says.
   */
  readonly responseSetHeaders?: readonly HeaderField[];
  /** Whether Envoy chooses the route again, by the headers that are set. Absent: it does not. */
  readonly clearsRoute?: true;
}

/** Result of `AdmissionDecider.begin`: what is known of the decision at that time. */
export type AdmissionAnswer =
  /** @property ticket undefined if the end of the request is not needed: see `isFollowed` */
  | {
      readonly kind: "admitted";
      readonly terms: AdmissionGrant;
      readonly ticket: AdmissionTicket | undefined;
    }
  | { readonly kind: "refused"; readonly refusal: Refusal }
  /** @property timeoutMs maximum time that Envoy waits; Headgate answers earlier */
  | { readonly kind: "waiting"; readonly timeoutMs: number; readonly ticket: AdmissionTicket }
  /** The decision is pending. */
  | { readonly kind: "asking"; readonly ticket: AdmissionTicket };

/**
 * How much longer than Headgate itself Envoy is told to wait, in milliseconds: Headgate answers
 * first. The filter's `max_message_timeout` must be at least the longest wait plus this, or Envoy
 * ignores it.
 */
export const waitTimeoutMarginMs = 200;

/** An answer that is not pending. */
export type AdmissionVerdict = Exclude<AdmissionAnswer, { readonly kind: "asking" }>;

/** Receives verdicts that are known only after `AdmissionDecider.begin` has returned. */
export interface AdmissionCall {
  /**
   * Called with `admitted` or `refused` at most once, and before that possibly with `waiting`. Not
   * called once the ticket's exchange has ended.
   */
  decided(verdict: AdmissionVerdict): void;
}

/** Facts about the upstream's response. */
export interface ResponseFacts extends ResponseStatus {
  /** The header `endpoint-load-metrics` as received. */
  readonly loadMetrics: string | undefined;
  /** Requested headers or trailers, by lower-case name. Absent: none are needed. */
  readonly headers?: ReadonlyMap<string, string>;
  /** Requested dynamic metadata of other filters at that time. Absent: none. */
  readonly metadata?: MetadataValues | undefined;
}

/** Handle of a request, from `AdmissionDecider.begin` on. */
export interface AdmissionTicket {
  /** The upstream's headers arrived, or trailers with more facts. Called at most a few times. */
  responded(facts: ResponseFacts): void;
  /**
   * The exchange has ended: gives back the permit, or leaves the queue. Called exactly once, in any
   * state. After a refusal it has no effect and may be omitted.
   *
   * @param end how the stream ended; the ticket combines it with what it knows (deadline, status)
   */
  end(end: RequestEnding): void;
}

/** Decides each request. Created by the composition root, used by the ext_proc service. */
export interface AdmissionDecider {
  /** Names of the request headers that it needs, in lower case. */
  readonly requestHeaderNames: ReadonlySet<string>;
  /** Names of the response headers that it needs, in lower case. */
  readonly responseHeaderNames: ReadonlySet<string>;
  /** Names of the attributes that it needs. */
  readonly attributeNames: ReadonlySet<string>;
  /** Paths in dynamic metadata of other filters that it needs, by namespace. */
  readonly metadataPaths: ReadonlyMap<string, ReadonlySet<string>>;
  /** Whether the decision needs the request's body. Called only if Envoy buffers it. */
  readsBody(request: AdmissionRequest): boolean;
  /** Returns facts from the body, which are then passed to `begin`. The bytes are not kept. */
  readBody(request: AdmissionRequest, body: BufferedBody): CallFacts;
  /** @param call receives later verdicts; never called before this returns */
  begin(request: AdmissionRequest, call: AdmissionCall): AdmissionAnswer;
}
