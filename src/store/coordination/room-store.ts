import { assert } from "../../core/base/errors.js";
import type { LineEntry, RoomOverride } from "../../core/waiting-room/room-line.js";

/**
 * Lines of waiting rooms, shared by all replicas. Each room has three parts:
 *
 * - The head: the id of the line, its start, the next number, the called place, the leader, what
 *   the leader published, and the operator's override.
 * - The line: one 32-bit word per number, in chunks of `lineChunkSize` words. 0: no visitor (not
 *   given out, left, or forgotten). Below 2^31: when the visitor was last present, in seconds of
 *   the line plus one. Otherwise, without the highest bit: the index of the visitor's session.
 * - Sessions: 8 bytes each. The lower 32 bits of the visitor's number, then the time of last use in
 *   seconds of the line plus one. The highest bit of the time is set from the call until the
 *   visitor enters. Both 0: the session is free.
 *
 * Seconds of the line count on the store's clock from the start of the line while replicas send
 * beats. If the clock steps back, they continue from where they were. A silence longer than
 * `silenceSecondsMax` counts as that long. So neither an outage nor setting the clock costs a
 * visitor its place. Every method except `apply` is atomic.
 *
 * Methods reject with ServiceError STORE_ codes, and with STORE_UNAVAILABLE also if the room has no
 * line; the next beat starts one. Every call except `turn` may be repeated.
 */
