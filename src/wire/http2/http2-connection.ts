import type { Clock, Random } from "../../core/base/clock.js";
import type { StreamAcceptor } from "../base/http2.js";
import { Http2Error, type Http2ErrorCode, http2ErrorCodes } from "../base/http2-error.js";
import { outputBytesMax } from "../base/http2-limits.js";
import type { OutputSlabs } from "../base/output-buffer.js";
import {
  ConnectionLifetime,
  type CutReason,
  type LivingConnection,
} from "./connection-lifetime.js";
import { Http2Session, type SessionHost } from "./http2-session.js";

/** Carries a connection's bytes: a socket, or the stream that replaces a secured one. */
export interface ByteStream {
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "drain" | "end" | "close" | "error", listener: () => void): unknown;
  /** Returns false when it holds enough; "drain" reports when it takes more. */
  write(bytes: Uint8Array): boolean;
  end(): unknown;
  destroy(): unknown;
  pause(): unknown;
  resume(): unknown;
}

/**
 * How a connection ended: by its peer, by a rule that the peer broke (with the code), because all
 * was served after one side had announced that it leaves, by a timeout, or by its server.
 */
export type ConnectionEnd =
  | { readonly kind: "peer" }
  | { readonly kind: "error"; readonly code: Http2ErrorCode }
  | { readonly kind: "left" }
  | { readonly kind: "time"; readonly why: CutReason }
  | { readonly kind: "destroyed" };

/** Receives the events of a connection, for counters and logs. */
interface ConnectionEvents {
  /** Called once, when the connection is gone. */
  onEnd(end: ConnectionEnd): void;
  /** Called when a stream was reset because the peer broke a rule or exceeded a limit. */
  onStreamError(code: Http2ErrorCode): void;
  /** Called when the acceptor or a reader threw: the stream is reset, the connection goes on. */
  onBug(thrown: unknown): void;
}

interface Http2ConnectionParts {
  readonly acceptor: StreamAcceptor;
  readonly events: ConnectionEvents;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Runs a function after the current one, and before anything is read again, so that what became
   * ready leaves in one write. This is the process's queue of microtasks or next ticks.
   */
  readonly scheduleFlush: (run: () => void) => void;
  /** Memory to write into, shared with other connections. Default: its own. */
  readonly slabs?: OutputSlabs;
  /** Age at which the peer is asked to close, plus or minus 10 %. */
  readonly ageMsMax: number;
  /** How long its streams may continue after that, before they are cut. */
  readonly ageGraceMs: number;
}

/**
 * Serves HTTP/2 on one connection, from its first byte to its last. What is read at once is handled
 * at once, and what becomes ready in one turn leaves in one write.
 *
 * Source: RFC 9113.
 */
export class Http2Connection implements SessionHost, LivingConnection {
  readonly #socket: ByteStream;
  readonly #parts: Http2ConnectionParts;
  readonly #session: Http2Session;
  readonly #lifetime: ConnectionLifetime;
  readonly #runFlush: () => void;
  #isReading = false;
  #isFlushScheduled = false;
  /** The socket holds enough: nothing is written until it drains. */
  #isBlocked = false;
  #isPaused = false;
  /** This side has ended: what arrives is read and dropped, so that its last frames arrive. */
  #isEnding = false;
  #isGone = false;
  #drainCount = 0;
  #end: ConnectionEnd | undefined;
  #whenLeaving: (() => void)[] = [];

