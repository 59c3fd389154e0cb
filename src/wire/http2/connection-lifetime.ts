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

/** What a lifetime asks of its connection, and looks at. */
export interface LivingConnection {
  readonly isGreeted: boolean;
  /** Whether a frame or a header block has begun and not ended. */
  readonly isInside: boolean;
  /** Frames and header blocks that have ended. */
  readonly endedCount: number;
  readonly streamCount: number;
  /** Sends a PING. */
  askAlive(): void;
  /** The peer is to go: because of its age, or because it has no stream. */
  askToLeave(): void;
  /** The wait for the answer to that is over. */
  closeToStreams(): void;
  /** Ends the connection now. */
  cut(why: CutReason): void;
}

/** Why time has ended a connection. */
export type CutReason = "ungreeted" | "silent" | "unfinished" | "stalled" | "old" | "farewell";

/** How old a connection may grow. */
interface AgeBounds {
  /** When it is asked to go, jitter included. */
  readonly ageMs: number;
  /** How long its streams may take then. */
  readonly graceMs: number;
}

const never = Number.POSITIVE_INFINITY;

/**
 * The times of one connection, on one timer: each has a moment when it is due, and the timer waits
 * for the first one. What happens on the way only moves those moments, so that reading costs no
 * timer; the timer looks again when it fires.
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

  /** The peer has sent something; it was read. */
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

  /** The last stream is gone, as far as we have read. */
  onIdle(): void {
    this.#idleSinceMs = this.#heardMs;
  }

  /**
   * Something is to be sent and waits for the peer, or nothing is.
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

  /** The peer was asked to go. */
  onAsked(): void {
    this.#ageDueMs = never;
    this.#answerDueMs = this.#clock.monotonicMs() + pingAnswerMsMax;
    this.#arm();
  }

  /** The last word is said: the peer has a moment to take it. */
  onFlush(): void {
    this.#flushDueMs = this.#clock.monotonicMs() + flushMsMax;
    this.#arm();
  }

  /** The connection is gone. */
  end(): void {
    this.#isOver = true;
    this.#cancel();
  }

  /** Sets the timer for what is due first, unless it fires before that anyway. */
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

  /** Never once the peer was asked to go, or while it has a stream. */
  #idleDueMs(): number {
    const isIdle = this.#ageDueMs !== never && this.#connection.streamCount === 0;
    return isIdle ? this.#idleSinceMs + idleMsMax : never;
  }
}
