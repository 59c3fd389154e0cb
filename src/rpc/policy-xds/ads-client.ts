import { type Backoff, backoffMs } from "../../core/base/backoff.js";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import {
  type DiscoveredSet,
  type DiscoveryNode,
  decodeDiscoveryResponse,
  encodeDiscoveryRequest,
} from "./ads-messages.js";

/** Why a stream ended, or was never there: a closed set, for logs and labels. */
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
  /** A message larger than we take. */
  | "too_large"
  /** A message that is no discovery response. */
  | "unreadable"
  /** The connection broke, or nothing answered on it any more. */
  | "lost"
  /** Any other gRPC error. */
  | "failed";

/** How a stream ended. */
export interface AdsEnd {
  readonly reason: AdsEndReason;
  /** For a person: from the library or the server; holds no credential. */
  readonly detail: string;
}

/** What a stream tells; nothing after `onEnd`, and nothing after it was closed. */
export interface AdsStreamListener {
  /** There is a connection. */
  readonly onConnected: () => void;
  readonly onMessage: (bytes: Uint8Array) => void;
  /** Told once. */
  readonly onEnd: (end: AdsEnd) => void;
}

/** A stream of aggregated discovery on a connection of its own. */
export interface AdsStream {
  send(bytes: Uint8Array): void;
  /** Ends it, and its connection, at once. */
  close(): void;
}

/** Opens a stream; what it throws is no connection, for want of usable credentials. */
type OpenAdsStream = (listener: AdsStreamListener) => AdsStream;

/** What became of a set of resources. */
export type SetVerdict =
  /** It is active. `isRepeated`: it was active, or refused, before it came again. */
  | { readonly kind: "accepted"; readonly isRepeated: boolean }
  | { readonly kind: "refused"; readonly reason: string; readonly isRepeated: boolean };

/** A change that somebody may want to log. */
export type AdsEvent =
  | { readonly kind: "connected" }
  /** Told once an outage, not once a try. */
  | { readonly kind: "disconnected"; readonly end: AdsEnd }
  /** A further try of the same outage failed. */
  | { readonly kind: "retry"; readonly end: AdsEnd; readonly waitMs: number };

/** What an `AdsClient` is made of. */
export interface AdsClientParts {
  readonly open: OpenAdsStream;
  readonly node: DiscoveryNode;
  /** The one type that is asked for. */
  readonly typeUrl: string;
  /** Between streams, once the server was reached. */
  readonly backoff: Backoff;
  /** In place of the backoff's first wait, while no connection can be made, in milliseconds. */
  readonly connectRetryMs: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Decides on a set; never rejects, and is not called again before it has answered. */
  readonly decide: (set: DiscoveredSet) => Promise<SetVerdict>;
  readonly onEvent: (event: AdsEvent) => void;
}

/** Counts since the start, and how it stands: read when scraped. */
export interface AdsStatus {
  readonly isConnected: boolean;
  readonly ackCount: number;
  readonly nackCount: number;
  /** Responses of a type that nobody asked for, and those that a newer one overtook. */
  readonly ignoredCount: number;
  /** Streams that ended, and tries that failed, by reason. */
  readonly endCounts: ReadonlyMap<AdsEndReason, number>;
  /** Why there is no stream; absent while there is one, and before the first try ended. */
  readonly lastEnd?: AdsEnd;
}

/** How long a connection may take to be there, its TLS included. */
export const adsConnectMsMax = 20_000;

/**
 * The least time between two answers to the same content. Servers there are that send a set again
 * as soon as it is refused; without this they and we would do nothing else.
 */
export const repeatedAnswerMs = 1_000;

/** A stream, and what was said on it. */
interface Conversation {
  stream: AdsStream | undefined;
  isConnected: boolean;
  /** Version of the active set that came over this stream. */
  acceptedVersion: string;
  answerCount: number;
}

/**
 * A client of aggregated discovery, state of the world: subscribes to all resources of one type,
 * answers each set with ACK or NACK, and comes back after every end, until it is closed.
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
  /** The newest set that waits for the one in work; an older one that waited is forgotten. */
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

  /** Begins; call it once. */
  start(): void {
    this.#connect();
  }

  /** Ends the stream and everything that was planned. */
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
    // Without the version of the last stream, so that the server sends the whole set again: one
    // that was restarted may give an old version to new content, and would keep that to itself.
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
    // Only a server that speaks the protocol makes us forget how often it failed.
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

  /** Decides on the newest set until none waits: one at a time, whatever streams come and go. */
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

  /** Waits `repeatedAnswerMs`, or until there is something newer, or nobody left to answer. */
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
