import { assertNever } from "../base/errors.js";
import type { HeaderField } from "../base/header-field.js";
import { httpStatuses } from "../base/http-status.js";
import {
  type BodyMode,
  type ExchangeMessage,
  type ExchangePart,
  type ExchangeReply,
  metadataNamespace,
  type Refusal,
  type ScalarValue,
} from "./exchange-messages.js";

/** State of an exchange: one ext_proc stream, which is one HTTP request. */
export type ExchangeState =
  /** No message has arrived. */
  | { readonly kind: "new" }
  /** The decision needs the body, which has not arrived. */
  | { readonly kind: "awaitingBody"; readonly headers: PartMessage }
  /** Admission was asked; no verdict yet. */
  | {
      readonly kind: "deciding";
      readonly isObserved: boolean;
      readonly hasWaited: boolean;
      /** The part that the verdict answers. */
      readonly part: "requestHeaders" | "requestBody";
    }
  /** Admitted: in flight until it ends. */
  | {
      readonly kind: "admitted";
      readonly isObserved: boolean;
      /** Response headers have arrived. */
      readonly hasResponse: boolean;
      /** Response headers will not arrive, because the reply asked Envoy to skip them. */
      readonly skipsResponse: boolean;
      /** Headers that the reply to response headers sets. */
      readonly responseSetHeaders: readonly HeaderField[];
      /** False: the stream ends with that reply. */
      readonly isFollowed: boolean;
    }
  /** Not in flight any more; Envoy only finishes a response of its own. */
  | { readonly kind: "finishing"; readonly isObserved: boolean }
  /** Over: further events are ignored. */
  | { readonly kind: "over" };

/** Event of an exchange. */
export type ExchangeEvent =
  | {
      readonly kind: "message";
      readonly message: ExchangeMessage;
      /** For request headers: whether to decide the request with its body; see `mayAwaitBody`. */
      readonly awaitsBody?: boolean;
    }
  /** The verdict of admission. */
  | { readonly kind: "admitted"; readonly terms: ForwardingTerms }
  | { readonly kind: "refused"; readonly refusal: Refusal }
  /** Admission needs time; a verdict follows. */
  | { readonly kind: "waiting"; readonly timeoutMs: number }
  /** A message exceeds the maximum size: `refusal` answers a request not admitted yet. */
  | { readonly kind: "tooLarge"; readonly refusal: Refusal }
  /**
   * Envoy half-closed the stream, reset it, or its connection is gone. Envoy also resets streams of
   * successful exchanges, so the three mean the same.
   */
  | { readonly kind: "callerEnded" };

/** How an admitted request is forwarded. */
export interface ForwardingTerms {
  readonly setHeaders: readonly HeaderField[];
  readonly removeHeaders: readonly string[];
  /** Undefined: no metadata is sent. */
  readonly metadata: ReadonlyMap<string, ScalarValue> | undefined;
  /** Whether Envoy sends response headers; undefined keeps its configuration. */
  readonly responseHeaders: "send" | "skip" | undefined;
  /** False: the end of the request does not matter. */
  readonly isFollowed: boolean;
  /** Headers to set on the response; Envoy is then asked for its headers. Absent: none. */
  readonly responseSetHeaders?: readonly HeaderField[];
  /** Whether Envoy selects the route again, by the headers that are set. Absent: it does not. */
  readonly clearsRoute?: true;
}

/** A message with a part of the exchange. */
export type PartMessage = Extract<ExchangeMessage, { kind: "part" }>;

/** The body of a request as Envoy has buffered it. */
export interface BufferedBody {
  /** A view that is valid as long as the bytes of its message. */
  readonly bytes: Uint8Array;
  /** False: Envoy sends the rest only to the upstream, after the reply. */
  readonly isWhole: boolean;
}

