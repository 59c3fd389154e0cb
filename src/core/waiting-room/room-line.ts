/**
 * Types of a waiting room, shared by all of its parts.
 *
 * A visitor who joins gets the next number of the room's line, from the store. The line is an array
 * of one 32-bit word per number, so a place needs no search: the people ahead of a visitor are
 * those with smaller places who are still there. The leader calls places in order and reserves a
 * session for each. A called visitor enters with the next request. Nothing here depends on the
 * clock of a replica: seconds are the store's, counted from the beginning of the line.
 */

/** The state of a number in the line. */
export type LineEntry =
  /** The visitor still waits. */
  | { readonly kind: "waiting" }
  /**
   * The visitor has entered, now or before, and has the session with that index. Its time starts at
   * `usedSecond`, a whole second of the line. Another look does not extend it.
   */
  | { readonly kind: "entered"; readonly session: number; readonly usedSecond: number }
  /** The visitor left, was silent for too long, or its session is over. It has to join again. */
  | { readonly kind: "gone" };

/** A number that was given to a visitor. */
export interface JoinedLine {
  readonly kind: "joined";
  /** The line of the number. A new line begins if the store has lost the room. */
  readonly lineId: number;
  /** From 0, below 2^48. Each number of a line is given out once. */
  readonly number: number;
  /** Time of joining, in seconds of the line. */
  readonly second: number;
  /** The session that it got at once, if none waited and one was free. Undefined: it waits. */
  readonly session: number | undefined;
}

/** The result of a request to join. */
export type JoinAnswer =
  | JoinedLine
  /** The maximum number of visitors wait. */
  | { readonly kind: "full" }
  /** The store did not answer in time. */
  | { readonly kind: "failed" };

/** The result of a look at a place. A waiting visitor counts as present from now. */
export type VisitAnswer =
  | { readonly kind: "known"; readonly entry: LineEntry; readonly second: number }
  | { readonly kind: "failed" };

/** Identifies a session: its index in the store, and the number that entered with it. */
export interface SessionKey {
  readonly session: number;
  readonly number: number;
}

/**
 * A room's line as a replica uses it. Calls of one turn of the event loop go to the store together.
 * Callbacks never run before the method returns, and exactly once.
 */
export interface RoomLine {
  /** The last status of the leader. Undefined until the store has answered for the first time. */
  readonly status: RoomStatus | undefined;
  /** Whether the store answered the last question in time. */
  readonly isReachable: boolean;
  /** The store's second now, by the last answer and this process's monotonic clock. */
  second(): number | undefined;
  /** Gets a place, and a session if no visitor waits and one is spare. */
  join(done: (answer: JoinAnswer) => void): void;
  /** Marks a visitor as present, and lets it enter if its place is called. */
  visit(number: number, done: (answer: VisitAnswer) => void): void;
  /** Lets a visitor in out of order. */
  letIn(number: number, done: (answer: VisitAnswer) => void): void;
  /** Gives up a place or a session. */
  leave(place: { readonly number: number; readonly session?: number }): void;
  /** Restarts the time of a session that is in use. `done` gets whether it still exists. */
  renew(key: SessionKey, done: (exists: boolean | "failed") => void): void;
  /** Counts a visitor who entered, and whether the range given at joining held: see `rangeHeld`. */
  noteWait(isHeld: boolean): void;
}

/** A wait in seconds. The range holds for 90 % of the visitors who are given one. */
export interface WaitRange {
  readonly lowSeconds: number;
  readonly middleSeconds: number;
  readonly highSeconds: number;
}

/** Modes of a room. */
export const roomModes = ["open", "paused", "draining"] as const;

/**
 * `open`: visitors enter as sessions become free. `paused`: no visitor enters. `draining`: no
 * visitor joins, and those who wait still enter.
 */
export type RoomMode = (typeof roomModes)[number];

/** Settings of an operator. Each overrides the policy until it is removed. */
export interface RoomOverride {
  readonly mode: RoomMode;
  /** Undefined: as the policy says. */
  readonly activeUsersMax: number | undefined;
  readonly entriesPerMinuteMax: number | undefined;
  /** An event that was opened manually. Undefined: events open by schedule. */
  readonly openedEvent: string | undefined;
}

/** Phases of a room's event. */
export const roomEventPhases = ["none", "preQueue", "open"] as const;

/** In `preQueue`, visitors arrive and wait, and none enters. */
export type RoomEventPhase = (typeof roomEventPhases)[number];

/** The status that the leader of a room publishes to every replica, once a second. */
export interface RoomStatus {
  readonly lineId: number;
  /** The store's second, counted from the beginning of the line. */
  readonly second: number;
  /** The next number that will be given out. */
  readonly nextNumber: number;
  /** Places below it were called, or were skipped as gone. */
  readonly calledPlace: number;
  /** Visitors who waited, were present and were not called, at the last count. */
  readonly waitingCount: number;
  /**
   * The same in each block of `liveBlockSize` places, from the block of `calledPlace` on. Counts of
   * a long line may be some seconds old: see `RoomLeader`.
   */
  readonly liveByBlock: readonly number[];
  /** One bit for each place of the first blocks, at most `frontBytesMax` bytes: see `aheadOf`. */
  readonly liveAtFront: Uint8Array;
  /** Sessions in use, including those of called visitors who have not entered yet. */
  readonly activeCount: number;
  /** Maximum number of sessions in use. */
  readonly activeCountMax: number;
  /** Entries per second while visitors wait. Undefined: no visitor can enter. */
  readonly entriesPerSecond: number | undefined;
  /** Number of ended sessions behind that estimate: its relative error is 1 / sqrt(count). */
  readonly entriesMeasuredCount: number;
  /** Part of waiting visitors who leave per second. */
  readonly abandonPerSecond: number;
  /** Measured mean length of a session, in seconds. Undefined until one has ended. */
  readonly sessionSeconds: number | undefined;
  /** Factor by which ranges are widened so that 90 % of them hold: see `estimate`. */
  readonly rangeFactor: number;
  /** Part of joining visitors who are turned away because of the estimated wait, 0 to 1. */
  readonly rejectRatio: number;
  /** Runs of places that were permuted, in order. At most `shufflesMax`. */
  readonly shuffles: readonly LineShuffle[];
  readonly phase: RoomEventPhase;
  /** When the next event opens, in seconds of the line. Undefined: none is known. */
  readonly opensSecond: number | undefined;
  /** Whether those who wait then get random places. */
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

/** Maximum number of runs in a status. Runs whose places were all called are left out. */
export const shufflesMax = 4;

/** Bits of the words of lines and sessions: see `RoomStore`. */
export const calledBit = 0x8000_0000;

/** Maximum of numbers from the called place on, including those of visitors who are gone. */
export const lineSpanMax = 8_388_608;

/** Places of one block of `RoomStatus.liveByBlock`. */
export const liveBlockSize = 1_024;

/** Maximum bytes of `RoomStatus.liveAtFront`: four blocks. */
export const frontBytesMax = (4 * liveBlockSize) / 8;
