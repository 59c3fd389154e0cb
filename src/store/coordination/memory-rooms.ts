import type { Clock } from "../../core/base/clock.js";
import { assert, ServiceError } from "../../core/base/errors.js";
import { calledBit, type LineEntry, type RoomOverride } from "../../core/waiting-room/room-line.js";
import {
  assertStep,
  assertTurn,
  lineChunkSize,
  lineWordsMax,
  numbersMax,
  type RangeCounts,
  type RoomBeat,
  type RoomHead,
  type RoomStep,
  type RoomStepAnswer,
  type RoomStore,
  type RoomTurn,
  type RoomTurnAnswer,
  sessionsReadMax,
  silenceSecondsMax,
} from "./room-store.js";

/** Lines of waiting rooms in this process. Rooms are only removed by `forget`. */
export class MemoryRooms implements RoomStore {
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #rooms = new Map<string, MemoryRoom>();

  constructor(clock: Pick<Clock, "epochUs">) {
    this.#clock = clock;
  }

  async beat(beat: RoomBeat): Promise<RoomHead> {
    const nowMs = this.#nowMs();
    const room = this.#rooms.get(beat.room) ?? new MemoryRoom(beat, nowMs);
    this.#rooms.set(beat.room, room);
    return room.beat(beat, nowMs);
  }

  async turn(turn: RoomTurn): Promise<RoomTurnAnswer> {
    assertTurn(turn);
    return this.#room(turn.room).turn(turn, this.#nowMs());
  }

  async readLine(
    room: string,
    { from, count }: { readonly from: number; readonly count: number },
  ): Promise<Uint32Array> {
    assert(count <= lineWordsMax, "a read of a line is bounded");
    return this.#room(room).line.copy(from, count);
  }

  async readSessions(
    room: string,
    { from, count }: { readonly from: number; readonly count: number },
  ): Promise<Uint32Array> {
    assert(count <= sessionsReadMax, "a read of sessions is bounded");
    return this.#room(room).sessions.copy(2 * from, 2 * count);
  }

  async apply(step: RoomStep): Promise<RoomStepAnswer> {
    assertStep(step);
    return this.#room(step.room).apply(step, this.#nowMs());
  }

  async override(room: string, override: RoomOverride | undefined): Promise<void> {
    this.#room(room).override = override;
  }

  async forget(room: string): Promise<void> {
    this.#rooms.delete(room);
  }

  #room(name: string): MemoryRoom {
    const room = this.#rooms.get(name);
    if (room === undefined) throw new ServiceError("STORE_UNAVAILABLE", noLineYet);
    return room;
  }

  #nowMs(): number {
    return Math.floor(this.#clock.epochUs() / 1_000);
  }
}

/** Error message for a call to a room that has not had a beat yet. */
export const noLineYet = "The waiting room has no line yet.";

/** Words of one memory page. */
const pageSize = 4_096;

/** Words by index. Words that were never set are 0. */
class Words {
  readonly #pages = new Map<number, Uint32Array>();

  get(index: number): number {
    return this.#pages.get(Math.floor(index / pageSize))?.[index % pageSize] ?? 0;
  }

  set(index: number, word: number): void {
    const at = Math.floor(index / pageSize);
    const page = this.#pages.get(at) ?? new Uint32Array(pageSize);
    this.#pages.set(at, page);
    page[index % pageSize] = word;
  }

  copy(from: number, count: number): Uint32Array {
    const words = new Uint32Array(count);
    for (let at = from; at < from + count; ) {
      const start = at % pageSize;
      const end = Math.min(pageSize, start + from + count - at);
      const page = this.#pages.get(Math.floor(at / pageSize));
      if (page !== undefined) words.set(page.subarray(start, end), at - from);
      at += end - start;
    }
    return words;
  }

  /** Removes the chunks of a line that contain only numbers below this one. */
  forgetBelow(number: number): void {
    const end = Math.floor(number / lineChunkSize) * lineChunkSize;
    for (const at of this.#pages.keys()) if (at * pageSize < end) this.#pages.delete(at);
  }
}

class MemoryRoom {
  override: RoomOverride | undefined;
  readonly line = new Words();
  readonly sessions = new Words();
  readonly #lineId: number;
  readonly #secret: Buffer;
  #beganMs: number;
  /** Time of the last beat, in milliseconds of the line. */
  #lastMs = 0;
  #nextNumber = 0;
  #calledPlace = 0;
  #term = 0;
  #leaderId = "";
  /** End of the leader's lease, in milliseconds of the line. */
  #leaseUntilMs = 0;
  #spare: readonly number[] = [];
  #extra: readonly number[] = [];
  #published: RoomHead["published"];
  #waits: RangeCounts = { endedCount: 0, heldCount: 0 };

