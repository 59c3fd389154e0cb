import { type Backoff, backoffMs } from "../../core/base/backoff.js";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import {
  type DiscoveredSet,
  type DiscoveryNode,
  decodeDiscoveryResponse,
  encodeDiscoveryRequest,
} from "./ads-messages.js";

/** Why a stream ended, or could not be opened: a closed set, for logs and labels. */
export type AdsEndReason =
  /** The files of the certificate, its key or the authority cannot be used. */
  | "credentials"
  /** No connection: name, port, TLS or certificate. */
  | "unreachable"
  /** No connection in time. */
  | "timeout"
  /** The server ended the stream without an error. */
  | "ended"
  /** The server refused the call: unauthenticated, no permission, no such service. */
  | "refused"
  /** A message that is too large. */
  | "too_large"
  /** A message that is not a discovery response. */
  | "unreadable"
  /** The connection broke, or the server no longer responded on it. */
  | "lost"
  /** Any other gRPC error. */
  | "failed";

/** How a stream ended. */
export interface AdsEnd {
  readonly reason: AdsEndReason;
  /** A text for people, from the library or the server. It contains no credential. */
  readonly detail: string;
}

/** Receives the events of a stream. None comes after `onEnd`, or after the stream was closed. */
export interface AdsStreamListener {
  /** The connection is established. */
  readonly onConnected: () => void;
  readonly onMessage: (bytes: Uint8Array) => void;
  /** Called once. */
  readonly onEnd: (end: AdsEnd) => void;
}

/** A stream of aggregated discovery on a connection of its own. */
export interface AdsStream {
  send(bytes: Uint8Array): void;
  /** Ends it, and its connection, at once. */
  close(): void;
}

/** Opens a stream. Throws if the credentials are not usable. */
type OpenAdsStream = (listener: AdsStreamListener) => AdsStream;

/** The decision on a set of resources. */
export type SetVerdict =
  /** It is active. `isRepeated`: it was already active, or refused, when it came again. */
  | { readonly kind: "accepted"; readonly isRepeated: boolean }
  | { readonly kind: "refused"; readonly reason: string; readonly isRepeated: boolean };

/** A change of state, for logs. */
export type AdsEvent =
  | { readonly kind: "connected" }
  /** Sent once per outage, not per attempt. */
  | { readonly kind: "disconnected"; readonly end: AdsEnd }
  /** A further attempt of the same outage failed. */
  | { readonly kind: "retry"; readonly end: AdsEnd; readonly waitMs: number };

/** Dependencies and settings of an `AdsClient`. */
export interface AdsClientParts {
  readonly open: OpenAdsStream;
  readonly node: DiscoveryNode;
  /** The only type that is requested. */
  readonly typeUrl: string;
  /** Waits between streams, if the last one had a connection. */
  readonly backoff: Backoff;
  /** Replaces the backoff's first wait while no connection can be made, in milliseconds. */
  readonly connectRetryMs: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Decides on a set. Never rejects, and is not called again before it has resolved. */
  readonly decide: (set: DiscoveredSet) => Promise<SetVerdict>;
  readonly onEvent: (event: AdsEvent) => void;
}

/** Counts since the start, and the current state. Read when metrics are scraped. */
export interface AdsStatus {
  readonly isConnected: boolean;
  readonly ackCount: number;
  readonly nackCount: number;
  /** Responses of a type that was not requested, and those that a newer one has replaced. */
  readonly ignoredCount: number;
  /** Ended streams and failed attempts, by reason. */
  readonly endCounts: ReadonlyMap<AdsEndReason, number>;
  /** Why there is no stream. Absent while there is one, and until the first attempt has ended. */
  readonly lastEnd?: AdsEnd;
}

/** How long a connection attempt may take, including TLS. */
export const adsConnectMsMax = 20_000;

/**
 * Minimum time between two responses to the same content. Some servers send a set again as soon as
 * it is refused. Without this minimum, both sides would do nothing else.
 */
export const repeatedAnswerMs = 1_000;

/** A stream, and the state of the exchange on it. */
interface Conversation {
  stream: AdsStream | undefined;
  isConnected: boolean;
  /** The version of the active set that came over this stream. */
  acceptedVersion: string;
  answerCount: number;
}

/**
 * A client of aggregated discovery, state of the world: subscribes to all resources of one type,
 * answers each set with ACK or NACK, and reconnects after every end, until it is closed.
 *
 * Source: Envoy, "xDS REST and gRPC protocol".
 */
export class AdsClient {
  readonly #parts: AdsClientParts;
  #conversation: Conversation | undefined;
  #cancelTimer: Cancel = () => {};
  #failureCount = 0;
  #ackCount = 0;
  #nackCount = 0;
  #ignoredCount = 0;
  readonly #endCounts = new Map<AdsEndReason, number>();
  #lastEnd: AdsEnd | undefined;
  /** The newest set, which waits while another one is decided. It replaces older ones. */
  #waiting: { readonly set: DiscoveredSet; readonly from: Conversation } | undefined;
  #isDeciding = false;
  #wakePause: () => void = () => {};
  #isClosed = false;

  constructor(parts: AdsClientParts) {
    this.#parts = parts;
  }

