import { isOverWaitCap, sigmoidRejectRatio } from "../admission/estimated-wait.js";
import { defaultAutoActiveMax, nextAutoCapacity, type ServiceLoad } from "./auto-capacity.js";
import { nextRangeFactor } from "./estimate.js";
import { LiveLine } from "./live-line.js";
import type { LeaderMemory, PublishedRoom } from "./published-room.js";
import {
  calledBit,
  type RoomMode,
  type RoomOverride,
  type RoomStatus,
  shufflesMax,
} from "./room-line.js";
import {
  type EventState,
  eventState,
  lateSeconds,
  lostAfterSeconds,
  type RoomRules,
  roomBounds,
} from "./room-rules.js";
import { type OverSession, type SessionCensus, SessionTable } from "./session-table.js";

/** The state of a room that a leader sees when its step begins. See `RoomHead`. */
export interface LeaderHead {
  readonly lineId: number;
  readonly beganMs: number;
  readonly second: number;
  readonly nextNumber: number;
  readonly calledPlace: number;
  readonly waits: { readonly endedCount: number; readonly heldCount: number };
  readonly override: RoomOverride | undefined;
}

/** A range of words to read: numbers of the line, or indices of sessions. */
export interface ReadRange {
  readonly from: number;
  readonly count: number;
}

/** The input of a step, besides the words. */
export interface LeaderInput {
  readonly rules: RoomRules;
  readonly head: LeaderHead;
  /** The load of the service, for `activeUsersMax: auto`. Undefined: not known. */
  readonly load: ServiceLoad | undefined;
  /** 32 random bits, for a shuffle. */
  readonly seed: number;
}

/** The decision of a leader: the parts of a `RoomStep` that do not identify the leader. */
export interface LeaderDecision {
  readonly lostAfterSeconds: number;
  readonly frees: readonly OverSession[];
  readonly calls: readonly LeaderCall[];
  readonly spareSessions: readonly number[];
  readonly extraSessions: readonly number[];
  readonly calledPlace: number;
  readonly forgottenBelow: number;
  readonly published: PublishedRoom;
}

/** A visitor to call. */
export interface LeaderCall {
  readonly number: number;
  readonly place: number;
  readonly session: number;
}

/** Bounds of one read of the store, and of the changes of one step. */
export interface LeaderBounds {
  readonly lineWordsMax: number;
  readonly sessionsReadMax: number;
  readonly stepEntriesMax: number;
}

/**
 * The leader of a room: decides once a second which visitors enter. A step is `reads`, then
 * `readLine` and `readSessions` with the words read, then `decide`. All that it knows is in the
 * store: another leader continues from there, as does a new one here if a step was not applied.
 *
 * Guarantees, whatever is lost or late:
 *
 * - Sessions in use, including those of called visitors, are at most `activeUsersMax`: each call
 *   takes a session that the store finds free, and there are only as many as the bound allows. More
 *   are in use only if an operator let visitors in, or the bound fell.
 * - Visitors are called in the order of their places: that of joining, except for those who were
 *   shuffled when an event opened (`order: random`, or by the event). No visitor gets a spare
 *   session while others wait. So a visitor who is present is overtaken only by those whom an
 *   operator lets in, and by those who ask sooner once both are called: one refresh of its page.
 * - At most `r t + 2 r + 1` visitors enter in t seconds, with r per second allowed, as long as none
 *   joins between the reads and the step of a room in which none waits.
 *
 * Cost of a step with a line of up to 262,144 places: for each place, a read of 4 bytes and about
 * 2 ns of time. Longer lines are read in turns of that many per second, so 1,000,000 places are
 * read every 4 s, at 1 MB per second. In addition, 8 bytes for each session.
 */
export class RoomLeader {
  readonly #bounds: LeaderBounds;
  readonly #lineId: number;
  readonly #line: LiveLine;
  readonly #sessions: SessionTable;
  /** What was last published, by any leader. */
  #last: PublishedRoom | undefined;
  /** The next number to read again. */
  #lineCursor = 0;
  #spares: readonly number[] = [];
  /** A new leader does not know which sessions are offered, so it first offers none. */
  #isFirst = true;