/** Action outside of the state machine. */
export type ExchangeEffect =
  /** Ask admission for a verdict, by the request headers and the awaited body. */
  | {
      readonly kind: "begin";
      readonly message: PartMessage;
      readonly body?: BufferedBody | undefined;
    }
  /** Report the upstream's response, by its headers or trailers. */
  | { readonly kind: "responded"; readonly message: PartMessage }
  /**
   * The request is not in flight any more. "completed": the response went through; "left": the
   * caller gave up before a response; "broken": Envoy broke the protocol.
   */
  | { readonly kind: "end"; readonly end: "completed" | "left" | "broken" }
  /** Count a request that another filter answered before admission was asked. */
  | { readonly kind: "answeredBefore" }
  /** End the stream with success. */
  | { readonly kind: "endStream" }
  | { readonly kind: "failStream"; readonly fault: ExchangeFault };

/** Fault of a message from Envoy that cannot be answered. */
export type ExchangeFault =
  /** Not a ProcessingRequest. */
  | "malformed"
  /** Not a known part. */
  | "unknown"
  /** Repeated headers, or a part while the request still waits. */
  | "outOfOrder"
  /** The exchange begins neither with request headers nor with response headers. */
  | "noRequestHeaders"
  /** Bodies pass through this processor: Envoy drops what is not sent back. */
  | "bodiesStreamed";

/** Result of an event: the replies are sent first, then the effects run in order. */
interface ExchangeStep {
  readonly state: ExchangeState;
  readonly replies: readonly ExchangeReply[];
  readonly effects: readonly ExchangeEffect[];
}

/** State of a new exchange. */
export const newExchange: ExchangeState = { kind: "new" };

/**
 * Reports whether a request can be decided with its body: it has a body, and Envoy holds back the
 * headers until the body is answered. A mode override cannot ask for the body: if overrides are not
 * allowed, Envoy ignores it, and no body would ever arrive.
 */
export function mayAwaitBody({ part, bodyModes, isEndOfStream, isObserved }: PartMessage): boolean {
  if (bodyModes === undefined || isEndOfStream || isObserved) return false;
  return part === "requestHeaders" && isBuffered(bodyModes.request);
}

/**
 * Applies an event to one ext_proc stream, as a pure function. In any order of events, `begin`
 * occurs at most once, and `end` follows it exactly once unless the request was refused. Each part
 * is answered at most once, none after a refusal, and none if Envoy is known to only observe.
 *
 * If a request is decided with its body, the reply to its headers changes nothing. The reply to the
 * body carries the verdict, except the mode of response headers, which Envoy ignores there.
 *
 * Source: envoy/service/ext_proc/v3/external_processor.proto.
 */
export function stepExchange(state: ExchangeState, event: ExchangeEvent): ExchangeStep {
  if (state.kind === "over") return stay(state);
  switch (event.kind) {
    case "message":
      return event.message.kind === "part"
        ? onPart(state, event.message, event.awaitsBody === true)
        : fail(state, event.message.kind);
    case "admitted":
      return state.kind === "deciding" ? admit(state, event.terms) : stay(state);
    case "refused":
      return state.kind === "deciding" ? refuse(state, event.refusal) : stay(state);
    case "waiting":
      return state.kind === "deciding" ? wait(state, event.timeoutMs) : stay(state);
    case "tooLarge":
      return refuseUnread(state, event.refusal);
    case "callerEnded":
      return { state: over, replies: none, effects: [...givingBack(state), endStream] };
    default:
      return assertNever(event);
  }
}

type OpenState = Exclude<ExchangeState, { kind: "over" }>;
type StateOf<Kind extends ExchangeState["kind"]> = Extract<ExchangeState, { kind: Kind }>;

const none: readonly never[] = [];
const over: ExchangeState = { kind: "over" };
const endStream: ExchangeEffect = { kind: "endStream" };
const completed: ExchangeEffect = { kind: "end", end: "completed" };
const left: ExchangeEffect = { kind: "end", end: "left" };
const broken: ExchangeEffect = { kind: "end", end: "broken" };

function stay(state: ExchangeState): ExchangeStep {
  return { state, replies: none, effects: none };
}