export interface RoomStore {
  /**
   * Called once a second for each room. Starts the line if there is none, takes or renews the
   * leader's lease unless another replica holds it, and reads what the leader published.
   */
  beat(beat: RoomBeat, deadlineMs: number): Promise<RoomHead>;
  /**
   * Applies what at most `roomVisitsMax` visitors of one replica did in one turn of the event loop,
   * in this order: visits, renewals, `letIns`, leaves, joins.
   */
  turn(turn: RoomTurn, deadlineMs: number): Promise<RoomTurnAnswer>;
  /** Reads words of the line from a number on: at most `lineWordsMax`. Missing words are 0. */
  readLine(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array>;
  /** Reads two words per session from an index on, for at most `sessionsReadMax` sessions. */
  readSessions(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array>;
  /**
   * Applies what the leader decided. Changes nothing if another term has begun, or if another step
   * has been applied since the head that this one was decided from, for example because it is late.
   * A large step may be applied in parts, one after the other, each of them atomic.
   */
  apply(step: RoomStep, deadlineMs: number): Promise<RoomStepAnswer>;
  /** Stores an operator's override; undefined removes it. */
  override(room: string, override: RoomOverride | undefined, deadlineMs: number): Promise<void>;
  /** Removes a room with its line and its sessions. */
  forget(room: string, deadlineMs: number): Promise<void>;
}

/** Words of one chunk of a line. */
export const lineChunkSize = 1_048_576;

/** Maximum number of words that one `readLine` returns. */
export const lineWordsMax = 262_144;

/** Maximum number of sessions that one `readSessions` returns. */
export const sessionsReadMax = 65_536;

/** Maximum number of sessions of one room. */
export const sessionsMax = 1_000_000;

/** Maximum number of visitors of one `turn`: all its lists and the joins together. */
export const roomVisitsMax = 512;

/** Maximum number of entries in each list of one `apply`. */
export const stepEntriesMax = 4_096;

/** Maximum time without a beat that counts as time of the line, in seconds. */
export const silenceSecondsMax = 10;

/** How long a room is kept without a beat from any replica, in milliseconds: a week. */
export const roomKeptMs = 604_800_000;

/** Maximum number of bytes that a leader publishes. */
export const statusBytesMax = 65_536;

/** One heartbeat of a replica for one room. The answer is the state of the room. */
export interface RoomBeat {
  readonly room: string;
  readonly replicaId: string;
  /** How long this replica leads without another beat. 0: it gives up the lead and takes none. */
  readonly leaseMs: number;
  /** A random number below 2^32 that becomes the id of the line if there is no line yet. */
  readonly freshLineId: number;
  /** 32 random bytes that become the room's secret if there is none yet. */
  readonly freshSecret: Buffer;
  /** Waits that ended with an entrance since the last beat. */
  readonly waits: RangeCounts;
}

/** The current state of a room. */
export interface RoomHead {
  readonly lineId: number;
  /** When the line began, in milliseconds since 1970 by the store's clock. */
  readonly beganMs: number;
  /** Current time in seconds of the line, with fractions. */
  readonly second: number;
  readonly nextNumber: number;
  readonly calledPlace: number;
  /** Sums of `RoomBeat.waits` of all replicas since the line began. */
  readonly waits: RangeCounts;
  /** The term in which this replica leads. 0: another replica leads, or none. Terms increase. */
  readonly term: number;
  /** The replica that leads or led last. */
  readonly leaderId: string;
  /** Signs tickets if no key is configured. */
  readonly secret: Buffer;
  /** What the leader published last, and in which second. Undefined: nothing yet. */
  readonly published: { readonly bytes: Buffer; readonly second: number } | undefined;
  readonly override: RoomOverride | undefined;
}

/** What visitors did in one turn of the event loop. */
export interface RoomTurn {
  readonly room: string;
  /** The line of the numbers below. Visits for any other line are answered with `gone`. */
  readonly lineId: number;
  /** Number of visitors who join. */
  readonly joinCount: number;
  /**
   * Maximum count of numbers from the called place on, including those of visitors who are gone.
   * Visitors who get a spare session do not count.
   */
  readonly spanMax: number;
  /** A visitor who was last present longer ago than this is gone. */
  readonly lostAfterSeconds: number;
  /** Visitors who ask for their place. */
  readonly visits: readonly number[];
  /** Sessions in use. */
  readonly renewals: readonly { readonly session: number; readonly number: number }[];
  /**
   * Visitors whom an operator lets in. Each gets one of the extra sessions, or keeps its own. It is
   * called with that session and enters with its next visit.
   */
  readonly letIns: readonly number[];
  /** Visitors who leave. Ends their places and their sessions, also one that `session` names. */
  readonly leaves: readonly { readonly number: number; readonly session?: number }[];
}

/** How many waits ended with an entrance, and how many of those in the announced range. */
export interface RangeCounts {
  readonly endedCount: number;
  readonly heldCount: number;
}

/** The result of a turn. */
export interface RoomTurnAnswer {
  readonly lineId: number;
  readonly second: number;
  /** First of the `joinedCount` consecutive numbers given out. Other joins found the line full. */
  readonly firstNumber: number;
  readonly joinedCount: number;
  /** Spare sessions that the first of these visitors got at once, in their order. */
  readonly enteredSessions: readonly number[];
  /** In the order of the visits. */
  readonly entries: readonly LineEntry[];
  /** In the order of `letIns`; `waiting` if no extra session was left. */
  readonly letInEntries: readonly LineEntry[];
  /** In the order of the renewals: whether the session still exists and belongs to that number. */
  readonly renewed: readonly boolean[];
}

/** One decision of the leader about a room. */
export interface RoomStep {
  readonly room: string;
  /** From `RoomHead.term`. The lease must still be held. */
  readonly term: number;
  readonly replicaId: string;
  readonly lineId: number;
  /** The `RoomHead.published.second` it was decided from. Undefined: nothing was published. */
  readonly afterSecond: number | undefined;
  readonly lostAfterSeconds: number;
  /** Sessions to free if they have not changed since they were read. */
  readonly frees: readonly {
    readonly session: number;
    readonly number: number;
    readonly word: number;
  }[];
  /**
   * Visitors to call, in the order of their places, each with the free session that it gets.
   * Applied after the frees. Visitors who are gone are skipped. The calls end at the first present
   * visitor whose session is not free (it was renewed since it was read): the called place stops at
   * the place of that visitor.
   */
  readonly calls: readonly {
    readonly number: number;
    readonly place: number;
    readonly session: number;
  }[];
  /**
   * Free sessions for visitors who join while no visitor waits. They replace what is left of the
   * previous step's. No visitor waits while the next number equals the called place; each visitor
   * who joins then advances both. Each session is listed once, and skipped if it is no longer free.
   */
  readonly spareSessions: readonly number[];
  /** Free sessions for visitors whom operators let in. They replace those of the previous step. */
  readonly extraSessions: readonly number[];
  /** Moves neither back nor beyond the next number. */
  readonly calledPlace: number;
  /** Chunks of the line below this number are no longer needed. */
  readonly forgottenBelow: number;
  readonly published: Buffer;
}

/** The result of a step. `outranked`: it changed nothing. */
export type RoomStepAnswer =
  /** @property calledCount visitors of `calls` who were present; the others' sessions stay free */
  | {
      readonly kind: "applied";
      readonly calledCount: number;
      readonly freedCount: number;
      /** The next `RoomHead.published.second`. */
      readonly second: number;
    }
  | { readonly kind: "outranked" };

/** Exclusive upper bound of the numbers of one line. */
export const numbersMax = 2 ** 48;

/** Asserts that a turn is within the bounds. */
export function assertTurn({ joinCount, visits, renewals, letIns, leaves }: RoomTurn): void {
  const listed = visits.length + renewals.length + letIns.length + leaves.length;
  assert(joinCount >= 0 && joinCount + listed <= roomVisitsMax, "a turn of a room is bounded");
  const areSound =
    visits.every(isNumber) &&
    letIns.every(isNumber) &&
    renewals.every(isHeld) &&
    leaves.every(({ number, session = 0 }) => isHeld({ number, session }));
  assert(areSound, "numbers and sessions of a turn are in range");
}

/** Asserts that a step is within the bounds. */
export function assertStep(step: RoomStep): void {
  const { frees, calls, spareSessions, extraSessions, published } = step;
  const lists = [frees, calls, spareSessions, extraSessions];
  const isBounded = lists.every(({ length }) => length <= stepEntriesMax);
  assert(isBounded && published.length <= statusBytesMax, "a step of a room is bounded");
  const areSound =
    frees.every(isHeld) &&
    calls.every(isHeld) &&
    [spareSessions, extraSessions].every((list) => {
      return list.every(isSession) && new Set(list).size === list.length;
    });
  assert(areSound, "numbers and sessions of a step are in range, and listed once");
}

function isHeld({ number, session }: { readonly number: number; readonly session: number }) {
  return isNumber(number) && isSession(session);
}

function isNumber(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0 && number < numbersMax;
}

function isSession(session: number): boolean {
  return Number.isSafeInteger(session) && session >= 0 && session < sessionsMax;
}
