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

/** Where an exchange stands: one ext_proc stream, which is one HTTP request. */
export type ExchangeState =
  /** Nothing came yet. */
  | { readonly kind: "new" }
  /** Is decided with its body, which has not come. */
  | { readonly kind: "awaitingBody"; readonly headers: PartMessage }
  /** Asked for a place; no verdict yet. */
  | {
      readonly kind: "deciding";
      readonly isObserved: boolean;
      readonly hasWaited: boolean;
      /** What the verdict answers. */
      readonly part: "requestHeaders" | "requestBody";
    }
  /** Let in: it holds a place until it ends. */
  | {
      readonly kind: "admitted";
      readonly isObserved: boolean;
      /** Response headers have come. */
      readonly hasResponse: boolean;
      /** Response headers will not come, because we asked so. */
      readonly skipsResponse: boolean;
      /** What the answer to response headers sets. */
      readonly responseSetHeaders: readonly HeaderField[];
      /** False: the stream ends with that answer. */
      readonly isFollowed: boolean;
    }
  /** Holds no place any more; Envoy only finishes an answer of its own. */
  | { readonly kind: "finishing"; readonly isObserved: boolean }
  /** Over: whatever comes now is of no interest. */
  | { readonly kind: "over" };

/** What happens to an exchange. */
export type ExchangeEvent =
  | {
      readonly kind: "message";
      readonly message: ExchangeMessage;
      /** Of request headers: whether the request is decided with its body; see `mayAwaitBody`. */
      readonly awaitsBody?: boolean;
    }
  /** The verdict of admission. */
  | { readonly kind: "admitted"; readonly terms: ForwardingTerms }
  | { readonly kind: "refused"; readonly refusal: Refusal }
  /** Admission needs time; a verdict follows. */
  | { readonly kind: "waiting"; readonly timeoutMs: number }
  /** A message is larger than is read: `refusal` answers a request that is not let in yet. */
  | { readonly kind: "tooLarge"; readonly refusal: Refusal }
  /**
   * Envoy half-closed the stream, reset it, or its connection is gone. It resets streams of
   * exchanges that went well, so the three mean the same.
   */
  | { readonly kind: "callerEnded" };

/** How a request goes on. */
export interface ForwardingTerms {
  readonly setHeaders: readonly HeaderField[];
  readonly removeHeaders: readonly string[];
  /** Undefined sends none. */
  readonly metadata: ReadonlyMap<string, ScalarValue> | undefined;
  /** Whether Envoy sends response headers; undefined leaves its configuration. */
  readonly responseHeaders: "send" | "skip" | undefined;
  /** False: nobody needs to know how it ends. */
  readonly isFollowed: boolean;
  /** Set on the response, whose headers are then asked for. Absent: none. */
  readonly responseSetHeaders?: readonly HeaderField[];
  /** Whether Envoy chooses the route again, by the headers that are set. Absent: it does not. */
  readonly clearsRoute?: true;
}

/** A message with a part of the exchange. */
export type PartMessage = Extract<ExchangeMessage, { kind: "part" }>;

/** The body of a request as Envoy has buffered it. */
export interface BufferedBody {
  /** A view that holds as long as the bytes of its message. */
  readonly bytes: Uint8Array;
  /** False: the rest is sent to the upstream alone, after the answer. */
  readonly isWhole: boolean;
}

/** What to do outside. */
export type ExchangeEffect =
  /** Ask for a place, of request headers and the body that was awaited. */
  | {
      readonly kind: "begin";
      readonly message: PartMessage;
      readonly body?: BufferedBody | undefined;
    }
  /** Tell what the upstream answered: in its headers, or trailers. */
  | { readonly kind: "responded"; readonly message: PartMessage }
  /**
   * The place is not needed any more. "completed": the response went through; "left": the caller
   * gave up before there was one; "broken": Envoy broke the protocol.
   */
  | { readonly kind: "end"; readonly end: "completed" | "left" | "broken" }
  /** Count it: somebody answered before we were asked. */
  | { readonly kind: "answeredBefore" }
  /** End the stream well. */
  | { readonly kind: "endStream" }
  | { readonly kind: "failStream"; readonly fault: ExchangeFault };