function onPart(state: OpenState, message: PartMessage, awaitsBody: boolean): ExchangeStep {
  const { part } = message;
  if (state.kind === "new") return open(state, message, awaitsBody);
  if (part === "requestHeaders") return fail(state, "outOfOrder");
  if (state.kind === "awaitingBody") return onAwaited(state, message);
  if (state.kind === "deciding") return onPartTooEarly(state, part);
  if (part === "responseHeaders" && state.kind === "admitted") return respond(state, message);
  const replies = state.isObserved ? none : [plainReply(part)];
  if (state.kind === "finishing") return { state, replies, effects: none };
  if (part !== "responseTrailers") return { state, replies, effects: none };
  return { state, replies, effects: [{ kind: "responded", message }] };
}

function open(state: StateOf<"new">, message: PartMessage, awaitsBody: boolean): ExchangeStep {
  const { part, isObserved } = message;
  const isAnswered = part === "responseHeaders";
  if (part !== "requestHeaders" && !isAnswered) return fail(state, "noRequestHeaders");
  if (isLostUnlessSentBack(message)) return fail(state, "bodiesStreamed");
  if (isAnswered) return passAnswer(isObserved);
  if (awaitsBody && mayAwaitBody(message)) {
    const awaiting: ExchangeState = { kind: "awaitingBody", headers: message };
    return { state: awaiting, replies: [plainReply(part)], effects: none };
  }
  const deciding: ExchangeState = { kind: "deciding", isObserved, hasWaited: false, part };
  return { state: deciding, replies: none, effects: [{ kind: "begin", message }] };
}

/**
 * Instead of the body, Envoy may send its own response, as for a body that is too large, or
 * trailers if the body is empty. Nothing could be set on such a request any more.
 */
function onAwaited(state: StateOf<"awaitingBody">, message: PartMessage): ExchangeStep {
  const { headers } = state;
  const { part } = message;
  if (part === "responseHeaders") return passAnswer(false);
  if (part === "requestTrailers") {
    const refusal: ExchangeReply = { kind: "immediate", refusal: emptyBodyRefusal };
    return { state: over, replies: [refusal], effects: [endStream] };
  }
  if (part !== "requestBody") return fail(state, "outOfOrder");
  const { body: bytes = new Uint8Array(), isEndOfStream } = message;
  const isWhole = isEndOfStream || headers.bodyModes?.request === "buffered";
  const deciding: ExchangeState = { kind: "deciding", isObserved: false, hasWaited: false, part };
  const begin: ExchangeEffect = { kind: "begin", message: headers, body: { bytes, isWhole } };
  return { state: deciding, replies: none, effects: [begin] };
}

function respond(state: StateOf<"admitted">, message: PartMessage): ExchangeStep {
  const { isObserved, hasResponse, isFollowed, responseSetHeaders: setHeaders } = state;
  if (hasResponse) return fail(state, "outOfOrder");
  const replies = isObserved ? none : [{ ...plainReply("responseHeaders"), setHeaders }];
  if (!isFollowed) return { state: over, replies, effects: [completed, endStream] };
  const effects: readonly ExchangeEffect[] = [{ kind: "responded", message }];
  return { state: { ...state, hasResponse: true }, replies, effects };
}

/**
 * An earlier filter (a rate limit, a fault) answered the request. Envoy shows the response to all
 * filters, and this one sees the exchange for the first time: it needs no verdict and no permit.
 */
function passAnswer(isObserved: boolean): ExchangeStep {
  const replies = isObserved ? none : [plainReply("responseHeaders")];
  const effects: readonly ExchangeEffect[] = [{ kind: "answeredBefore" }];
  return { state: { kind: "finishing", isObserved }, replies, effects };
}

/**
 * A response while its request still waits is Envoy's own (a stream timeout): the caller does not
 * wait any more. If Envoy only lets this filter observe, it sends each part as it comes.
 */
function onPartTooEarly(state: StateOf<"deciding">, part: ExchangePart): ExchangeStep {
  const { isObserved } = state;
  if (part === "responseHeaders") {
    const replies = isObserved ? none : [plainReply(part)];
    return { state: { kind: "finishing", isObserved }, replies, effects: [left] };
  }
  return isObserved ? stay(state) : fail(state, "outOfOrder");
}

