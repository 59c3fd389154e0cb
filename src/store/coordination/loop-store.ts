import type { SnapshotVersion } from "./snapshot-version.js";

/** One heartbeat of a replica that leads or is ready to lead. */
export interface LeaseBeat {
  /** Lower-case hexadecimal. */
  readonly replicaId: string;
  /** Increases with each heartbeat of a replica. */
  readonly number: number;
  /** The term to renew; 0: none. */
  readonly term: number;
  readonly leaseMs: number;
  /** The highest version of a snapshot that the replica has seen. */
  readonly seen: SnapshotVersion;
}

/** The store's answer to a heartbeat. */
export interface LeaseAnswer {
  /** 0: this replica does not lead. */
  readonly term: number;
  /** Version of the newest snapshot; undefined: there is none. */
  readonly newest: SnapshotVersion | undefined;
}

/** One replica's report to the leader. */
export interface ReportRecord {
  readonly replicaId: string;
  /** Increases with each report of a replica. */
  readonly number: number;
  /** Number of the replica's full report that this is a delta of. Undefined: it is full itself. */
  readonly baseNumber: number | undefined;
  readonly bytes: Buffer;
}

/** The newest report of a replica that the reader has, and the full report it is a delta of. */
export interface KnownReport {
  readonly number: number;
  /** Number of the full report; 0: the reader has none. */
  readonly baseNumber: number;
}

/** One replica's newest report, as the leader reads it. */
export interface FoundReport {
  readonly replicaId: string;
  readonly number: number;
  /** Time of writing, on the reader's clock. */
  readonly atMs: number;
  /** Empty if there was no room, or if the reader has the report. */
  readonly bytes: Buffer;
  /** The full report that this is a delta of, unless the reader has it or it is lost. */
  readonly base: { readonly number: number; readonly bytes: Buffer } | undefined;
}

/** Byte offset of the base number in a report: little-endian, 0 in a full report. */
export const baseNumberAtByte = 2;

/** A snapshot, as read from the store. */
export interface FoundSnapshot {
  readonly rank: SnapshotVersion;
  /** Time of writing, on the reader's clock. */
  readonly atMs: number;
  readonly bytes: Buffer;
}

/** How long the store remembers the last term without a leader, in milliseconds: a week. */
export const termKeptMs = 604_800_000;

/**
 * How long a snapshot is kept without a newer one, in milliseconds: a day. It applies for seconds,
 * but the first leader after an outage, or after all replicas stopped, starts from its limits.
 */
export const snapshotKeptMs = 86_400_000;

/** How long a report counts if its replica sends no further one, in milliseconds. */
export const reportKeptMs = 3_000;

/** Maximum number of bytes of reports that a leader reads at a time. */
export const gatherBytesMax = 16_777_216;

/** Maximum number of replicas whose reports a leader accepts. */
export const gatheredMax = 1_000;

/**
 * Leader election of a fleet, the replicas' reports to the leader, and the snapshot that the leader
 * creates from them. Methods throw ServiceError with STORE_ codes; each call may be repeated.
 */
export interface LoopStore {
  /**
   * Renews the replica's lease, or takes the lease if it is free. Each term is given once, and
   * terms increase. If the store has lost data, they continue above every term that a replica has
   * seen. A leader that ranks below what a replica has seen loses the lease. A heartbeat that
   * arrives after a later one of its replica changes nothing.
   *
   * @param deadlineMs time after which the caller no longer waits for the answer
   */
  beat(beat: LeaseBeat, deadlineMs: number): Promise<LeaseAnswer>;
  /** Gives up the lead, if this replica has it. */
  resign(replicaId: string, deadlineMs: number): Promise<void>;
  /**
   * Replaces a replica's report. Full reports are kept in addition to their deltas. Returns false
   * and writes nothing if the full report of a delta is missing.
   */
  tell(report: ReportRecord): Promise<boolean>;
  /**
   * Returns the newest reports of all replicas that are not too old. Reports that the reader has,
   * and those that do not fit into `gatherBytesMax`, have no bytes.
   *
   * @param known by replica, the reports that the reader has
   */
  gather(known: ReadonlyMap<string, KnownReport>): Promise<readonly FoundReport[]>;
  /** Removes the report of a replica that shuts down. */
  withdraw(replicaId: string): Promise<void>;
  /** Returns the newest snapshot, if there is one. */
  fetch(): Promise<FoundSnapshot | undefined>;
  /**
   * Replaces the snapshot. Returns false if the store knows another leader or a newer snapshot.
   *
   * @param untilMs end of the term: nothing is sent after it
   */
  publish(rank: SnapshotVersion, bytes: Buffer, untilMs: number): Promise<boolean>;
}
