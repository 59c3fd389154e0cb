import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { assert, type ErrorCode, toServiceError } from "../../core/base/errors.js";
import type { ServiceLoad } from "../../core/waiting-room/auto-capacity.js";
import { placeOf } from "../../core/waiting-room/places.js";
import {
  decodePublishedRoom,
  encodePublishedRoom,
  type PublishedRoom,
} from "../../core/waiting-room/published-room.js";
import { RoomLeader } from "../../core/waiting-room/room-leader.js";
import {
  type JoinAnswer,
  type LineEntry,
  lineSpanMax,
  type RoomLine,
  type RoomStatus,
  type SessionKey,
  type VisitAnswer,
} from "../../core/waiting-room/room-line.js";
import { lostAfterSeconds, type RoomRules } from "../../core/waiting-room/room-rules.js";
import {
  lineWordsMax,
  type RoomBeat,
  type RoomHead,
  type RoomStore,
  type RoomTurn,
  type RoomTurnAnswer,
  roomVisitsMax,
  sessionsReadMax,
  silenceSecondsMax,
  stepEntriesMax,
} from "../../store/coordination/room-store.js";

/** An event of a room, for logs. */
export type RoomLineEvent =
  /** From now on, this replica decides who enters. */
  | { readonly kind: "leaderElected"; readonly room: string; readonly term: number }
  | { readonly kind: "leaderLost"; readonly room: string }
  /** A new line began: the store has lost the room, and all visitors have to join again. */
  | { readonly kind: "lineBegan"; readonly room: string }
  /** Reported once until the store answers again. */
  | { readonly kind: "storeLost"; readonly room: string; readonly code: ErrorCode }
  | { readonly kind: "storeFound"; readonly room: string };

/** Options that the lines of a replica share. */
export interface RoomLineOptions {
  readonly store: RoomStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly replicaId: string;
  /** How long a silent leader remains the leader, in milliseconds. */
  readonly leaseMs: number;
  /** Maximum time that a visitor waits for the store, in milliseconds. */
  readonly turnTimeoutMs: number;
  /** Returns the load of a room's service, for `activeUsersMax: auto`. Undefined if not known. */
  readonly load: (room: RoomRules) => ServiceLoad | undefined;
  readonly onEvent?: (event: RoomLineEvent) => void;
}

/** Maximum turns of one room in flight to the store. Further calls fail at once. */
const turnsInFlightMax = 64;

/** Time until a room is read again whose leader has published nothing yet, in milliseconds. */
const unpublishedBeatMs = 100;

/** Timeout of a beat, and of each call of a leader's step, in milliseconds. */
const beatTimeoutMs = 1_000;

/** A room's line on top of the store: calls of visitors, and the leader's steps while it leads. */
export class StoreRoomLine implements RoomLine {
  readonly #options: RoomLineOptions;
  /** The line that this replica begins if there is none. */
  #fresh: FreshLine;
  #rules: RoomRules;
  #head: RoomHead | undefined;
  #published: PublishedRoom | undefined;
  #leader: RoomLeader | undefined;
  #isLost = false;
  #isStopped = false;
  /** The store's second when it was last asked, and the times of that call here. */
  #clockReading:
    | { readonly second: number; readonly sentMs: number; readonly heardMs: number }
    | undefined;
  #calls: Call[] = [];
  #waits = { endedCount: 0, heldCount: 0 };
  #turnsInFlight = 0;
  #beat: Promise<void> | undefined;
  #cancelSoon: Cancel | undefined;

  constructor(rules: RoomRules, options: RoomLineOptions) {
    this.#rules = rules;
    this.#options = options;
    this.#fresh = freshLine(options.random);
  }

  get status(): RoomStatus | undefined {
    return this.#published?.status;
  }

  /** State of the store at the last beat. Undefined until it has answered. */
  get head(): RoomHead | undefined {
    return this.#head;
  }

  get isReachable(): boolean {
    return !this.#isLost && this.#clockReading !== undefined;
  }

