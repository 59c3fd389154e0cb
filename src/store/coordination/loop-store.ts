import type { SnapshotVersion } from "./snapshot-version.js";

/** One heartbeat of a replica that leads, or would. */
export interface LeaseBeat {
  /** Lower-case hexadecimal. */
  readonly replicaId: string;
  /** Grows with each heartbeat of a replica. */
  readonly number: number;
  /** The term that is to be renewed; 0: none. */
  readonly term: number;
  readonly leaseMs: number;
  /** The highest version of a snapshot that the replica has seen. */
  readonly seen: SnapshotVersion;
}

/** What a store answers to a heartbeat. */
export interface LeaseAnswer {
  /** 0: this replica does not lead. */
  readonly term: number;
  /** The version of the newest snapshot; undefined: there is none. */
  readonly newest: SnapshotVersion | undefined;
}

/** What one replica tells the leader. */
export interface ReportRecord {
  readonly replicaId: string;
  /** Grows with each report of a replica. */
  readonly number: number;
  /** The full report of the same replica that it differs from; undefined: it is a full one. */
  readonly baseNumber: number | undefined;
  readonly bytes: Buffer;
}

/** The newest report of a replica that a reader has, and the full one that it differs from. */
export interface KnownReport {
  readonly number: number;
  /** 0: none is at hand. */
  readonly baseNumber: number;
}

/** One replica's newest report, as the leader finds it. */
export interface FoundReport {
  readonly replicaId: string;
  readonly number: number;
  /** When it was written, on the clock of who reads it. */
  readonly atMs: number;
  /** Empty where there was no room, or where the reader has it. */
  readonly bytes: Buffer;
  /** The full report that it differs from, unless the reader has that, or nobody does. */
  readonly base: { readonly number: number; readonly bytes: Buffer } | undefined;
}

/** Where each report says which one it differs from: little-endian, 0 in a full one. */
export const baseNumberAtByte = 2;

/** A snapshot as the store has it. */
export interface FoundSnapshot {
  readonly rank: SnapshotVersion;
  /** When it was written, on the clock of who reads it. */
  readonly atMs: number;
  readonly bytes: Buffer;
}

/** How long the store remembers the last term when nobody leads, in milliseconds: a week. */
export const termKeptMs = 604_800_000;

/**
 * How long a snapshot is kept that nobody renews, in milliseconds: a day. It holds for seconds, but
 * who leads after an outage, or after all have stopped, begins with its limits.
 */
export const snapshotKeptMs = 86_400_000;

/** How long a report counts whose replica says nothing more, in milliseconds. */
export const reportKeptMs = 3_000;

/** The most bytes of reports that a leader reads at a time. */
export const gatherBytesMax = 16_777_216;

/** The most replicas whose reports a leader takes. */
export const gatheredMax = 1_000;

/**
 * Who leads a fleet, what its replicas tell the leader, and the snapshot that it makes of that.
 * Methods throw ServiceError with STORE_ codes; each call may be repeated.
 */
export interface LoopStore {
  /**
   * Renews the replica's lease, or takes the one that nobody has. A term is given once and grows;
   * it goes on above all that anybody has seen, should the store have lost what it was told. A
   * leader that is below what somebody has seen leads no more. A heartbeat that arrives after a
   * later one of its replica changes nothing.
   *
   * @param deadlineMs when nobody waits for the answer any more
   */
  beat(beat: LeaseBeat, deadlineMs: number): Promise<LeaseAnswer>;
  /** Nobody leads from now on if this replica did. */
  resign(replicaId: string, deadlineMs: number): Promise<void>;
  /**
   * Puts a replica's report in the place of the one before. A full one is kept beside those that
   * differ from it. False, and nothing is written, where the full one is not there.
   */
  tell(report: ReportRecord): Promise<boolean>;
  /**
   * The newest reports of all replicas that count. Those that the reader has, and those for which
   * there is no room in `gatherBytesMax`, have no bytes.
   *
   * @param known by replica, what the reader has
   */
  gather(known: ReadonlyMap<string, KnownReport>): Promise<readonly FoundReport[]>;
  /** This replica goes: its report counts no more. */
  withdraw(replicaId: string): Promise<void>;
  /** The newest snapshot there is. */
  fetch(): Promise<FoundSnapshot | undefined>;
  /**
   * Puts a snapshot in the place of the one before. False where the store knows another leader, or
   * a newer snapshot.
   *
   * @param untilMs end of the term: nothing is sent after it
   */
  publish(rank: SnapshotVersion, bytes: Buffer, untilMs: number): Promise<boolean>;
}
