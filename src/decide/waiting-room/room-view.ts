import type {
  LineEntry,
  RoomEventPhase,
  RoomLine,
  RoomOverride,
  WaitRange,
} from "../../core/waiting-room/room-line.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";

/** What became of requests that a room guards; also a metric's label. */
export const roomOutcomes = [
  /** Passed with a session. */
  "session",
  /** Entered. */
  "entered",
  /** Joined the line, and was shown its page. */
  "joined",
  /** Waits, and was shown its page. */
  "waiting",
  /** Turned away: the line is full, or the wait too long. */
  "full",
  /** Turned away by the rate limit in front of joining. */
  "joinLimited",
  /** Passed without a session, by `bypass`. */
  "bypassed",
  /** Passed or was kept out by `onStoreFailure`. */
  "storeFailure",
  /** Its cookie was not one of ours; it counts once more as what came of it then. */
  "forged",
] as const;

/** One of `roomOutcomes`. */
export type RoomOutcome = (typeof roomOutcomes)[number];

/** Upper bounds of the histogram of waits, in seconds. */
export const roomWaitBoundsSeconds: readonly number[] = [
  10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200,
];

/** A room as operators see it. */
export interface RoomView {
  readonly policy: RoomPolicy;
  /** Undefined status: the store has not answered yet. */
  readonly line: Pick<RoomLine, "status" | "isReachable" | "second">;
  readonly override: RoomOverride | undefined;
  /** The replica that leads; undefined: nobody known. */
  readonly leaderId: string | undefined;
  readonly isLeader: boolean;
  readonly phase: RoomEventPhase;
  /** What a visitor who joined now would be told, in seconds. */
  readonly estimate: WaitRange | undefined;
  /** Of this process, since it began. */
  readonly counts: ReadonlyMap<RoomOutcome, number>;
  /** Of this process: waits that ended in an entrance, and how many were in the range told. */
  readonly waits: {
    readonly endedCount: number;
    readonly inRangeCount: number;
    /** By `roomWaitBoundsSeconds`, each with those up to its bound; then all longer ones. */
    readonly counts: readonly number[];
    /** Sums in seconds: the middles of the ranges, and what the waits became. */
    readonly expectedSeconds: number;
    readonly actualSeconds: number;
  };
  /** The share of requests without a ticket that Envoys turn away by themselves. */
  readonly gateRejectRatio: number;
}

/** A ticket as `explain` shows it. Nothing in it tells who the visitor is. */
export interface TicketView {
  readonly room: string;
  readonly kind: "waiting" | "session";
  readonly number: number;
  /** Undefined: its line is over, or the store does not answer. */
  readonly entry: LineEntry | undefined;
  /** Present visitors before it; undefined for sessions and for those who are gone. */
  readonly aheadCount: number | undefined;
  readonly estimate: WaitRange | undefined;
  /** When it joined, or when the session was used last; milliseconds since 1970. */
  readonly atMs: number;
}

/** What operators do with rooms. Methods reject with ServiceError STORE_ codes. */
export interface RoomControls {
  rooms(): readonly RoomView[];
  room(name: string): RoomView | undefined;
  /** Asks the store how a room stands: `room` then answers with what other replicas have set. */
  refresh(room: string): Promise<void>;
  /**
   * Replaces what operators have set; undefined takes all back. When it resolves, this replica
   * knows it: `room` answers with it.
   */
  override(room: string, override: RoomOverride | undefined): Promise<void>;
  /** Lets a visitor in at once, past the order; what is wrong with the ticket is told. */
  letIn(room: string, ticket: string): Promise<"entered" | "gone" | "forged" | "full">;
  /** What a ticket's text says; undefined: it is not one of this room's. */
  explain(room: string, ticket: string): Promise<TicketView | undefined>;
}