  get isLeader(): boolean {
    return (this.#head?.term ?? 0) > 0;
  }

  /** Applies the rules of a changed policy. */
  change(rules: RoomRules): void {
    this.#rules = rules;
  }

  /** Returns the line's time. It stops after a silence, and is late by one call to the store. */
  second(): number | undefined {
    const reading = this.#clockReading;
    if (reading === undefined) return undefined;
    const passed = (this.#options.clock.monotonicMs() - reading.heardMs) / 1_000;
    return reading.second + Math.min(passed, silenceSecondsMax);
  }

  join(done: (answer: JoinAnswer) => void): void {
    this.#add({ kind: "join", done });
  }

  visit(number: number, done: (answer: VisitAnswer) => void): void {
    this.#add({ kind: "visit", number, done });
  }

  letIn(number: number, done: (answer: VisitAnswer) => void): void {
    this.#add({ kind: "letIn", number, done });
  }

  leave(place: { readonly number: number; readonly session?: number }): void {
    this.#add({ kind: "leave", place });
  }

  renew(key: SessionKey, done: (exists: boolean | "failed") => void): void {
    this.#add({ kind: "renew", key, done });
  }

  noteWait(isHeld: boolean): void {
    this.#waits.endedCount += 1;
    if (isHeld) this.#waits.heldCount += 1;
  }

  /**
   * Reads the room, and leads it if no other replica does; once a second. While a new line has not
   * been led yet, it reads more often by itself, because no visitor gets a place until then. Never
   * rejects.
   */
  beat(): Promise<void> {
    this.#beat ??= this.#hearAndLead(this.#options.leaseMs).finally(() => {
      this.#beat = undefined;
      this.#cancelSoon?.();
      const isUnpublished = this.isReachable && this.#head?.published === undefined;
      if (!isUnpublished || this.#isStopped) return;
      this.#cancelSoon = this.#options.clock.schedule(unpublishedBeatMs, () => void this.beat());
    });
    return this.#beat;
  }

  /** Resigns as the leader, so that another replica continues at once. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelSoon?.();
    await this.#beat;
    if (this.isLeader) await this.#hear(0);
  }

  async #hearAndLead(leaseMs: number): Promise<void> {
    const head = await this.#hear(leaseMs);
    if (head === undefined || head.term === 0) {
      this.#leader = undefined;
      return;
    }
    try {
      await this.#lead(head);
    } catch (thrown) {
      // The decision may have been applied or not, so the next step begins from the store.
      this.#leader = undefined;
      this.#noteFailure(thrown);
    }
  }

  async #hear(leaseMs: number): Promise<RoomHead | undefined> {
    const { store, clock, replicaId } = this.#options;
    const sentMs = clock.monotonicMs();
    const room = this.#rules.name;
    const beat = { room, replicaId, leaseMs, ...this.#fresh, waits: this.#waits };
    this.#waits = { endedCount: 0, heldCount: 0 };
    try {
      const head = await store.beat(beat, sentMs + beatTimeoutMs);
      this.#noteSuccess(head.second, sentMs);
      this.#adopt(head);
      return head;
    } catch (thrown) {
      this.#noteFailure(thrown);
      return undefined;
    }
  }

  #adopt(head: RoomHead): void {
    const room = this.#rules.name;
    const before = this.#head;
    this.#head = head;
    this.#published = head.published && decodePublishedRoom(head.published.bytes.toString());
    // Tickets of a line that the store has lost must not be valid in the next one.
    if (head.lineId === this.#fresh.freshLineId) this.#fresh = freshLine(this.#options.random);
    const wasLeader = (before?.term ?? 0) > 0;
    if (before !== undefined && before.lineId !== head.lineId)
      this.#tell({ kind: "lineBegan", room });
    if (head.term > 0 && head.term !== before?.term) {
      this.#tell({ kind: "leaderElected", room, term: head.term });
    } else if (wasLeader && head.term === 0) this.#tell({ kind: "leaderLost", room });
  }

  async #lead(head: RoomHead): Promise<void> {
    const { store, clock, random, replicaId, load } = this.#options;
    const rules = this.#rules;
    const room = rules.name;
    const bounds = { lineWordsMax, sessionsReadMax, stepEntriesMax };
    if (this.#leader?.isOf(head) !== true) {
      this.#leader = new RoomLeader(head, this.#published, bounds);
    }
    const leader = this.#leader;
    const seed = Math.floor(random.next() * 2 ** 32);
    const input = { rules, head, load: load(rules), seed };
    const deadlineMs = clock.monotonicMs() + beatTimeoutMs;
    const reads = leader.reads(head);
    const lines = reads.line.map(async (range) => {
      leader.readLine(range, await store.readLine(room, range, deadlineMs), input);
    });
    const sessions = reads.sessions.map(async (range) => {
      leader.readSessions(range, await store.readSessions(room, range, deadlineMs));
    });
    await Promise.all([...lines, ...sessions]);
    const { published, ...decision } = leader.decide(input);
    const bytes = Buffer.from(encodePublishedRoom(published));
    const { lineId, term } = head;
    const afterSecond = head.published?.second;
    const step = { room, term, replicaId, lineId, afterSecond, ...decision, published: bytes };
    const answer = await store.apply(step, clock.monotonicMs() + beatTimeoutMs);
    if (answer.kind === "outranked") this.#leader = undefined;
  }

  #add(call: Call): void {
    this.#calls.push(call);
    if (this.#calls.length === 1) this.#options.clock.scheduleTurn(() => this.#sendTurn());
  }

  #sendTurn(): void {
    const calls = this.#calls;
    this.#calls = [];
    for (let from = 0; from < calls.length; from += roomVisitsMax) {
      const part = calls.slice(from, from + roomVisitsMax);
      if (this.#head === undefined || this.#turnsInFlight >= turnsInFlightMax) fail(part);
      else void this.#send(part, this.#head);
    }
  }

  async #send(calls: readonly Call[], { lineId }: RoomHead): Promise<void> {
    const { store, clock, turnTimeoutMs } = this.#options;
    const sentMs = clock.monotonicMs();
    const turn: RoomTurn = {
      room: this.#rules.name,
      lineId,
      joinCount: calls.filter(({ kind }) => kind === "join").length,
      spanMax: this.#spanMax(),
      lostAfterSeconds: lostAfterSeconds(this.#rules),
      visits: calls.flatMap((call) => (call.kind === "visit" ? [call.number] : [])),
      renewals: calls.flatMap((call) => (call.kind === "renew" ? [call.key] : [])),
      letIns: calls.flatMap((call) => (call.kind === "letIn" ? [call.number] : [])),
      leaves: calls.flatMap((call) => (call.kind === "leave" ? [call.place] : [])),
    };
    this.#turnsInFlight += 1;
    let answer: RoomTurnAnswer | undefined;
    try {
      answer = await store.turn(turn, sentMs + turnTimeoutMs);
      this.#noteSuccess(answer.second, sentMs);
    } catch (thrown) {
      this.#noteFailure(thrown);
    } finally {
      this.#turnsInFlight -= 1;
    }
    if (answer === undefined) fail(calls);
    else this.#deliver(calls, answer);
  }

  /** Returns how many may wait, plus the numbers of visitors who are gone, as far as is known. */
  #spanMax(): number {
    const { status } = this;
    const { order, waitingMax } = this.#rules;
    if (order === "reject" || status?.mode === "draining") return 0;
    if (status === undefined) return Math.min(waitingMax, lineSpanMax);
    const goneCount = status.nextNumber - status.calledPlace - status.waitingCount;
    return Math.min(waitingMax + Math.max(0, goneCount), lineSpanMax);
  }

