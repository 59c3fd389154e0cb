import { assert } from "../../core/base/errors.js";
import type { LineEntry, RoomOverride } from "../../core/waiting-room/room-line.js";

/**
 * The lines of waiting rooms, as replicas share them. Three parts a room:
 *
 * - The head: the id of the line, when it began, the next number, the called place, who leads, what
 *   the leader published, what an operator set.
 * - The line: a 32-bit word a number, in chunks of `lineChunkSize` words. 0: nobody (never given
 *   out, left, or forgotten). Below 2^31: when the visitor was present last, as seconds of the line
 *   plus one. Otherwise, without its highest bit: the session that is the visitor's.
 * - Sessions: 8 bytes each. The lower 32 bits of the visitor's number; then when it was used last,
 *   as seconds of the line plus one, with the highest bit set while the visitor was called and has
 *   not entered. Both 0: the session is free.
 *
 * Seconds are those of the store's clock since the line began, as long as replicas beat. Where the
 * clock steps back, they go on from where they were; a silence longer than `silenceSecondsMax`
 * counts as that long. So an outage, or a clock that is set, takes nobody's place. Every method but
 * `apply` is atomic.
 *
 * Methods reject with ServiceError STORE_ codes: with STORE_UNAVAILABLE also where the room has no
 * line, which begins with the next beat. Each call but `turn` may be repeated.
 */