  get status(): AdsStatus {
    return {
      isConnected: this.#conversation?.isConnected ?? false,
      ackCount: this.#ackCount,
      nackCount: this.#nackCount,
      ignoredCount: this.#ignoredCount,
      endCounts: this.#endCounts,
      ...(this.#lastEnd === undefined ? {} : { lastEnd: this.#lastEnd }),
    };
  }

  /** Starts the client. Must be called once. */
  start(): void {
    this.#connect();
  }

  /** Ends the stream, and cancels everything that is scheduled. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#waiting = undefined;
    this.#conversation?.stream?.close();
    this.#conversation = undefined;
    this.#wakePause();
  }

  #connect(): void {
    if (this.#isClosed) return;
    const { open, clock } = this.#parts;
    const conversation: Conversation = {
      stream: undefined,
      isConnected: false,
      acceptedVersion: "",
      answerCount: 0,
    };
    this.#conversation = conversation;
    this.#cancelTimer = clock.schedule(adsConnectMsMax, () => {
      this.#end(conversation, {
        reason: "timeout",
        detail: `no connection within ${adsConnectMsMax} ms`,
      });
    });
    try {
      conversation.stream = open({
        onConnected: () => this.#noteConnected(conversation),
        onMessage: (bytes) => this.#receive(bytes, conversation),
        onEnd: (end) => this.#end(conversation, end),
      });
    } catch (thrown) {
      const detail = thrown instanceof Error ? thrown.message : "unknown reason";
      this.#end(conversation, { reason: "credentials", detail });
      return;
    }
    // Without the version of the last stream, so that the server sends the whole set again. A
    // restarted server may give an old version to new content, and would then not send it.
    this.#send(conversation, { version: "", nonce: "" });
  }

  #noteConnected(conversation: Conversation): void {
    if (conversation !== this.#conversation) return;
    this.#cancelTimer();
    conversation.isConnected = true;
    this.#lastEnd = undefined;
    this.#parts.onEvent({ kind: "connected" });
  }

  #end(conversation: Conversation, end: AdsEnd): void {
    if (conversation !== this.#conversation) return;
    const { backoff, connectRetryMs, clock, random, onEvent } = this.#parts;
    this.#cancelTimer();
    conversation.stream?.close();
    this.#conversation = undefined;
    this.#wakePause();
    this.#endCounts.set(end.reason, (this.#endCounts.get(end.reason) ?? 0) + 1);
    const isNews = this.#lastEnd === undefined;
    this.#lastEnd = end;
    this.#failureCount += 1;
    const { isConnected } = conversation;
    const paced = isConnected ? backoff : { ...backoff, initialMs: connectRetryMs };
    const waitMs = backoffMs(paced, this.#failureCount, random.next());
    onEvent(isNews ? { kind: "disconnected", end } : { kind: "retry", end, waitMs });
    this.#cancelTimer = clock.schedule(waitMs, () => this.#connect());
  }

  #receive(bytes: Uint8Array, conversation: Conversation): void {
    if (conversation !== this.#conversation) return;
    const set = decodeDiscoveryResponse(bytes);
    if (set === undefined) {
      this.#end(conversation, { reason: "unreadable", detail: "not a discovery response" });
      return;
    }
    // Only a server that speaks the protocol resets the number of failures.
    this.#failureCount = 0;
    if (set.typeUrl !== this.#parts.typeUrl) {
      this.#ignoredCount += 1;
      return;
    }
    if (this.#waiting !== undefined) this.#ignoredCount += 1;
    this.#waiting = { set, from: conversation };
    this.#wakePause();
    if (!this.#isDeciding) void this.#decideAll();
  }

  /** Decides on the newest set until none waits: one at a time, even if streams change. */
  async #decideAll(): Promise<void> {
    this.#isDeciding = true;
    for (let next = this.#takeWaiting(); next !== undefined; next = this.#takeWaiting()) {
      const { set, from } = next;
      const verdict = await this.#parts.decide(set);
      if (verdict.isRepeated && from.answerCount > 0) await this.#pause();
      this.#answer(from, set, verdict);
    }
    this.#isDeciding = false;
  }

  #takeWaiting(): { readonly set: DiscoveredSet; readonly from: Conversation } | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  /** Waits `repeatedAnswerMs`, or until there is a newer set, or the stream has ended. */
  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.schedule(repeatedAnswerMs, () => this.#wakePause());
      this.#wakePause = () => {
        cancel();
        this.#wakePause = () => {};
        resolve();
      };
    });
  }

  #answer(from: Conversation, set: DiscoveredSet, verdict: SetVerdict): void {
    if (from !== this.#conversation) return;
    from.answerCount += 1;
    const { nonce } = set;
    if (verdict.kind === "accepted") {
      from.acceptedVersion = set.version;
      this.#ackCount += 1;
      this.#send(from, { version: set.version, nonce });
    } else {
      this.#nackCount += 1;
      this.#send(from, { version: from.acceptedVersion, nonce, refusal: verdict.reason });
    }
  }

  #send(
    { stream }: Conversation,
    answer: { readonly version: string; readonly nonce: string; readonly refusal?: string },
  ): void {
    const { node, typeUrl } = this.#parts;
    stream?.send(encodeDiscoveryRequest(node, typeUrl, answer));
  }
}