  #deliver(calls: readonly Call[], answer: RoomTurnAnswer): void {
    const second = Math.floor(answer.second);
    const entries = answer.entries.values();
    const letIns = answer.letInEntries.values();
    const renewed = answer.renewed.values();
    let joins = 0;
    for (const call of calls) {
      if (call.kind === "join") {
        call.done(joinAnswer(answer, joins));
        joins += 1;
      } else if (call.kind === "visit") {
        const entry = this.#present(call.number, entries.next().value);
        call.done({ kind: "known", entry, second });
      } else if (call.kind === "letIn") {
        call.done({ kind: "known", entry: known(letIns.next().value), second });
      } else if (call.kind === "renew") call.done(known(renewed.next().value));
    }
  }

  /** Otherwise, a visitor who was passed over and returns under other rules would wait forever. */
  #present(number: number, answered: LineEntry | undefined): LineEntry {
    const entry = known(answered);
    if (entry.kind !== "waiting") return entry;
    const place = placeOf(number, this.status?.shuffles ?? []);
    return place < (this.#head?.calledPlace ?? 0) ? { kind: "gone" } : entry;
  }

  #noteSuccess(second: number, sentMs: number): void {
    const before = this.#clockReading;
    if (before === undefined || before.sentMs <= sentMs) {
      this.#clockReading = { second, sentMs, heardMs: this.#options.clock.monotonicMs() };
    }
    if (this.#isLost) this.#tell({ kind: "storeFound", room: this.#rules.name });
    this.#isLost = false;
  }

  #noteFailure(thrown: unknown): void {
    const { code } = toServiceError(thrown);
    if (!this.#isLost) this.#tell({ kind: "storeLost", room: this.#rules.name, code });
    this.#isLost = true;
  }

  #tell(event: RoomLineEvent): void {
    this.#options.onEvent?.(event);
  }
}

type Call =
  | { readonly kind: "join"; readonly done: (answer: JoinAnswer) => void }
  | {
      readonly kind: "visit" | "letIn";
      readonly number: number;
      readonly done: (answer: VisitAnswer) => void;
    }
  | { readonly kind: "leave"; readonly place: RoomTurn["leaves"][number] }
  | {
      readonly kind: "renew";
      readonly key: SessionKey;
      readonly done: (exists: boolean | "failed") => void;
    };

type FreshLine = Pick<RoomBeat, "freshLineId" | "freshSecret">;

function freshLine(random: Random): FreshLine {
  const freshLineId = Math.floor(random.next() * 2 ** 32);
  const ids = Array.from({ length: 4 }, () => random.id().slice(0, 16));
  return { freshLineId, freshSecret: Buffer.from(ids.join(""), "hex") };
}

function joinAnswer(answer: RoomTurnAnswer, index: number): JoinAnswer {
  if (index >= answer.joinedCount) return { kind: "full" };
  return {
    kind: "joined",
    lineId: answer.lineId,
    number: answer.firstNumber + index,
    second: Math.floor(answer.second),
    session: answer.enteredSessions[index],
  };
}

function fail(calls: readonly Call[]): void {
  for (const call of calls) {
    if (call.kind === "renew") call.done("failed");
    else if (call.kind !== "leave") call.done({ kind: "failed" });
  }
}

function known<T>(value: T | undefined): T {
  assert(value !== undefined, "the store answers for each visitor");
  return value;
}