  constructor(socket: ByteStream, parts: Http2ConnectionParts) {
    this.#socket = socket;
    this.#parts = parts;
    this.#session = new Http2Session(parts.acceptor, this, parts.slabs);
    // Connections that were opened together must not all reconnect together.
    const ageMs = parts.ageMsMax * (0.9 + 0.2 * parts.random.next());
    const age = { ageMs, graceMs: parts.ageGraceMs };
    this.#lifetime = new ConnectionLifetime(parts.clock, this, age);
    this.#runFlush = () => {
      this.#isFlushScheduled = false;
      this.#flush();
    };
    socket.on("data", (chunk) => this.#onRead(chunk));
    socket.on("drain", () => this.#onDrain());
    socket.on("end", () => this.#onPeerEnd());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#onClose());
    this.#flush();
  }

  /** Number of open streams. */
  get streamCount(): number {
    return this.#session.streams.count;
  }

  /** Number of streams that were reset while the work for them continues. */
  get lingeringCount(): number {
    return this.#session.streams.lingeringCount;
  }

  /** Bytes that it keeps: incomplete input, and output that has not left. */
  get keptBytes(): number {
    return this.#session.keptBytes;
  }

  get isGreeted(): boolean {
    return this.#session.isGreeted;
  }

  get isInside(): boolean {
    return this.#session.isInside;
  }

  get endedCount(): number {
    return this.#session.endedCount;
  }

  /**
   * First step of a graceful shutdown: the peer is told to close, and what it has sent until then
   * is served. The connection ends when its last stream has ended.
   *
   * @param whenKnown called once, when the peer knows, or is gone
   */
  leave(whenKnown: () => void): void {
    if (this.#isGone || this.#isEnding || this.#session.isLeaveKnown) {
      whenKnown();
      return;
    }
    this.#whenLeaving.push(whenKnown);
    this.askToLeave();
  }

  /** Ends it at once: streams are reset, and output that has not left is dropped. */
  destroy(): void {
    this.#finish({ kind: "destroyed" });
    this.#socket.destroy();
  }

  askToLeave(): void {
    // A peer that has not greeted has no stream, and one that knows is told nothing new.
    this.#session.askToLeave();
    this.#lifetime.onAsked();
    this.requestFlush();
  }

  askAlive(): void {
    this.#session.askAlive();
    this.requestFlush();
  }

  closeToStreams(): void {
    this.#session.closeToStreams();
    this.requestFlush();
  }

  cut(why: CutReason): void {
    this.#finish({ kind: "time", why });
    this.#socket.destroy();
  }

  requestFlush(): void {
    if (this.#isReading || this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    this.#parts.scheduleFlush(this.#runFlush);
  }

  fail(code: Http2ErrorCode): void {
    if (this.#isGone || this.#isEnding) return;
    this.#isEnding = true;
    this.#session.end(code);
    this.#tellLeaving();
    this.#end = { kind: "error", code };
    this.#flushAndEnd();
  }

  onStreamError(code: Http2ErrorCode): void {
    this.#parts.events.onStreamError(code);
  }

  onBug(thrown: unknown): void {
    this.#parts.events.onBug(thrown);
  }

  onNoStreams(): void {
    this.#lifetime.onIdle();
    this.requestFlush();
  }

  onLeaveKnown(): void {
    this.#tellLeaving();
  }

  #onRead(chunk: Buffer): void {
    if (this.#isEnding || this.#isGone) return;
    const nowMs = this.#parts.clock.monotonicMs();
    this.#isReading = true;
    try {
      this.#session.receive(chunk, nowMs);
    } catch (thrown) {
      this.#onThrown(thrown);
    }
    this.#isReading = false;
    this.#lifetime.onRead(nowMs);
    this.#flush();
  }

  #onThrown(thrown: unknown): void {
    if (thrown instanceof Http2Error) {
      this.fail(thrown.code);
      return;
    }
    this.#parts.events.onBug(thrown);
    this.fail(http2ErrorCodes.internalError);
  }

  /** Writes what is ready, all at once, as long as the socket takes it. */
  #flush(): void {
    const { output, streams } = this.#session;
    while (!this.#isBlocked && !this.#isGone && !this.#isEnding) {
      this.#session.pump();
      if (output.length === 0) break;
      this.#isBlocked = !this.#socket.write(output.take());
    }
    if (this.#isGone || this.#isEnding) return;
    this.#lifetime.onOutput(
      this.#isBlocked || streams.queuedBytes > 0,
      this.#drainCount + streams.sentCount,
    );
    this.#holdReading(this.#isBlocked && output.length >= outputBytesMax);
    if (this.#session.isDone && !this.#isBlocked) this.#leaveNow();
  }

  /** Stops reading requests while the peer does not take what it has requested. */
  #holdReading(isHeld: boolean): void {
    if (isHeld === this.#isPaused) return;
    this.#isPaused = isHeld;
    if (isHeld) this.#socket.pause();
    else this.#socket.resume();
  }

  #onDrain(): void {
    this.#isBlocked = false;
    this.#drainCount += 1;
    this.#flush();
  }

  /** The peer sends no more, so it cannot open windows either: nothing of it can go on. */
  #onPeerEnd(): void {
    if (this.#isEnding || this.#isGone) return;
    this.#isEnding = true;
    this.#end = { kind: "peer" };
    this.#session.abandon();
    this.#tellLeaving();
    this.#flushAndEnd();
  }

  #onClose(): void {
    this.#finish({ kind: "peer" });
  }

  /** Ends the connection: both sides know, and every stream has ended. */
  #leaveNow(): void {
    this.#isEnding = true;
    this.#end = { kind: "left" };
    this.#tellLeaving();
    this.#flushAndEnd();
  }

  /**
   * Ends this side. The socket is not closed yet: closing it with unread input would discard what
   * the peer has not read.
   */
  #flushAndEnd(): void {
    const { output } = this.#session;
    if (output.length > 0) this.#socket.write(output.take());
    this.#socket.end();
    this.#lifetime.onFlush();
    this.#holdReading(false);
  }

  #tellLeaving(): void {
    for (const tell of this.#whenLeaving.splice(0)) tell();
  }

  #finish(end: ConnectionEnd): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#lifetime.end();
    this.#session.abandon();
    this.#tellLeaving();
    this.#parts.events.onEnd(this.#end ?? end);
  }
}
