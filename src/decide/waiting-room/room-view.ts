import type {
  LineEntry,
  RoomEventPhase,
  RoomLine,
  RoomOverride,
  WaitRange,
} from "../../core/waiting-room/room-line.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";

/** Outcomes of requests that a room guards; also values of a metric's label. */
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
  /** Turned away by the rate limit for joining. */
  "joinLimited",
  /** Passed without a session, by `bypass`. */
  "bypassed",
  /** Passed or was kept out by `onStoreFailure`. */
  "storeFailure",
  /** Its cookie was not issued by Headgate. Its final outcome is counted as well. */
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
  /** The replica that leads. Undefined: not known. */
  readonly leaderId: string | undefined;
  readonly isLeader: boolean;
  readonly phase: RoomEventPhase;
  /** The expected wait that a visitor who joins now is told, in seconds. */
  readonly estimate: WaitRange | undefined;
  /** In this process, since it started. */
  readonly counts: ReadonlyMap<RoomOutcome, number>;
  /** In this process: waits that ended with an entrance, and how many were in the range told. */
  readonly waits: {
    readonly endedCount: number;
    readonly inRangeCount: number;
    /** One count per bucket of `roomWaitBoundsSeconds`, then one of all longer waits. */
    readonly counts: readonly number[];
    /** Sums in seconds: the middles of the ranges, and the actual waits. */
    readonly expectedSeconds: number;
    readonly actualSeconds: number;
  };
  /** Fraction of requests without a ticket that Envoys turn away themselves. */
  readonly gateRejectRatio: number;
}

/** A ticket as `explain` shows it. It contains nothing that identifies the visitor. */
export interface TicketView {
  readonly room: string;
  readonly kind: "waiting" | "session";
  readonly number: number;
  /** Undefined: its line is over, or the store does not answer. */
  readonly entry: LineEntry | undefined;
  /** Present visitors before it. Undefined for sessions and for visitors who are gone. */
  readonly aheadCount: number | undefined;
  readonly estimate: WaitRange | undefined;
  /** When it joined, or when the session was last used, in milliseconds since 1970. */
  readonly atMs: number;
}

/** Operations on rooms for operators. Methods reject with ServiceError STORE_ codes. */
export interface RoomControls {
  rooms(): readonly RoomView[];
  room(name: string): RoomView | undefined;
  /** Reads the state of a room from the store: `room` then includes what other replicas set. */
  refresh(room: string): Promise<void>;
  /**
   * Replaces what operators have set; undefined removes it. When it resolves, this replica knows
   * the change, and `room` returns it.
   */
  override(room: string, override: RoomOverride | undefined): Promise<void>;
  /** Lets a visitor in at once, out of order. Reports what is wrong with the ticket. */
  letIn(room: string, ticket: string): Promise<"entered" | "gone" | "forged" | "full">;
  /** Returns what a ticket contains. Undefined: it is not a ticket of this room. */
  explain(room: string, ticket: string): Promise<TicketView | undefined>;
}