/** What Envoy sent that cannot be answered. */
export type ExchangeFault =
  /** Not a ProcessingRequest. */
  | "malformed"
  /** None of the parts that we know. */
  | "unknown"
  /** Headers that have been there already, or a part while the request still waits. */
  | "outOfOrder"
  /** The exchange begins neither with request headers nor with an answer. */
  | "noRequestHeaders"
  /** Bodies come through us: Envoy drops what is not sent back. */
  | "bodiesStreamed";

/** What follows from an event: replies leave first, then effects in their order. */
interface ExchangeStep {
  readonly state: ExchangeState;
  readonly replies: readonly ExchangeReply[];
  readonly effects: readonly ExchangeEffect[];
}

/** How an exchange begins. */
export const newExchange: ExchangeState = { kind: "new" };

/**
 * Whether a request can be decided with its body: it has one, and Envoy holds the headers back
 * until the body is answered. An override of the mode cannot ask for that: where it is not allowed,
 * Envoy ignores it, and no body would ever come.
 */
export function mayAwaitBody({ part, bodyModes, isEndOfStream, isObserved }: PartMessage): boolean {
  if (bodyModes === undefined || isEndOfStream || isObserved) return false;
  return part === "requestHeaders" && isBuffered(bodyModes.request);
}

/**
 * The protocol of one ext_proc stream, purely. Whatever the order of events: `begin` is asked for
 * at most once; `end` follows it exactly once, unless it was refused; every part is answered at
 * most once, an exchange that Envoy only lets us observe never, and nothing after a refusal.
 *
 * A request that is decided with its body has its headers answered plainly: what the verdict says
 * goes with the answer to the body, except the mode of response headers, which Envoy ignores there.
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
 * Instead of the body may come what Envoy answers by itself, as it does to bodies that are too
 * large; or trailers, where the body is empty. Nothing could be set on such a request any more.
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
 * A filter before ours answered the request itself (a rate limit, a fault): Envoy shows every
 * filter what goes back, this one for the first time. It asks for nothing, and holds no place.
 */
function passAnswer(isObserved: boolean): ExchangeStep {
  const replies = isObserved ? none : [plainReply("responseHeaders")];
  const effects: readonly ExchangeEffect[] = [{ kind: "answeredBefore" }];
  return { state: { kind: "finishing", isObserved }, replies, effects };
}

/**
 * A response while its request still waits is one of Envoy's own making (a time-out of its stream):
 * nobody waits any more. Where Envoy only lets us observe it sends everything as it comes.
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
 * An error would let the request pass where Envoy fails open. One that was let in goes on by
 * itself: a stream that ends well is no failure.
 */
function refuseUnread(state: OpenState, refusal: Refusal): ExchangeStep {
  const isUndecided = state.kind === "new" || state.kind === "awaitingBody";
  const isRefused = isUndecided || (state.kind === "deciding" && !state.isObserved);
  const replies: readonly ExchangeReply[] = isRefused ? [{ kind: "immediate", refusal }] : none;
  return { state: over, replies, effects: [...givingBack(state), endStream] };
}

/** Envoy takes one override of its time-out while it waits for an answer, and ignores others. */
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

/** The end of whoever holds a place or waits for one. */
function givingBack(state: OpenState): readonly ExchangeEffect[] {
  if (state.kind === "deciding") return [left];
  if (state.kind !== "admitted") return none;
  return [state.hasResponse || state.skipsResponse ? completed : left];
}

/** The answer that changes nothing. */
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

/** Answers a request with trailers and no body, to a service whose requests are read. */
const emptyBodyRefusal: Refusal = {
  status: httpStatuses.badRequest,
  grpcStatus: undefined,
  headers: [{ name: "content-type", value: "text/plain" }],
  body: "The request has trailers and no body.",
  details: "headgate_empty_body",
};