  constructor(head: LeaderHead, last: PublishedRoom | undefined, bounds: LeaderBounds) {
    this.#bounds = bounds;
    this.#lineId = head.lineId;
    this.#last = last?.status.lineId === head.lineId ? last : undefined;
    const shuffles = this.#last?.status.shuffles ?? [];
    this.#line = new LiveLine({ calledPlace: head.calledPlace, shuffles });
    this.#sessions = new SessionTable(this.#last?.memory.sessionsEnd ?? bounds.sessionsReadMax);
  }

  /** Reports whether its state matches the present line. If not, a new leader has to begin. */
  isOf(head: LeaderHead): boolean {
    return head.lineId === this.#lineId && head.calledPlace >= this.#line.calledPlace;
  }

  /** Returns what has to be read before it can decide. */
  reads({ nextNumber }: LeaderHead): {
    readonly line: readonly ReadRange[];
    readonly sessions: readonly ReadRange[];
  } {
    const { base, end } = this.#line;
    const { lineWordsMax } = this.#bounds;
    const range = (from: number, to: number): ReadRange => {
      return { from, count: Math.max(0, Math.min(to - from, lineWordsMax)) };
    };
    const line: ReadRange[] = [];
    if (nextNumber - base <= lineWordsMax) line.push(range(base, nextNumber));
    else {
      const cursor = this.#lineCursor >= base && this.#lineCursor < end ? this.#lineCursor : base;
      line.push(range(cursor, end));
      this.#lineCursor = cursor + lineWordsMax;
      for (let i = 0; i < newReadsMax; i += 1) {
        line.push(range(end + i * lineWordsMax, nextNumber));
      }
    }
    return { line: line.filter(({ count }) => count > 0), sessions: this.#sessionReads() };
  }

  #sessionReads(): readonly ReadRange[] {
    const { end } = this.#sessions;
    const size = this.#bounds.sessionsReadMax;
    return Array.from({ length: Math.ceil(end / size) }, (_, i) => {
      return { from: i * size, count: Math.min(size, end - i * size) };
    });
  }

  /** Takes words of the line, as of the second of the head. */
  readLine({ from }: ReadRange, words: Uint32Array, { rules, head }: LeaderInput): void {
    this.#line.read(from, words, presentWord(head) - lostAfterSeconds(rules));
  }

  readSessions({ from }: ReadRange, words: Uint32Array): void {
    this.#sessions.read(from, words);
  }

  decide(input: LeaderInput): LeaderDecision {
    const { rules, head } = input;
    const step = this.#begin(input);
    const entrances = this.#enter(step);
    const { frees, calls, calledPlace, spareSessions, extraSessions } = entrances;
    this.#line.advance(calledPlace);
    for (const { session, number } of calls) {
      this.#sessions.reserve(session, number, calledBit + presentWord(head));
    }
    for (const session of [...spareSessions, ...extraSessions]) this.#sessions.offer(session);
    this.#spares = spareSessions;
    this.#isFirst = false;
    const published = this.#publish(step, entrances);
    this.#last = published;
    return {
      lostAfterSeconds: lostAfterSeconds(rules),
      frees,
      calls,
      spareSessions,
      extraSessions,
      calledPlace,
      forgottenBelow: step.forgottenBelow,
      published,
    };
  }