function isLostUnlessSentBack({ bodyModes, isObserved }: PartMessage): boolean {
  if (bodyModes === undefined || isObserved) return false;
  const { request, response } = bodyModes;
  return request === "fullDuplexStreamed" || response === "fullDuplexStreamed";
}

function isBuffered(mode: BodyMode): boolean {
  return mode === "buffered" || mode === "bufferedPartial";
}

function admit(state: StateOf<"deciding">, terms: ForwardingTerms): ExchangeStep {
  const { isObserved, part } = state;
  const { setHeaders, removeHeaders, metadata, isFollowed, responseSetHeaders = none } = terms;
  const setsResponse = !isObserved && responseSetHeaders.length > 0;
  const asked = setsResponse ? "send" : isFollowed ? terms.responseHeaders : undefined;
  const responseHeaders = part === "requestHeaders" ? asked : undefined;
  const reply: ExchangeReply = {
    kind: "continue",
    part,
    setHeaders,
    removeHeaders,
    metadata:
      metadata === undefined ? undefined : { namespace: metadataNamespace, fields: metadata },
    responseHeaders,
    ...(terms.clearsRoute === true ? { clearsRoute: true } : {}),
  };
  const replies = isObserved ? none : [reply];
  if (!isFollowed && !setsResponse)
    return { state: over, replies, effects: [completed, endStream] };
  const skipsResponse = !isObserved && responseHeaders === "skip";
  const admitted: ExchangeState = {
    kind: "admitted",
    isObserved,
    hasResponse: false,
    skipsResponse,
    responseSetHeaders,
    isFollowed,
  };
  return { state: admitted, replies, effects: none };
}

function refuse({ isObserved }: StateOf<"deciding">, refusal: Refusal): ExchangeStep {
  const replies: readonly ExchangeReply[] = isObserved ? none : [{ kind: "immediate", refusal }];
  return { state: over, replies, effects: [endStream] };
}

/**
 * Refuses instead of failing: an error would let the request pass if Envoy fails open. An admitted
 * request continues, because a stream that ends with success is no failure.
 */
function refuseUnread(state: OpenState, refusal: Refusal): ExchangeStep {
  const isUndecided = state.kind === "new" || state.kind === "awaitingBody";
  const isRefused = isUndecided || (state.kind === "deciding" && !state.isObserved);
  const replies: readonly ExchangeReply[] = isRefused ? [{ kind: "immediate", refusal }] : none;
  return { state: over, replies, effects: [...givingBack(state), endStream] };
}

/** Overrides Envoy's timeout once: while it waits for a reply, Envoy ignores further overrides. */
function wait(state: StateOf<"deciding">, timeoutMs: number): ExchangeStep {
  if (state.isObserved || state.hasWaited) return stay(state);
  const replies: readonly ExchangeReply[] = [{ kind: "wait", timeoutMs }];
  return { state: { ...state, hasWaited: true }, replies, effects: none };
}

function fail(state: OpenState, fault: ExchangeFault): ExchangeStep {
  const isHeld = state.kind === "deciding" || state.kind === "admitted";
  const effects: readonly ExchangeEffect[] = [
    ...(isHeld ? [broken] : none),
    { kind: "failStream", fault },
  ];
  return { state: over, replies: none, effects };
}

/** Returns the end of a request that is in flight or waits for its verdict. */
function givingBack(state: OpenState): readonly ExchangeEffect[] {
  if (state.kind === "deciding") return [left];
  if (state.kind !== "admitted") return none;
  return [state.hasResponse || state.skipsResponse ? completed : left];
}

/** Returns the reply that changes nothing. */
function plainReply(part: ExchangePart): ExchangeReply {
  return {
    kind: "continue",
    part,
    setHeaders: none,
    removeHeaders: none,
    metadata: undefined,
    responseHeaders: undefined,
  };
}

/** Answers a request with trailers and no body, for a service whose request bodies are read. */
const emptyBodyRefusal: Refusal = {
  status: httpStatuses.badRequest,
  grpcStatus: undefined,
  headers: [{ name: "content-type", value: "text/plain" }],
  body: "The request has trailers and no body.",
  details: "headgate_empty_body",
};
