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

/** What a leader sees of a room when its step begins. See `RoomHead`. */
export interface LeaderHead {
  readonly lineId: number;
  readonly beganMs: number;
  readonly second: number;
  readonly nextNumber: number;
  readonly calledPlace: number;
  readonly waits: { readonly endedCount: number; readonly heldCount: number };
  readonly override: RoomOverride | undefined;
}

/** A run of words to read: numbers of the line, or indices of sessions. */
export interface ReadRange {
  readonly from: number;
  readonly count: number;
}

/** What a step depends on beside the words. */
export interface LeaderInput {
  readonly rules: RoomRules;
  readonly head: LeaderHead;
  /** The service's, for `activeUsersMax: auto`; undefined: not known. */
  readonly load: ServiceLoad | undefined;
  /** 32 random bits, for a shuffle. */
  readonly seed: number;
}

/** What a leader decides: the parts of a `RoomStep` that are not about who decides. */
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

/** How much one read of the store answers, and how much one step may change. */
export interface LeaderBounds {
  readonly lineWordsMax: number;
  readonly sessionsReadMax: number;
  readonly stepEntriesMax: number;
}

/**
 * The leader of a room: decides once a second who enters. A step is `reads`, what was asked for to
 * `readLine` and `readSessions`, and `decide`. It knows nothing that is not in the store: another
 * leader goes on from there, and so does this one, anew, where a step was not applied.
 *
 * What holds, whatever is lost or late:
 *
 * - Sessions in use, those of called visitors among them, are at most `activeUsersMax`: each call
 *   takes a session that the store finds free, and there are as many as the bound has left. What is
 *   above it was let in by an operator, or was there before the bound fell.
 * - Visitors are called in the order of their places, which is that of joining but for those who
 *   were shuffled at the opening of an event (`order: random`, or by the event). Nobody gets a
 *   spare session while somebody waits. So a visitor who is present is overtaken only by those whom
 *   an operator lets in, and by those who ask sooner once both are called: one refresh of its page.
 * - Entrances are at most `r t + 2 r + 1` in t seconds, r a second allowed, while nobody joins
 *   between the reads and the step of a room in which nobody waits.
 *
 * Cost of a step with a line of up to 262,144 places: one read of 4 bytes for each place, and about
 * 2 ns of time. Longer lines are read in turns of that many a second, so 1,000,000 places are seen
 * every 4 s, at 1 MB a second. And 8 bytes for each session.
 */
export class RoomLeader {
  readonly #bounds: LeaderBounds;
  readonly #lineId: number;
  readonly #line: LiveLine;
  readonly #sessions: SessionTable;
  /** What was published last, by whomever. */
  #last: PublishedRoom | undefined;
  /** The next number to look at again. */
  #lineCursor = 0;
  #spares: readonly number[] = [];
  /** A new leader does not know which sessions are offered, so it offers none at first. */
  #isFirst = true;

  constructor(head: LeaderHead, last: PublishedRoom | undefined, bounds: LeaderBounds) {
    this.#bounds = bounds;
    this.#lineId = head.lineId;
    this.#last = last?.status.lineId === head.lineId ? last : undefined;
    const shuffles = this.#last?.status.shuffles ?? [];
    this.#line = new LiveLine({ calledPlace: head.calledPlace, shuffles });
    this.#sessions = new SessionTable(this.#last?.memory.sessionsEnd ?? bounds.sessionsReadMax);
  }

  /** Whether what it knows is of this line as it stands; if not, another one has to begin. */
  isOf(head: LeaderHead): boolean {
    return head.lineId === this.#lineId && head.calledPlace >= this.#line.calledPlace;
  }

  /** What has to be read before it can decide. */
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