export interface RoomStore {
  /**
   * Once a second for each room: begins its line where there is none, takes or renews the lease of
   * its leader where nobody else holds it, and reads what the leader published.
   */
  beat(beat: RoomBeat, deadlineMs: number): Promise<RoomHead>;
  /**
   * What visitors of one replica did in one turn of the event loop, `roomVisitsMax` of them at
   * most. In this order: visits, renewals, `letIns`, leaves, and those who join.
   */
  turn(turn: RoomTurn, deadlineMs: number): Promise<RoomTurnAnswer>;
  /** Words of the line from a number on: at most `lineWordsMax`; what is not there is 0. */
  readLine(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array>;
  /** Pairs of words of sessions from an index on, at most `sessionsReadMax` sessions. */
  readSessions(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array>;
  /**
   * What the leader decided. Changes nothing where another term has begun, or where another step
   * was applied since the head that it was decided from, as when it comes late. A large one may be
   * applied in parts, one after the other, each of them whole.
   */
  apply(step: RoomStep, deadlineMs: number): Promise<RoomStepAnswer>;
  /** What an operator set; undefined takes all back. */
  override(room: string, override: RoomOverride | undefined, deadlineMs: number): Promise<void>;
  /** Removes a room with its line and its sessions. */
  forget(room: string, deadlineMs: number): Promise<void>;
}

/** Words of one chunk of a line. */
export const lineChunkSize = 1_048_576;

/** Words that one `readLine` answers at most. */
export const lineWordsMax = 262_144;

/** Sessions that one `readSessions` answers at most. */
export const sessionsReadMax = 65_536;

/** Sessions of one room at most. */
export const sessionsMax = 1_000_000;

/** Visitors of one `turn` at most: of all its lists, and those who join. */
export const roomVisitsMax = 512;

/** Entries of each list of one `apply` at most. */
export const stepEntriesMax = 4_096;

/** The longest time without a beat that counts as time of the line, in seconds. */
export const silenceSecondsMax = 10;

/** How long a room is kept that no replica beats for, in milliseconds: a week. */
export const roomKeptMs = 604_800_000;

/** Bytes that a leader publishes at most. */
export const statusBytesMax = 65_536;

/** A replica says that it is there, and asks how a room stands. */
export interface RoomBeat {
  readonly room: string;
  readonly replicaId: string;
  /** How long this replica leads without another beat; 0: it gives the lead up, and takes none. */
  readonly leaseMs: number;
  /** A random number that becomes the id of the line where there is none yet, below 2^32. */
  readonly freshLineId: number;
  /** 32 random bytes that become the room's secret where there is none yet. */
  readonly freshSecret: Buffer;
  /** Waits that ended in an entrance since the last beat. */
  readonly waits: RangeCounts;
}

/** A room, as it stands. */
export interface RoomHead {
  readonly lineId: number;
  /** When the line began, in milliseconds since 1970 by the store's clock. */
  readonly beganMs: number;
  /** Seconds of the line now, with fractions. */
  readonly second: number;
  readonly nextNumber: number;
  readonly calledPlace: number;
  /** Sums of `RoomBeat.waits`, of all replicas, since the line began. */
  readonly waits: RangeCounts;
  /** The term in which this replica leads; 0: another one does, or nobody. Terms grow. */
  readonly term: number;
  /** Who led last. */
  readonly leaderId: string;
  /** Signs tickets where no key is configured. */
  readonly secret: Buffer;
  /** What the leader published last, and in which second; undefined: nothing yet. */
  readonly published: { readonly bytes: Buffer; readonly second: number } | undefined;
  readonly override: RoomOverride | undefined;
}

/** What visitors did. */
export interface RoomTurn {
  readonly room: string;
  /** The line that the numbers below are of; visits of another one answer `gone`. */
  readonly lineId: number;
  /** Visitors who join. */
  readonly joinCount: number;
  /**
   * The most numbers from the called place on, those of visitors who are gone among them. Whoever
   * gets a spare session does not count.
   */
  readonly spanMax: number;
  /** A place whose visitor was not present for longer is gone. */
  readonly lostAfterSeconds: number;
  /** Visitors who ask for their place. */
  readonly visits: readonly number[];
  /** Sessions that are in use. */
  readonly renewals: readonly { readonly session: number; readonly number: number }[];
  /**
   * Visitors whom an operator lets in: each gets one of the extra sessions, or its own again. It is
   * called with it, and enters with its next visit.
   */
  readonly letIns: readonly number[];
  /** Visitors who go: their places, and the sessions that are theirs, also by `session` alone. */
  readonly leaves: readonly { readonly number: number; readonly session?: number }[];
}

/** How many waits ended in an entrance, and how many of them in the range that was announced. */
export interface RangeCounts {
  readonly endedCount: number;
  readonly heldCount: number;
}

/** What came of a turn. */
export interface RoomTurnAnswer {
  readonly lineId: number;
  readonly second: number;
  /** The first of the numbers given out, which follow each other; the rest found the line full. */
  readonly firstNumber: number;
  readonly joinedCount: number;
  /** Spare sessions that the first of them got at once, in their order. */
  readonly enteredSessions: readonly number[];
  /** In the order of the visits. */
  readonly entries: readonly LineEntry[];
  /** In the order of `letIns`; `waiting` where no extra session was left. */
  readonly letInEntries: readonly LineEntry[];
  /** In the order of the renewals: whether the session still exists and is that number's. */
  readonly renewed: readonly boolean[];
}

/** What a leader decided. */
export interface RoomStep {
  readonly room: string;
  /** Of `RoomHead.term`; the lease must still be held. */
  readonly term: number;
  readonly replicaId: string;
  readonly lineId: number;
  /** `RoomHead.published.second` that it was decided from; undefined: nothing was published. */
  readonly afterSecond: number | undefined;
  readonly lostAfterSeconds: number;
  /** Sessions to free, if they are exactly as they were read. */
  readonly frees: readonly {
    readonly session: number;
    readonly number: number;
    readonly word: number;
  }[];
  /**
   * Visitors to call, in the order of their places, each with the free session that it gets;
   * applied after the frees. Those who are gone are passed over. The calls end at the first visitor
   * who is there and whose session is not free (it was renewed since it was read): the called place
   * stops at its place.
   */
  readonly calls: readonly {
    readonly number: number;
    readonly place: number;
    readonly session: number;
  }[];
  /**
   * Free sessions that visitors may have who join while nobody waits; they replace what is left of
   * the last step's. Nobody waits while the next number is the called place: each one who joins
   * then moves both on. Each is listed once, and passed over where it is not free any more.
   */
  readonly spareSessions: readonly number[];
  /** Free sessions for those whom operators let in; they replace the last step's. */
  readonly extraSessions: readonly number[];
  /** Never moves back, nor beyond the next number. */
  readonly calledPlace: number;
  /** Chunks of the line below this number are not needed any more. */
  readonly forgottenBelow: number;
  readonly published: Buffer;
}

/** What came of a step; `outranked`: it changed nothing. */
export type RoomStepAnswer =
  /** @property calledCount visitors of `calls` who were there; the others' sessions stay free */
  | {
      readonly kind: "applied";
      readonly calledCount: number;
      readonly freedCount: number;
      /** As `RoomHead.published.second` will be. */
      readonly second: number;
    }
  | { readonly kind: "outranked" };

/** Numbers of one line are below it. */
export const numbersMax = 2 ** 48;

/** Fails for a turn that no caller may make. */
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

/** Fails for a step that no leader may decide. */
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