  #begin(input: LeaderInput): Step {
    const { rules, head, load } = input;
    const before = this.#last?.memory ?? firstMemory(rules, this.#sessions.end);
    const { second, calledPlace, activeCount } = this.#last?.status ?? { ...head, activeCount: 0 };
    const elapsedSeconds = Math.max(0, head.second - second);
    this.#line.advance(head.calledPlace);
    this.#line.forgetCalled();
    const event = eventState(rules.events, lineMs(head), head.override?.openedEvent);
    const runCount = this.#line.shuffles.length;
    const openedEvent = this.#open(input, event, before.openedEvent);
    const isShuffled = this.#line.shuffles.length > runCount;
    const bounds = roomBounds(rules, event, head.override);
    const auto = nextAutoCapacity(before, load, { activeCount, elapsedSeconds });
    const autoMax = Math.floor(auto.autoActiveMax ?? defaultAutoActiveMax);
    const activeMax = bounds.activeUsersMax === "auto" ? autoMax : bounds.activeUsersMax;
    const perSecond =
      bounds.entriesPerMinuteMax === "auto" ? undefined : bounds.entriesPerMinuteMax / 60;
    const tokens = before.tokens + (perSecond ?? 0) * elapsedSeconds;
    const tokensMax = Math.max(1, 2 * (perSecond ?? 0));
    // Visitors who took spare sessions have advanced the called place since.
    const spareEntrances = Math.max(0, head.calledPlace - calledPlace);
    const memory = {
      ...before,
      ...auto,
      openedEvent,
      tokens: Math.min(tokensMax, tokens) - spareEntrances,
    };
    // Only by places that are certainly called: the store may stop the calls of this step.
    const forgottenBelow = this.#forgottenBelow(head);
    const times = { elapsedSeconds, isShuffled, forgottenBelow };
    return { rules, head, event, activeMax, perSecond, memory, ...times };
  }

  /** Shuffles waiting visitors once when an event opens. @returns the event that opened last */
  #open(
    { rules, head, seed }: LeaderInput,
    event: EventState,
    openedBefore: string | undefined,
  ): string | undefined {
    if (event.phase !== "open" || event.event === undefined) return openedBefore;
    const opened = `${event.event.name}@${event.event.startsAtMs}`;
    const from = this.#line.calledPlace;
    const count = head.nextNumber - from;
    const hasSpace = count > 1 && this.#line.shuffles.length < shufflesMax;
    if (opened !== openedBefore && shuffles(rules, event) && hasSpace) {
      this.#line.shuffle({ from, count, seed });
    }
    return opened;
  }

  #enter(step: Step): Entrances {
    const { rules, head, event, perSecond, memory } = step;
    const mode = head.override?.mode ?? "open";
    const { activeCount, over, usable, free } = this.#freeSessions(step);
    // No visitor is called by new places before they are published: a step may apply in parts.
    const isOpen = mode !== "paused" && event.phase !== "preQueue" && !step.isShuffled;
    const rateMax = perSecond === undefined ? usable.length : Math.floor(memory.tokens);
    const entering = usable.slice(0, isOpen ? Math.max(0, rateMax) : 0);
    const { calls, calledPlace } = step.isShuffled
      ? { calls: [], calledPlace: head.calledPlace }
      : this.#call(head, entering);
    const givesSpares =
      mode === "open" && !rules.queueAll && !this.#isFirst && calledPlace === head.nextNumber;
    const joined = head.nextNumber - (this.#last?.status.nextNumber ?? 0);
    const spareMax = givesSpares ? Math.max(sparesMin, 2 * joined) : 0;
    const taken = new Set(usable);
    const others = free.filter((session) => !taken.has(session) && session < sessionsMax);
    return {
      mode,
      frees: over,
      calls,
      calledPlace,
      spareSessions: entering.slice(calls.length, calls.length + spareMax),
      extraSessions: others.slice(-extraSessionsMax),
      activeCount: activeCount - over.length + calls.length,
    };
  }

  /** Sessions that are active, over and free, and those of the latter two that the bound allows. */
  #freeSessions({ rules, head, activeMax }: Step): SessionCensus & {
    readonly usable: readonly number[];
  } {
    const present = presentWord(head);
    const { stepEntriesMax } = this.#bounds;
    const { activeCount, over, ...census } = this.#sessions.census({
      usedBefore: present - Math.ceil(rules.sessionMs / 1_000) - lateSeconds,
      calledBefore: present - lostAfterSeconds(rules),
      overMax: stepEntriesMax,
      freeMax: Math.min(activeMax, stepEntriesMax) + extraSessionsMax,
    });
    // Free sessions that are already offered come first: a visitor may be taking one.
    const offered = this.#spares.filter((session) => this.#sessions.isFree(session));
    const free = [...new Set([...offered, ...census.free])];
    const leftCount = Math.min(stepEntriesMax, Math.max(0, activeMax - activeCount));
    // A session that is over makes room for one visitor, who takes that same session, since it may
    // be renewed before this step is applied.
    const usable = [...free.slice(0, leftCount), ...over.map(({ session }) => session)];
    const usableMax = Math.min(stepEntriesMax, activeMax - activeCount + over.length);
    return { activeCount, over, free, usable: usable.slice(0, Math.max(0, usableMax)) };
  }

  /** Calls as many visitors as there are sessions, in the order of their places. */
  #call(
    { nextNumber }: LeaderHead,
    sessions: readonly number[],
  ): Pick<Entrances, "calls" | "calledPlace"> {
    const calls: LeaderCall[] = [];
    const from = this.#line.calledPlace;
    const end = Math.min(nextNumber, from + passedPlacesMax);
    let place = from;
    for (; place < end && this.#line.hasRead(place); place += 1) {
      const number = this.#line.presentAt(place);
      if (number === undefined) continue;
      const session = sessions[calls.length];
      if (session === undefined) break;
      calls.push({ number, place, session });
    }
    return { calls, calledPlace: place };
  }

  #publish(step: Step, entrances: Entrances): PublishedRoom {
    const { rules, head, event, activeMax, perSecond } = step;
    const memory = this.#measure(step, entrances);
    const sessionSeconds =
      memory.endedCount > 0 ? memory.heldSeconds / memory.endedCount : rules.sessionMs / 1_000;
    const bySessions = activeMax / Math.max(sessionSeconds, shortestSessionSeconds);
    const isByRate = perSecond !== undefined && perSecond < bySessions;
    const pace = isByRate ? perSecond : bySessions;
    const entriesPerSecond = pace > 0 && entrances.mode !== "paused" ? pace : undefined;
    const waitingCount = this.#line.liveCount;
    const { waits } = head;
    const status: RoomStatus = {
      lineId: head.lineId,
      second: head.second,
      nextNumber: head.nextNumber,
      calledPlace: entrances.calledPlace,
      waitingCount,
      liveByBlock: this.#line.liveByBlock.slice(),
      liveAtFront: this.#line.front(),
      activeCount: entrances.activeCount,
      activeCountMax: activeMax,
      entriesPerSecond,
      // What an operator sets is known exactly.
      entriesMeasuredCount: isByRate ? 1e6 : memory.endedCount,
      abandonPerSecond: memory.waitedSeconds > 0 ? memory.leftCount / memory.waitedSeconds : 0,
      sessionSeconds,
      rangeFactor: nextRangeFactor(this.#last?.status.rangeFactor ?? 1, {
        endedCount: waits.endedCount - step.memory.learnedEndedCount,
        heldCount: waits.heldCount - step.memory.learnedHeldCount,
      }),
      rejectRatio: rejectRatio(rules, { waitingCount, activeMax, pace }),
      shuffles: this.#line.shuffles,
      phase: event.phase,
      opensSecond: event.next && (event.next.startsAtMs - head.beganMs) / 1_000,
      shufflesNext: event.next !== undefined && shuffles(rules, { event: event.next }),
      mode: entrances.mode,
    };
    return { status, memory };
  }

  #measure(step: Step, { calls }: Entrances): LeaderMemory {
    const { head, activeMax, perSecond, elapsedSeconds, memory } = step;
    const last = this.#last?.status;
    const sessionSeconds = memory.heldSeconds / Math.max(1, memory.endedCount);
    const sessions = Math.max(memorySessions, memoryEndings / Math.max(1, activeMax));
    const forgetting = elapsedSeconds / Math.max(memorySeconds, sessions * sessionSeconds);
    // Measurements do not fade while there is nothing to measure.
    const heldKept = last?.activeCount ? Math.exp(-forgetting) : 1;
    const waitedKept = last?.waitingCount ? Math.exp(-forgetting) : 1;
    return {
      ...memory,
      sessionsEnd: this.#sessions.end,
      tokens: perSecond === undefined ? 0 : memory.tokens - calls.length,
      heldSeconds: memory.heldSeconds * heldKept + (last?.activeCount ?? 0) * elapsedSeconds,
      endedCount: memory.endedCount * heldKept + this.#sessions.takeEndedCount(),
      waitedSeconds: memory.waitedSeconds * waitedKept + (last?.waitingCount ?? 0) * elapsedSeconds,
      leftCount: memory.leftCount * waitedKept + this.#line.takeLeftCount(),
      learnedEndedCount: head.waits.endedCount,
      learnedHeldCount: head.waits.heldCount,
    };
  }

  /** Words of visitors who entered are kept as long as their sessions: they may ask again. */
  #forgottenBelow({ nextNumber }: LeaderHead): number {
    const { firstNumber } = this.#line;
    const oldest = this.#sessions.oldestNumber(nextNumber) ?? firstNumber;
    return Math.max(0, firstNumber - enteredNumbersMax, Math.min(firstNumber, oldest));
  }
}

