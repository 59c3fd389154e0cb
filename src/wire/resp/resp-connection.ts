import type { Duplex } from "node:stream";
import type { Cancel, Clock } from "../../core/base/clock.js";
import { schedulePartialEnd } from "../grpc/partial-bytes.js";
import { readCommand } from "./resp-reader.js";
import { errorReply } from "./resp-writer.js";

/** Maximum commands of a connection that wait for replies. Above, no more are read. */
export const waitingCommandsMax = 1_024;

/** Maximum time that a client takes to read its replies, in milliseconds. */
export const unreadRepliesMsMax = 30_000;

/** An encoded reply. */
export interface RespReply {
  readonly text: string;
  /** Whether the connection ends after it. */
  readonly isLast?: boolean;
}

/**
 * Answers the commands of one connection. It is called in their order, and replies are sent in it.
 *
 * @param parts at least one; views that are valid only during the call
 */
export type AnswersCommands = (parts: readonly Buffer[]) => RespReply | Promise<RespReply>;

interface RespConnectionParts {
  /** Half-open: it ends here, after the last reply. */
  readonly stream: Duplex;
  readonly clock: Clock;
  readonly answer: AnswersCommands;
  /** Runs a callback when this turn has begun all that it can, so that replies leave together. */
  readonly scheduleFlush: (run: () => void) => void;
  readonly onEnd: () => void;
  readonly onBug: (thrown: unknown) => void;
}

/**
 * One connection of RESP: bytes to commands, and replies in their order. Its memory is limited:
 * that of a command by the reader, that of commands in progress and of unread replies by reading no
 * further.
 */
export class RespConnection {
  readonly #parts: RespConnectionParts;
  #received: Buffer = noBytes;
  /** Replies from the first that has not been sent. Undefined: not there yet. */
  #replies: (string | undefined)[] = [];
  /** Number of replies that were sent before the first of `#replies`. */
  #sentCount = 0;
  #isFlushDue = false;
  /** No more commands are read: one was the last, the client has ended, or this side leaves. */
  #isLast = false;
  #cancelPartial: Cancel | undefined;
  #cancelUnread: Cancel | undefined;

  constructor(parts: RespConnectionParts) {
    this.#parts = parts;
    const { stream } = parts;
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("drain", () => this.#drained());
    stream.on("end", () => this.leave());
    // A client that disconnects is not an error here; `close` follows.
    stream.on("error", () => {});
    stream.on("close", () => {
      this.#isLast = true;
      this.#clearTimers();
      parts.onEnd();
    });
  }

  /** Reads no more commands, and ends when those that were read have been answered. */
  leave(): void {
    this.#isLast = true;
    this.#received = noBytes;
    this.#cancelPartial?.();
    this.#scheduleFlush();
  }

  /** Ends at once. */
  destroy(): void {
    this.#parts.stream.destroy();
  }

  #receive(chunk: Buffer): void {
    if (this.#isLast) return;
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    this.#read();
  }

  #read(): void {
    let at = 0;
    let isPartial = false;
    while (!this.#isLast && !this.#isBusy && at < this.#received.length) {
      const read = readCommand(this.#received, at);
      if (read.kind === "partial") {
        isPartial = true;
        break;
      }
      if (read.kind === "broken") {
        this.#reply(this.#expectReply(), refusal(`ERR Protocol error: ${read.reason}`));
        break;
      }
      at = read.end;
      if (read.parts.length > 0) this.#take(read.parts);
    }
    this.#keep(at);
    this.#timePartial(isPartial, at);
    const { stream } = this.#parts;
    if (this.#isBusy) stream.pause();
    else if (stream.isPaused()) stream.resume();
  }

  /** Copies unread bytes to memory of their own: a chunk is far larger than a command. */
  #keep(readCount: number): void {
    const isAllRead = this.#isLast || readCount === this.#received.length;
    if (isAllRead) this.#received = noBytes;
    else if (readCount > 0) this.#received = Buffer.from(this.#received.subarray(readCount));
  }

  /** Whether replies must leave before more commands are read. */
  get #isBusy(): boolean {
    return this.#replies.length >= waitingCommandsMax || this.#cancelUnread !== undefined;
  }

  /** Limits the time of an incomplete command. The time begins again with each command. */
  #timePartial(isPartial: boolean, readCount: number): void {
    if (isPartial && readCount === 0 && this.#cancelPartial !== undefined) return;
    this.#cancelPartial?.();
    this.#cancelPartial = undefined;
    if (!isPartial || this.#isLast) return;
    this.#cancelPartial = schedulePartialEnd(this.#parts.clock, () => this.destroy());
  }

  #take(parts: readonly Buffer[]): void {
    const place = this.#expectReply();
    const { answer, onBug } = this.#parts;
    const fail = (thrown: unknown): void => {
      onBug(thrown);
      this.#reply(place, refusal("ERR internal error"));
    };
    try {
      const reply = answer(parts);
      if (!(reply instanceof Promise)) this.#reply(place, reply);
      else reply.then((later) => this.#reply(place, later), fail);
    } catch (thrown) {
      fail(thrown);
    }
  }

  /** Reserves the place of a reply among the others. */
  #expectReply(): number {
    return this.#sentCount + this.#replies.push(undefined) - 1;
  }

  #reply(place: number, { text, isLast = false }: RespReply): void {
    const index = place - this.#sentCount;
    this.#replies[index] = text;
    if (isLast) this.#isLast = true;
    if (index === 0) this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    this.#parts.scheduleFlush(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushDue = false;
    const { stream, clock } = this.#parts;
    if (stream.destroyed) return;
    const first = this.#replies.indexOf(undefined);
    const count = first === -1 ? this.#replies.length : first;
    if (count > 0) {
      const text = this.#replies.splice(0, count).join("");
      this.#sentCount += count;
      if (!stream.write(text, "latin1")) {
        this.#cancelUnread ??= clock.schedule(unreadRepliesMsMax, () => this.destroy());
      }
    }
    if (this.#replies.length === 0 && this.#isLast) this.#end();
    else if (count > 0 && !this.#isLast) this.#read();
  }

  /** Ends the connection. A client that does not take the end in time is cut off. */
  #end(): void {
    const { stream, clock } = this.#parts;
    stream.end();
    // Its `end` is only emitted if it is read.
    stream.resume();
    this.#cancelUnread ??= clock.schedule(unreadRepliesMsMax, () => this.destroy());
  }

  #drained(): void {
    this.#cancelUnread?.();
    this.#cancelUnread = undefined;
    if (!this.#isLast) this.#read();
  }

  #clearTimers(): void {
    this.#cancelPartial?.();
    this.#cancelUnread?.();
  }
}

const noBytes = Buffer.alloc(0);

/** Returns an error after which the connection ends. */
function refusal(text: string): RespReply {
  return { text: errorReply(text), isLast: true };
}