  constructor({ freshLineId, freshSecret }: RoomBeat, nowMs: number) {
    this.#lineId = freshLineId;
    this.#secret = freshSecret;
    this.#beganMs = nowMs;
  }

  beat({ replicaId, leaseMs, waits }: RoomBeat, nowMs: number): RoomHead {
    const atMs = this.#lineMs(nowMs);
    this.#lastMs = atMs;
    const { endedCount, heldCount } = this.#waits;
    this.#waits = {
      endedCount: endedCount + waits.endedCount,
      heldCount: heldCount + waits.heldCount,
    };
    const isHeld = this.#leaseUntilMs > atMs;
    const isMine = isHeld && this.#leaderId === replicaId;
    if (isMine || (!isHeld && leaseMs > 0)) {
      if (!isMine) this.#term += 1;
      this.#leaderId = replicaId;
      this.#leaseUntilMs = atMs + leaseMs;
    }
    const leads = leaseMs > 0 && this.#leaderId === replicaId;
    return {
      lineId: this.#lineId,
      beganMs: this.#beganMs,
      second: atMs / 1_000,
      nextNumber: this.#nextNumber,
      calledPlace: this.#calledPlace,
      waits: this.#waits,
      term: leads ? this.#term : 0,
      leaderId: this.#leaderId,
      secret: this.#secret,
      published: this.#published,
      override: this.override,
    };
  }