/** The state at the beginning of a step. */
interface Step {
  readonly rules: RoomRules;
  readonly head: LeaderHead;
  readonly event: EventState;
  readonly activeMax: number;
  /** Maximum entries per second. Undefined: only sessions bound them. */
  readonly perSecond: number | undefined;
  readonly elapsedSeconds: number;
  readonly memory: LeaderMemory;
  /** Whether places were reassigned. */
  readonly isShuffled: boolean;
  readonly forgottenBelow: number;
}

/** The entries of a step. */
interface Entrances {
  readonly mode: RoomMode;
  readonly frees: readonly OverSession[];
  readonly calls: readonly LeaderCall[];
  readonly calledPlace: number;
  readonly spareSessions: readonly number[];
  readonly extraSessions: readonly number[];
  readonly activeCount: number;
}

/** Reads of numbers that were never read, in one step: 1,048,576 numbers. */
const newReadsMax = 4;

/** Maximum number of places that one step examines. */
const passedPlacesMax = 100_000;

/** Minimum number of spare sessions. There are more if more visitors join per second. */
const sparesMin = 64;

/** Sessions for visitors whom operators let in, per second. */
const extraSessionsMax = 8;

/** Maximum of numbers before the line whose words are kept as long as sessions have them. */
const enteredNumbersMax = 4_194_304;

