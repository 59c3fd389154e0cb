import type { HeaderField } from "../base/header-field.js";

/**
 * What an ext_proc exchange is made of, as plain values: bytes become it and it becomes bytes in
 * `src/rpc/ext-proc/ext-proc-codec.ts`. Source: envoy/service/ext_proc/v3/external_processor.proto.
 */

/** A value of an attribute or of dynamic metadata that a decision may use. */
export type ScalarValue = string | number | boolean;

/** The parts of an HTTP exchange that Envoy may send. */
export type ExchangePart =
  | "requestHeaders"
  | "requestBody"
  | "requestTrailers"
  | "responseHeaders"
  | "responseBody"
  | "responseTrailers";

/** How Envoy sends a body. Source: ProcessingMode.BodySendMode; "unknown" is a later Envoy's. */
export type BodyMode =
  | "none"
  | "streamed"
  | "buffered"
  | "bufferedPartial"
  | "fullDuplexStreamed"
  | "grpc"
  | "unknown";

/** How Envoy is set up to send the bodies of an exchange. */
export interface BodyModes {
  readonly request: BodyMode;
  readonly response: BodyMode;
}

/**
 * Values of dynamic metadata by namespace, and by the path in it: names joined by dots, such as
 * `usage.prompt_tokens`.
 */
export type MetadataValues = ReadonlyMap<string, ReadonlyMap<string, ScalarValue>>;

/** One message of Envoy's. */
export type ExchangeMessage =
  | {
      readonly kind: "part";
      readonly part: ExchangePart;
      /**
       * Wanted header fields by lower-case name, pseudo-headers among them; several of one name are
       * joined by a comma (cookies by "; "), as Envoy does. Empty for bodies.
       */
      readonly headers: ReadonlyMap<string, string>;
      /** Wanted attributes by name. */
      readonly attributes: ReadonlyMap<string, ScalarValue>;
      /** A piece of a body; a view that holds as long as the message's bytes. */
      readonly body?: Uint8Array | undefined;
      /** Wanted dynamic metadata of other filters. Absent: none. */
      readonly metadata?: MetadataValues | undefined;
      /** No body follows headers, or this was its last piece; true of trailers. */
      readonly isEndOfStream: boolean;
      /** Envoy waits for no answer. Source: ProcessingRequest.observability_mode. */
      readonly isObserved: boolean;
      /** Said in the first message of a stream alone. Source: ProtocolConfiguration. */
      readonly bodyModes?: BodyModes | undefined;
    }
  /** Well-formed, but none of the parts: what a later Envoy may send. */
  | { readonly kind: "unknown" }
  /** Not a ProcessingRequest. */
  | { readonly kind: "malformed" };

/** Metadata of a stream that tells the filter which shows responses from the one that asks. */
export const roleHeader = "x-headgate-role";

/** The namespace of our dynamic metadata. */
export const metadataNamespace = "headgate";

/** Dynamic metadata: fields of one namespace. */
export interface ReplyMetadata {
  readonly namespace: string;
  readonly fields: ReadonlyMap<string, ScalarValue>;
}

/** What an answer to one part says. */
export interface ContinueReply {
  readonly kind: "continue";
  /** The part that is answered; Envoy takes an answer to another one for spurious. */
  readonly part: ExchangePart;
  /** Set, replacing what is there unless they are appended. */
  readonly setHeaders: readonly HeaderField[];
  readonly removeHeaders: readonly string[];
  /** Undefined sends none. */
  readonly metadata: ReplyMetadata | undefined;
  /** Whether Envoy sends response headers for this exchange; undefined leaves its configuration. */
  readonly responseHeaders: "send" | "skip" | undefined;
  /** Whether Envoy chooses the route again, by the headers that are set. Absent: it does not. */
  readonly clearsRoute?: true;
}

/** An answer of our own instead of the upstream's. */
export interface Refusal {
  /** HTTP status: 400 to 599, or 200 for the page of a waiting room. */
  readonly status: number;
  /** For gRPC requests; undefined lets Envoy derive it. */
  readonly grpcStatus: number | undefined;
  readonly headers: readonly HeaderField[];
  /** Empty for HEAD. */
  readonly body: string;
  /** Envoy's response code details: no spaces. */
  readonly details: string;
  /** Absent: sends none. */
  readonly metadata?: ReplyMetadata;
}

/** One message to Envoy. */
export type ExchangeReply =
  | ContinueReply
  | { readonly kind: "immediate"; readonly refusal: Refusal }
  /** Envoy waits this long for the answer. Source: ProcessingResponse.override_message_timeout. */
  | { readonly kind: "wait"; readonly timeoutMs: number };
