import { calledBit } from "./room-line.js";

/** A session that is over, with the words that were read of it: one of a step's `frees`. */
export interface OverSession {
  readonly session: number;
  readonly number: number;
  readonly word: number;
}

/** The sessions that a leader finds in the table. */
export interface SessionCensus {
  /** Sessions in use or reserved, including those that are over. */
  readonly activeCount: number;
  readonly over: readonly OverSession[];
  /** Sessions that may be given to a visitor, the lowest first. */
  readonly free: readonly number[];
}

/** Words of sessions below which they are over, and the maximum length of each list. */
export interface CensusRequest {
  /** For sessions in use. */
  readonly usedBefore: number;
  /** For those of called visitors who have not entered. */
  readonly calledBefore: number;
  readonly overMax: number;
  readonly freeMax: number;
}

/** The sessions of a room, as read by its leader, with those that it has assigned since. */
export class SessionTable {
  #words = new Uint32Array(2 * 64);
  /** Sessions from this index on have never been used. */
  #end: number;
  #endedCount = 0;

  /** @param end at least as large as the index of every session in use */
  constructor(end: number) {
    this.#end = end;
    this.#grow(end);
  }

  get end(): number {
    return this.#end;
  }

  /** Returns the number of sessions that were found to have ended since the last call. */
  takeEndedCount(): number {
    const count = this.#endedCount;
    this.#endedCount = 0;
    return count;
  }

  /** Takes pairs of words of sessions, from an index on. */
  read(from: number, words: Uint32Array): void {
    this.#grow(from + words.length / 2);
    for (let at = 0; at < words.length; at += 2) {
      const session = from + at / 2;
      const before = this.#words[2 * session + 1] ?? 0;
      const isSame = before === 0 || this.#words[2 * session] === words[at];
      if (!isSame || (before !== 0 && words[at + 1] === 0)) this.#endedCount += 1;
    }
    this.#words.set(words, 2 * from);
    this.#end = Math.max(this.#end, from + words.length / 2);
    while (this.#end > 0 && this.isFree(this.#end - 1)) this.#end -= 1;
  }

  /** Returns the sessions that are active, over and free. */
  census({ usedBefore, calledBefore, overMax, freeMax }: CensusRequest): SessionCensus {
    const over: OverSession[] = [];
    const free: number[] = [];
    let activeCount = 0;
    for (let session = 0; session < this.#end; session += 1) {
      if (this.isFree(session)) {
        if (free.length < freeMax) free.push(session);
        continue;
      }
      activeCount += 1;
      const word = this.#words[2 * session + 1] ?? 0;
      const usedWord = word % calledBit;
      const isOver = word !== 0 && usedWord < (word >= calledBit ? calledBefore : usedBefore);
      if (!isOver || over.length >= overMax) continue;
      over.push({ session, number: this.#words[2 * session] ?? 0, word });
    }
    for (let at = this.#end; free.length < freeMax; at += 1) free.push(at);
    return { activeCount, over, free };
  }

  /** Reports whether no visitor had it when it was read. */
  isFree(session: number): boolean {
    return (this.#words[2 * session + 1] ?? 0) === 0;
  }

  /** Gives a session to a visitor. @param word the time, as the store will have it */
  reserve(session: number, number: number, word: number): void {
    this.offer(session);
    this.#words[2 * session] = number % 2 ** 32;
    this.#words[2 * session + 1] = word;
  }

  /** Marks a session that a visitor may take from now on. */
  offer(session: number): void {
    this.#grow(session + 1);
    this.#end = Math.max(this.#end, session + 1);
  }

  /** Returns the smallest number with a session, among the 2^32 up to `next`. Undefined: none. */
  oldestNumber(next: number): number | undefined {
    let oldest: number | undefined;
    for (let session = 0; session < this.#end; session += 1) {
      if ((this.#words[2 * session + 1] ?? 0) === 0) continue;
      const number = next - ((next - (this.#words[2 * session] ?? 0)) % 2 ** 32);
      oldest = Math.min(oldest ?? number, number);
    }
    return oldest;
  }

  #grow(end: number): void {
    if (2 * end <= this.#words.length) return;
    const larger = new Uint32Array(4 * end);
    larger.set(this.#words);
    this.#words = larger;
  }
}
