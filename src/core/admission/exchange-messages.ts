import type { HeaderField } from "../base/header-field.js";

/**
 * Messages of an ext_proc exchange as plain values, which `src/rpc/ext-proc/ext-proc-codec.ts`
 * decodes and encodes. Source: envoy/service/ext_proc/v3/external_processor.proto.
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

/** How Envoy sends a body. Source: ProcessingMode.BodySendMode; "unknown" is from a later Envoy. */
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

/** One message from Envoy. */
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
      /** A piece of a body: a view that is valid as long as the message's bytes. */
      readonly body?: Uint8Array | undefined;
      /** Wanted dynamic metadata of other filters. Absent: none. */
      readonly metadata?: MetadataValues | undefined;
      /** No body follows the headers, or this is its last piece; true for trailers. */
      readonly isEndOfStream: boolean;
      /** Envoy waits for no reply. Source: ProcessingRequest.observability_mode. */
      readonly isObserved: boolean;
      /** Sent in the first message of a stream only. Source: ProtocolConfiguration. */
      readonly bodyModes?: BodyModes | undefined;
    }
  /** Well-formed, but not a known part: a later Envoy may send it. */
  | { readonly kind: "unknown" }
  /** Not a ProcessingRequest. */
  | { readonly kind: "malformed" };

/** Stream metadata that distinguishes the filter that shows responses from the one that asks. */
export const roleHeader = "x-headgate-role";

/** Namespace of Headgate's dynamic metadata. */
export const metadataNamespace = "headgate";

/** Dynamic metadata: fields of one namespace. */
export interface ReplyMetadata {
  readonly namespace: string;
  readonly fields: ReadonlyMap<string, ScalarValue>;
}

/** Reply to one part, which lets the exchange continue. */
export interface ContinueReply {
  readonly kind: "continue";
  /** The part that is answered. Envoy treats a reply to another part as spurious. */
  readonly part: ExchangePart;
  /** Headers to set. They replace existing ones unless they are appended. */
  readonly setHeaders: readonly HeaderField[];
  readonly removeHeaders: readonly string[];
  /** Undefined: no metadata is sent. */
  readonly metadata: ReplyMetadata | undefined;
  /** Whether Envoy sends response headers for this exchange; undefined keeps its configuration. */
  readonly responseHeaders: "send" | "skip" | undefined;
  /** Whether Envoy selects the route again, by the headers that are set. Absent: it does not. */
  readonly clearsRoute?: true;
}

/** A response of Headgate instead of the upstream's. */
export interface Refusal {
  /** HTTP status: 400 to 599, or 200 for the page of a waiting room. */
  readonly status: number;
  /** gRPC status for gRPC requests; undefined lets Envoy derive it. */
  readonly grpcStatus: number | undefined;
  readonly headers: readonly HeaderField[];
  /** Empty for HEAD. */
  readonly body: string;
  /** Envoy's response code details: no spaces. */
  readonly details: string;
  /** Absent: no metadata is sent. */
  readonly metadata?: ReplyMetadata;
}

/** One message to Envoy. */
export type ExchangeReply =
  | ContinueReply
  | { readonly kind: "immediate"; readonly refusal: Refusal }
  /** Envoy waits this long for the reply. Source: ProcessingResponse.override_message_timeout. */
  | { readonly kind: "wait"; readonly timeoutMs: number };