  turn(turn: RoomTurn, nowMs: number): RoomTurnAnswer {
    const atMs = this.#lineMs(nowMs);
    const present = wordOf(atMs);
    const isCurrent = turn.lineId === this.#lineId;
    const oldest = present - turn.lostAfterSeconds;
    const gone: LineEntry = { kind: "gone" };
    const entries = turn.visits.map((number): LineEntry => {
      return isCurrent ? this.#visit(number, { present, oldest }) : gone;
    });
    const renewed = turn.renewals.map(({ session, number }) => {
      const isTheirs = isCurrent && this.#isTheirs(session, number);
      if (isTheirs) this.sessions.set(2 * session + 1, present);
      return isTheirs;
    });
    const letInEntries = turn.letIns.map((number): LineEntry => {
      return isCurrent ? this.#letIn(number, { present, oldest }) : gone;
    });
    if (isCurrent) for (const one of turn.leaves) this.#leave(one);
    const joined = this.#join(turn, present);
    const answer = { lineId: this.#lineId, second: atMs / 1_000, entries, letInEntries, renewed };
    return { ...answer, ...joined };
  }

  apply(step: RoomStep, nowMs: number): RoomStepAnswer {
    const atMs = this.#lineMs(nowMs);
    const isLeader = this.#term === step.term && this.#leaderId === step.replicaId;
    const isLate = this.#published?.second !== step.afterSecond;
    if (!isLeader || isLate || this.#lineId !== step.lineId || this.#leaseUntilMs <= atMs) {
      return { kind: "outranked" };
    }
    let freedCount = 0;
    for (const { session, number, word } of step.frees) {
      if (!this.#isTheirs(session, number)) continue;
      if (this.sessions.get(2 * session + 1) !== word) continue;
      this.#setSession(session, 0, 0);
      freedCount += 1;
    }
    const present = wordOf(atMs);
    const { calledCount, stopPlace } = this.#call(step, present);
    const place = Math.min(stopPlace ?? step.calledPlace, this.#nextNumber);
    this.#calledPlace = Math.max(this.#calledPlace, place);
    this.#spare = step.spareSessions;
    this.#extra = step.extraSessions;
    this.line.forgetBelow(Math.min(step.forgottenBelow, this.#nextNumber));
    this.#published = { bytes: step.published, second: atMs / 1_000 };
    return { kind: "applied", calledCount, freedCount, second: atMs / 1_000 };
  }

  #call(
    { calls, lostAfterSeconds }: RoomStep,
    present: number,
  ): { readonly calledCount: number; readonly stopPlace: number | undefined } {
    let calledCount = 0;
    for (const { number, place, session } of calls) {
      const word = this.line.get(number);
      if (word >= calledBit || word === 0 || word < present - lostAfterSeconds) continue;
      if (!this.#isFree(session)) return { calledCount, stopPlace: place };
      this.#reserve(number, session, present);
      calledCount += 1;
    }
    return { calledCount, stopPlace: undefined };
  }

  #visit(
    number: number,
    { present, oldest }: { readonly present: number; readonly oldest: number },
  ): LineEntry {
    const word = this.line.get(number);
    if (word < calledBit && word > 0 && word >= oldest) {
      this.line.set(number, present);
      return { kind: "waiting" };
    }
    const entry = this.#lookAt(number);
    if (entry.kind === "entered" && this.sessions.get(2 * entry.session + 1) >= calledBit) {
      this.sessions.set(2 * entry.session + 1, present);
      return { ...entry, usedSecond: present - 1 };
    }
    return entry;
  }

  /** Returns the session of a number that does not wait. Removes the number if it has none. */
  #lookAt(number: number): LineEntry {
    const word = this.line.get(number);
    const session = word - calledBit;
    if (word >= calledBit && this.#isTheirs(session, number)) {
      const used = this.sessions.get(2 * session + 1) % calledBit;
      return { kind: "entered", session, usedSecond: used - 1 };
    }
    if (word > 0) this.line.set(number, 0);
    return { kind: "gone" };
  }

  #letIn(
    number: number,
    { present, oldest }: { readonly present: number; readonly oldest: number },
  ): LineEntry {
    const word = this.line.get(number);
    if (word >= calledBit || word === 0 || word < oldest) return this.#lookAt(number);
    const { taken, left } = this.#takeFree(this.#extra, 1);
    this.#extra = left;
    const [session] = taken;
    if (session === undefined) return { kind: "waiting" };
    this.#reserve(number, session, present);
    return { kind: "entered", session, usedSecond: present - 1 };
  }

  #leave({ number, session }: RoomTurn["leaves"][number]): void {
    const word = this.line.get(number);
    if (word > 0) this.line.set(number, 0);
    for (const one of [word - calledBit, session]) {
      if (one !== undefined && this.#isTheirs(one, number)) this.#setSession(one, 0, 0);
    }
  }

  #join(
    { joinCount, spanMax }: RoomTurn,
    present: number,
  ): Pick<RoomTurnAnswer, "firstNumber" | "joinedCount" | "enteredSessions"> {
    const firstNumber = this.#nextNumber;
    const left = Math.min(joinCount, numbersMax - firstNumber);
    const isNobodyWaiting = this.#calledPlace === firstNumber;
    const spare = this.#takeFree(this.#spare, isNobodyWaiting ? left : 0);
    this.#spare = spare.left;
    spare.taken.forEach((session, i) => {
      this.line.set(firstNumber + i, calledBit + session);
      this.#setSession(session, firstNumber + i, present);
    });
    const enteredCount = spare.taken.length;
    if (isNobodyWaiting) this.#calledPlace += enteredCount;
    this.#nextNumber += enteredCount;
    const room = Math.max(0, spanMax - (this.#nextNumber - this.#calledPlace));
    const waitingCount = Math.min(left - enteredCount, room);
    for (let i = 0; i < waitingCount; i += 1) this.line.set(this.#nextNumber + i, present);
    this.#nextNumber += waitingCount;
    const joinedCount = enteredCount + waitingCount;
    return { firstNumber, joinedCount, enteredSessions: spare.taken };
  }

  /** Returns the first free sessions of a list, and the rest of the list. */
  #takeFree(
    list: readonly number[],
    count: number,
  ): { readonly taken: readonly number[]; readonly left: readonly number[] } {
    const taken: number[] = [];
    let at = 0;
    for (; at < list.length && taken.length < count; at += 1) {
      const session = list[at] ?? 0;
      if (this.#isFree(session)) taken.push(session);
    }
    return { taken, left: list.slice(at) };
  }

  #reserve(number: number, session: number, present: number): void {
    this.line.set(number, calledBit + session);
    this.#setSession(session, number, calledBit + present);
  }

  #setSession(session: number, number: number, word: number): void {
    this.sessions.set(2 * session, number % 2 ** 32);
    this.sessions.set(2 * session + 1, word);
  }

  #isFree(session: number): boolean {
    return this.sessions.get(2 * session + 1) === 0;
  }

  #isTheirs(session: number, number: number): boolean {
    if (session < 0 || this.#isFree(session)) return false;
    return this.sessions.get(2 * session) === number % 2 ** 32;
  }

  /**
   * Returns the time in milliseconds of the line. If the store's clock has stepped back since the
   * last beat, or has advanced by more than the maximum silence, moves the start of the line.
   */
  #lineMs(nowMs: number): number {
    const passedMs = nowMs - this.#beganMs - this.#lastMs;
    const countedMs = Math.min(Math.max(passedMs, 0), 1_000 * silenceSecondsMax);
    if (passedMs !== countedMs) {
      this.#lastMs += countedMs;
      this.#beganMs = nowMs - this.#lastMs;
      return this.#lastMs;
    }
    return this.#lastMs + passedMs;
  }
}

/** Returns the word of the line for a visitor who is present at this time. */
function wordOf(lineMs: number): number {
  return Math.floor(lineMs / 1_000) + 1;
}