/** As many as a room's table has. */
const sessionsMax = 1_000_000;

/** How long measurements are remembered, in seconds: the longest of this, */
const memorySeconds = 300;

/** of this many lengths of a session, */
const memorySessions = 5;

/** and of the time in which this many end. A pace that is known from 400 is off by 5 %. */
const memoryEndings = 400;

/** If sessions end at once, waiting visitors are still called once a second. */
const shortestSessionSeconds = 1;

/** Number of sessions with the configured length that are assumed before any has ended. */
const presumedSessions = 2;

function firstMemory({ sessionMs }: RoomRules, sessionsEnd: number): LeaderMemory {
  return {
    sessionsEnd,
    tokens: 1,
    openedEvent: undefined,
    heldSeconds: (presumedSessions * sessionMs) / 1_000,
    endedCount: presumedSessions,
    waitedSeconds: 0,
    leftCount: 0,
    learnedEndedCount: 0,
    learnedHeldCount: 0,
    autoActiveMax: undefined,
    inFlightSum: 0,
    activeSum: 0,
  };
}

/** Returns the word of a visitor who is present now. */
function presentWord({ second }: LeaderHead): number {
  return Math.floor(second) + 1;
}

/** Returns the store's time, in milliseconds since 1970. */
function lineMs({ beganMs, second }: LeaderHead): number {
  return beganMs + 1_000 * second;
}

function shuffles({ order }: RoomRules, { event }: Pick<EventState, "event">): boolean {
  return order === "random" || event?.shuffles === true;
}

/** Returns the part of joining visitors who are turned away because of the estimated wait. */
function rejectRatio(
  { estimatedWait }: RoomRules,
  room: { readonly waitingCount: number; readonly activeMax: number; readonly pace: number },
): number {
  if (estimatedWait === undefined || room.waitingCount === 0 || room.pace <= 0) return 0;
  const limit = Math.max(1, room.activeMax);
  const state = {
    waitingCount: room.waitingCount,
    inFlightCount: 0,
    limit,
    // The time of a session that drains the queue at the pace.
    serviceMs: (1_000 * limit) / room.pace,
  };
  if (isOverWaitCap(estimatedWait, state)) return 1;
  return estimatedWait.sigmoid === undefined ? 0 : sigmoidRejectRatio(estimatedWait.sigmoid, state);
}
