import type { Cancel, Clock } from "../../core/base/clock.js";
import {
  flushMsMax,
  greetingMsMax,
  headerBlockMsMax,
  idleMsMax,
  keepaliveTimeMs,
  outputStallMsMax,
  pingAnswerMsMax,
} from "../base/http2-limits.js";

/** A connection, as its lifetime sees and controls it. */
export interface LivingConnection {
  readonly isGreeted: boolean;
  /** Whether a frame or a header block is incomplete. */
  readonly isInside: boolean;
  /** Number of frames and header blocks that were complete. */
  readonly endedCount: number;
  readonly streamCount: number;
  /** Sends a PING. */
  askAlive(): void;
  /** Asks the peer to close, because of the connection's age, or because it has no stream. */
  askToLeave(): void;
  /** Accepts no more streams, because the wait for the answer to that is over. */
  closeToStreams(): void;
  /** Ends the connection now. */
  cut(why: CutReason): void;
}

/** Reason why a timeout ended a connection. */
export type CutReason = "ungreeted" | "silent" | "unfinished" | "stalled" | "old" | "farewell";

/** Limits of a connection's age. */
interface AgeBounds {
  /** Age at which the peer is asked to close, including jitter. */
  readonly ageMs: number;
  /** How long its streams may continue after that. */
  readonly graceMs: number;
}

const never = Number.POSITIVE_INFINITY;

/**
 * The timeouts of one connection, on one timer: each has a time when it is due, and the timer waits
 * for the first one. Events only move those times, so that reading needs no timer. When the timer
 * fires, all of them are checked again.
 */
export class ConnectionLifetime {
  readonly #clock: Clock;
  readonly #connection: LivingConnection;
  readonly #ageGraceMs: number;
  #cancel: Cancel = () => {};
  #timerMs = never;
  #isOver = false;
  #greetingDueMs: number;
  #ageDueMs: number;
  #heardMs: number;
  #askedMs: number | undefined;
  #idleSinceMs: number;
  #insideSinceMs: number | undefined;
  #endedCount = 0;
  #stalledSinceMs: number | undefined;
  #progress = 0;
  #answerDueMs = never;
  #cutDueMs = never;
  #flushDueMs = never;

  constructor(clock: Clock, connection: LivingConnection, { ageMs, graceMs }: AgeBounds) {
    this.#clock = clock;
    this.#connection = connection;
    this.#ageGraceMs = graceMs;
    const nowMs = clock.monotonicMs();
    this.#heardMs = nowMs;
    this.#idleSinceMs = nowMs;
    this.#greetingDueMs = nowMs + greetingMsMax;
    this.#ageDueMs = nowMs + ageMs;
    this.#arm();
  }

  /** Notes that bytes from the peer were read. */
  onRead(nowMs: number): void {
    this.#heardMs = nowMs;
    this.#askedMs = undefined;
    const { isInside, endedCount } = this.#connection;
    if (!isInside) {
      this.#insideSinceMs = undefined;
    } else if (this.#insideSinceMs === undefined || endedCount !== this.#endedCount) {
      const isNew = this.#insideSinceMs === undefined;
      this.#insideSinceMs = nowMs;
      this.#endedCount = endedCount;
      if (isNew) this.#arm();
    }
  }

  /** Notes that the last stream is gone, as of the last read. */
  onIdle(): void {
    this.#idleSinceMs = this.#heardMs;
  }

  /**
   * Notes whether output waits for the peer.
   *
   * @param progress a number that grows whenever the peer takes something
   */
  onOutput(isWaiting: boolean, progress: number): void {
    if (!isWaiting) {
      this.#stalledSinceMs = undefined;
    } else if (this.#stalledSinceMs === undefined || progress !== this.#progress) {
      const isNew = this.#stalledSinceMs === undefined;
      this.#stalledSinceMs = this.#clock.monotonicMs();
      this.#progress = progress;
      if (isNew) this.#arm();
    }
  }

  /** Notes that the peer was asked to close. */
  onAsked(): void {
    this.#ageDueMs = never;
    this.#answerDueMs = this.#clock.monotonicMs() + pingAnswerMsMax;
    this.#arm();
  }

  /** Notes that the last frames were written. The peer has a moment to take them. */
  onFlush(): void {
    this.#flushDueMs = this.#clock.monotonicMs() + flushMsMax;
    this.#arm();
  }

  /** Stops the timer, because the connection is gone. */
  end(): void {
    this.#isOver = true;
    this.#cancel();
  }

  /** Sets the timer to the first due time, unless it fires before that anyway. */
  #arm(): void {
    if (this.#isOver) return;
    const dueMs = this.#firstDueMs();
    if (dueMs >= this.#timerMs) return;
    this.#cancel();
    this.#timerMs = dueMs;
    this.#cancel = this.#clock.schedule(dueMs - this.#clock.monotonicMs(), () => {
      this.#timerMs = never;
      this.#look(this.#clock.monotonicMs());
      this.#arm();
    });
  }

  #look(nowMs: number): void {
    const connection = this.#connection;
    const reason = this.#cutReason(nowMs);
    if (reason !== undefined) {
      connection.cut(reason);
      return;
    }
    if (connection.isGreeted) this.#greetingDueMs = never;
    if (nowMs >= this.#answerDueMs) {
      this.#answerDueMs = never;
      connection.closeToStreams();
    }
    if (nowMs >= this.#keepaliveDueMs()) {
      this.#askedMs = nowMs;
      connection.askAlive();
    }
    if (nowMs >= this.#ageDueMs) {
      this.#cutDueMs = nowMs + this.#ageGraceMs;
      connection.askToLeave();
    } else if (nowMs >= this.#idleDueMs()) {
      connection.askToLeave();
    }
  }

  #cutReason(nowMs: number): CutReason | undefined {
    if (nowMs >= this.#flushDueMs) return "farewell";
    if (!this.#connection.isGreeted && nowMs >= this.#greetingDueMs) return "ungreeted";
    if (nowMs >= this.#silenceDueMs()) return "silent";
    if (nowMs >= this.#insideDueMs()) return "unfinished";
    if (nowMs >= this.#stallDueMs()) return "stalled";
    return nowMs >= this.#cutDueMs ? "old" : undefined;
  }

  #firstDueMs(): number {
    return Math.min(
      this.#greetingDueMs,
      this.#silenceDueMs(),
      this.#insideDueMs(),
      this.#stallDueMs(),
      this.#cutDueMs,
      this.#flushDueMs,
      this.#answerDueMs,
      this.#keepaliveDueMs(),
      this.#ageDueMs,
      this.#idleDueMs(),
    );
  }

  #silenceDueMs(): number {
    return this.#askedMs === undefined ? never : this.#askedMs + pingAnswerMsMax;
  }

  #keepaliveDueMs(): number {
    return this.#askedMs === undefined ? this.#heardMs + keepaliveTimeMs : never;
  }

  #insideDueMs(): number {
    return this.#insideSinceMs === undefined ? never : this.#insideSinceMs + headerBlockMsMax;
  }

  #stallDueMs(): number {
    return this.#stalledSinceMs === undefined ? never : this.#stalledSinceMs + outputStallMsMax;
  }

  /** Never after the peer was asked to close, or while it has a stream. */
  #idleDueMs(): number {
    const isIdle = this.#ageDueMs !== never && this.#connection.streamCount === 0;
    return isIdle ? this.#idleSinceMs + idleMsMax : never;
  }
}