  /** Takes words of the line, as they were in the second of the head. */
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
    // Those who took spare sessions have moved the called place on since.
    const spareEntrances = Math.max(0, head.calledPlace - calledPlace);
    const memory = {
      ...before,
      ...auto,
      openedEvent,
      tokens: Math.min(tokensMax, tokens) - spareEntrances,
    };
    // By what is called for certain: the store may stop the calls of this step.
    const forgottenBelow = this.#forgottenBelow(head);
    const times = { elapsedSeconds, isShuffled, forgottenBelow };
    return { rules, head, event, activeMax, perSecond, memory, ...times };
  }

  /** Shuffles those who wait when an event opens, once. @returns the event that was opened last */
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
    // Nobody is called by new places before they are published: a step may be applied in parts.
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

  /** What is active, over and free; and of both the latter what the bound of the room has left. */
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
    // What is free and offered already comes first: somebody may just take it.
    const offered = this.#spares.filter((session) => this.#sessions.isFree(session));
    const free = [...new Set([...offered, ...census.free])];
    const leftCount = Math.min(stepEntriesMax, Math.max(0, activeMax - activeCount));
    // A session that is over makes room for one visitor who takes just that session, since it may
    // be renewed before this step is applied.
    const usable = [...free.slice(0, leftCount), ...over.map(({ session }) => session)];
    const usableMax = Math.min(stepEntriesMax, activeMax - activeCount + over.length);
    return { activeCount, over, free, usable: usable.slice(0, Math.max(0, usableMax)) };
  }

  /** As many visitors as there are sessions, in the order of their places. */
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
    // What is measured does not fade while there is nothing to measure.
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

  /** Words of visitors who have entered are kept while their sessions are: they may ask again. */
  #forgottenBelow({ nextNumber }: LeaderHead): number {
    const { firstNumber } = this.#line;
    const oldest = this.#sessions.oldestNumber(nextNumber) ?? firstNumber;
    return Math.max(0, firstNumber - enteredNumbersMax, Math.min(firstNumber, oldest));
  }
}

/** What a step begins with. */
interface Step {
  readonly rules: RoomRules;
  readonly head: LeaderHead;
  readonly event: EventState;
  readonly activeMax: number;
  /** Entrances; undefined: sessions alone bound them. */
  readonly perSecond: number | undefined;
  readonly elapsedSeconds: number;
  readonly memory: LeaderMemory;
  /** Whether places were given anew. */
  readonly isShuffled: boolean;
  readonly forgottenBelow: number;
}

/** Who enters. */
interface Entrances {
  readonly mode: RoomMode;
  readonly frees: readonly OverSession[];
  readonly calls: readonly LeaderCall[];
  readonly calledPlace: number;
  readonly spareSessions: readonly number[];
  readonly extraSessions: readonly number[];
  readonly activeCount: number;
}

/** Reads of numbers that were never looked at, in one step: 1,048,576. */
const newReadsMax = 4;

/** Places that one step looks at. */
const passedPlacesMax = 100_000;

/** Spare sessions at least; more where more visitors join in a second. */
const sparesMin = 64;

/** Sessions for those whom operators let in, each second. */
const extraSessionsMax = 8;

/** Numbers behind the line whose words are kept while sessions of that age last. */
const enteredNumbersMax = 4_194_304;

/** As many as a room's table has. */
const sessionsMax = 1_000_000;

/** How long measurements are remembered: the longest of this, */
const memorySeconds = 300;

/** of so many lengths of a session, */
const memorySessions = 5;

/** and of the time in which so many end. A pace that is known from 400 is off by 5 %. */
const memoryEndings = 400;

/** Where sessions end at once, those who wait are still called once a second. */
const shortestSessionSeconds = 1;

/** The length of a session is taken for measured from so many, until more have ended. */
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

/** The word of a visitor who is present now. */
function presentWord({ second }: LeaderHead): number {
  return Math.floor(second) + 1;
}

/** The store's time, in milliseconds since 1970. */
function lineMs({ beganMs, second }: LeaderHead): number {
  return beganMs + 1_000 * second;
}

function shuffles({ order }: RoomRules, { event }: Pick<EventState, "event">): boolean {
  return order === "random" || event?.shuffles === true;
}

/** The share of those who would join that the estimated wait turns away. */
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
    // A session's part in the pace, so that the queue is drained at it.
    serviceMs: (1_000 * limit) / room.pace,
  };
  if (isOverWaitCap(estimatedWait, state)) return 1;
  return estimatedWait.sigmoid === undefined ? 0 : sigmoidRejectRatio(estimatedWait.sigmoid, state);
}
