/**
 * The words of a waiting room, shared by all that build it.
 *
 * A visitor who joins gets the next number of the room's line, from the store. The line is an array
 * of one 32-bit word a number, so a place needs no search: people before a visitor are those with
 * smaller places who are still there. The leader calls places in order and reserves a session for
 * each; a called visitor enters with the next request. Nothing here depends on the clock of a
 * replica: seconds are the store's, counted from the beginning of the line.
 */

/** What the line says of a number. */
export type LineEntry =
  /** Still waits. */
  | { readonly kind: "waiting" }
  /**
   * Has entered, now or before: the session with that index is this visitor's, and lasts from
   * `usedSecond`, a whole second of the line. To look again does not make it last longer.
   */
  | { readonly kind: "entered"; readonly session: number; readonly usedSecond: number }
  /** Left, was not heard of for too long, or had a session that is over: it has to join again. */
  | { readonly kind: "gone" };

/** A place that was given to a visitor. */
export interface JoinedLine {
  readonly kind: "joined";
  /** The line that the number is of: another one begins when the store has lost the room. */
  readonly lineId: number;
  /** From 0; below 2^48. Numbers of one line are given out once. */
  readonly number: number;
  /** When, in seconds of the line. */
  readonly second: number;
  /** The session that it got at once, since nobody waited and one was free; undefined: it waits. */
  readonly session: number | undefined;
}

/** What came of a request to join. */
export type JoinAnswer =
  | JoinedLine
  /** As many wait as may. */
  | { readonly kind: "full" }
  /** The store did not answer in time. */
  | { readonly kind: "failed" };

/** What came of looking at a place. A waiting visitor counts as present from now. */
export type VisitAnswer =
  | { readonly kind: "known"; readonly entry: LineEntry; readonly second: number }
  | { readonly kind: "failed" };

/** A session's hold: its index in the store, and the number that entered with it. */
export interface SessionKey {
  readonly session: number;
  readonly number: number;
}

/**
 * A room's line as a replica uses it. Calls of one turn of the event loop go to the store together.
 * Callbacks never run before the method returns, and exactly once.
 */
export interface RoomLine {
  /** What the leader said last; undefined before the store has answered for the first time. */
  readonly status: RoomStatus | undefined;
  /** Whether the store answered the last question in time. */
  readonly isReachable: boolean;
  /** The store's second now, by the last answer and this process's monotonic clock. */
  second(): number | undefined;
  /** Gets a place; where nobody waits and a session is spare, that too. */
  join(done: (answer: JoinAnswer) => void): void;
  /** Marks a visitor as present, and lets it enter if its place is called. */
  visit(number: number, done: (answer: VisitAnswer) => void): void;
  /** Lets a visitor in past the order. */
  letIn(number: number, done: (answer: VisitAnswer) => void): void;
  /** Gives a place, or a session, up. */
  leave(place: { readonly number: number; readonly session?: number }): void;
  /** A session is in use: it lasts from now. `done` gets whether it still exists. */
  renew(key: SessionKey, done: (exists: boolean | "failed") => void): void;
  /** A visitor entered who was given a range when it joined, which held or not: see `rangeHeld`. */
  noteWait(isHeld: boolean): void;
}

/** A wait in seconds: the range holds for 90 % of the visitors who are given one. */
export interface WaitRange {
  readonly lowSeconds: number;
  readonly middleSeconds: number;
  readonly highSeconds: number;
}

/** How a room is run now. */
export const roomModes = ["open", "paused", "draining"] as const;

/**
 * `open`: visitors enter as sessions become free. `paused`: nobody enters. `draining`: nobody
 * joins, and those who wait still enter.
 */
export type RoomMode = (typeof roomModes)[number];

/** What an operator set; each overrides the policy until it is taken back. */
export interface RoomOverride {
  readonly mode: RoomMode;
  /** Undefined: as the policy says. */
  readonly activeUsersMax: number | undefined;
  readonly entriesPerMinuteMax: number | undefined;
  /** An event that was opened by hand; undefined: by its schedule. */
  readonly openedEvent: string | undefined;
}

/** Where an event of a room stands. */
export const roomEventPhases = ["none", "preQueue", "open"] as const;

/** In `preQueue` visitors come and wait, and nobody enters. */
export type RoomEventPhase = (typeof roomEventPhases)[number];

/** What the leader of a room tells every replica, once a second. */
export interface RoomStatus {
  readonly lineId: number;
  /** Of the store, counted from the beginning of the line. */
  readonly second: number;
  /** The next number that will be given out. */
  readonly nextNumber: number;
  /** Places below it have been called, or have been passed over as gone. */
  readonly calledPlace: number;
  /** Visitors who waited, were present and were not called, at the last count. */
  readonly waitingCount: number;
  /**
   * Those of them in each block of `liveBlockSize` places, from the block of `calledPlace` on. A
   * block of one place may be counted up to `countEverySeconds` ago.
   */
  readonly liveByBlock: readonly number[];
  /** A bit for each place of the first blocks, at most `frontBytesMax` bytes: see `aheadOf`. */
  readonly liveAtFront: Uint8Array;
  /** Sessions in use, those called and not yet entered among them. */
  readonly activeCount: number;
  /** The most of them. */
  readonly activeCountMax: number;
  /** Entrances a second while visitors wait; undefined: nobody can enter. */
  readonly entriesPerSecond: number | undefined;
  /** From how many ended sessions that is known: it is off by 1 / sqrt(count) of itself. */
  readonly entriesMeasuredCount: number;
  /** The share of waiting visitors who leave in a second. */
  readonly abandonPerSecond: number;
  /** The measured mean length of a session, in seconds; undefined before one ended. */
  readonly sessionSeconds: number | undefined;
  /** How far ranges are widened so that 90 % of them hold: see `estimate`. */
  readonly rangeFactor: number;
  /** The share of those who would join that the estimated wait turns away, 0 to 1. */
  readonly rejectRatio: number;
  /** Runs of places that were permuted, one after the other; at most `shufflesMax`. */
  readonly shuffles: readonly LineShuffle[];
  readonly phase: RoomEventPhase;
  /** When the next event opens, in seconds of the line; undefined: none is known. */
  readonly opensSecond: number | undefined;
  /** Whether those who wait then get places by chance. */
  readonly shufflesNext: boolean;
  readonly mode: RoomMode;
}

/** Places from `from` on, `count` of them, that were shuffled with a seed: see `placeOf`. */
export interface LineShuffle {
  readonly from: number;
  readonly count: number;
  /** 32 bits. */
  readonly seed: number;
}

/** Runs that a status names at most; those that are called through are left out. */
export const shufflesMax = 4;

/** Bits of the words of lines and sessions: see `RoomStore`. */
export const calledBit = 0x8000_0000;

/** Numbers from the called place on at most, those of visitors who are gone among them. */
export const lineSpanMax = 8_388_608;

/** Places of one block of `RoomStatus.liveByBlock`. */
export const liveBlockSize = 1_024;

/** Bytes of `RoomStatus.liveAtFront` at most: four blocks. */
export const frontBytesMax = (4 * liveBlockSize) / 8;
