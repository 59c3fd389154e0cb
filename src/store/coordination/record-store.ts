import type { JsonObject } from "../../core/base/json.js";

/** What replicas know together because a user said so, by kind; sessions are those that ended. */
export const recordKinds = ["override", "gate", "policy", "session", "topUp"] as const;

/** One of them. */
export type RecordKind = (typeof recordKinds)[number];

/** The most records of each kind. */
export const recordsMax: Readonly<Record<RecordKind, number>> = {
  override: 100_000,
  gate: 1_000,
  policy: 50,
  session: 2_000,
  topUp: 2_000,
};

/** The longest record of each kind, as JSON in bytes of UTF-8. */
export const recordBytesMax: Readonly<Record<RecordKind, number>> = {
  override: 16_384,
  gate: 4_096,
  // A policy with all its texts: more of them would take the event loop for too long.
  policy: 1_572_864,
  session: 256,
  topUp: 16_384,
};

/** Entries of the audit log; the oldest ones leave. */
export const auditEntriesMax = 100_000;

/** The longest entry of the audit log, as JSON in bytes of UTF-8. */
export const auditBytesMax = 65_536;

/** What the name of a record may be. */
export const recordIdPattern = /^[a-z0-9][a-z0-9._:-]{0,127}$/;

/** Removed records that a store remembers: a replica that has missed more reads all anew. */
export const goneRecordsMax = 5_000;

/** The most records that one page brings. */
export const pageRecordsMax = 1_000;

/** The most bytes of records, or of audit entries, that one page brings. */
export const pageBytesMax = 1_048_576;

/** A record as it is now. */
export interface SharedRecord {
  readonly id: string;
  /**
   * Grows with each change of any record of the kind: from 1, or from the time in milliseconds
   * since 1970 at which the store was begun, so that it grows beyond what a lost store had.
   */
  readonly version: number;
  readonly value: JsonObject;
}

/** A change that somebody asks for. */
export interface RecordChange {
  readonly kind: RecordKind;
  readonly id: string;
  /** Undefined: it is taken away. */
  readonly value: JsonObject | undefined;
  /** The version that is replaced; 0: there must be none. */
  readonly expectedVersion: number;
  /** What the audit log says of it; undefined: nothing, as where time alone has ended something. */
  readonly audit: JsonObject | undefined;
}

/** What came of a change. */
export type ChangeOutcome =
  /** @property version of the record, or of its taking away */
  | { readonly kind: "changed"; readonly version: number }
  /** @property version that there is; 0: none. Nothing was changed. */
  | { readonly kind: "conflict"; readonly version: number }
  /** There are as many as there may be. Nothing was changed. */
  | { readonly kind: "full" };

/** Which records a replica has seen. */
export interface SeenRecords {
  /** The state of the store that it knows. */
  readonly state: string;
  /** Of one kind: all changes up to this one are known. */
  readonly version: number;
}

/** A change with what its author knows. */
export interface StoreChange extends RecordChange {
  /** Hexadecimal. Where calls may be repeated, the same change again, by its name, is one. */
  readonly name: string;
  readonly seen: SeenRecords;
}

/** What has changed in one kind, up to a bound. */
export type RecordsPage =
  | {
      readonly kind: "page";
      /** All changes up to this one are in it, or were in those before. */
      readonly version: number;
      /** Whether all that was known before is to be forgotten. */
      readonly isAnew: boolean;
      /** Up to this version, what was taken away is not remembered. */
      readonly floor: number;
      readonly records: readonly SharedRecord[];
      /** What was taken away, and at which versions. */
      readonly gone: readonly (readonly [id: string, version: number])[];
    }
  /** The store is not the one that was asked about, or it knows less. */
  | { readonly kind: "other"; readonly state: string };

/** An entry of the audit log as it is stored. */
export interface AuditText {
  /** Counts all entries there ever were, from 1. */
  readonly number: number;
  /** By the store's clock, in milliseconds since 1970. */
  readonly epochMs: number;
  /** A JSON object. */
  readonly text: string;
}

/** Which entries of the audit log follow those that are known. */
export interface AuditFollowing {
  /** Entries with a larger number only. */
  readonly since: number;
  /** The state of the store that is known: nothing is answered by another one. */
  readonly state: string;
  readonly countMax: number;
  readonly bytesMax: number;
}

/**
 * Records with versions, changed by compare and swap, and a log of what was changed. The store has
 * a state: a name that is another one once it may have lost something. Methods throw ServiceError
 * with STORE_ codes; what was asked may be done then.
 */
export interface RecordStore {
  /** Absent: while a replica lives that knows what was stored, the store loses nothing of it. */
  readonly recovery?: RecordRecovery;
  /** The state of the store; see `isWhole`. */
  state(): Promise<string>;
  /**
   * What is new in a kind: at most `pageRecordsMax`, and `pageBytesMax` where it is far away;
   * undefined: nothing.
   */
  read(kind: RecordKind, seen: SeenRecords): Promise<RecordsPage | undefined>;
  /**
   * Changes a record and writes its audit entry, both or neither. Undefined: the store is not the
   * one that was seen, and nothing was changed.
   */
  change(request: StoreChange): Promise<ChangeOutcome | undefined>;
  /** Writes an audit entry alone. */
  note(audit: JsonObject): Promise<void>;
  /**
   * The audit log, the newest first, at most `pageBytesMax`.
   *
   * @param before entries with a smaller number only; Infinity: from the newest
   */
  audit(before: number, countMax: number): Promise<readonly AuditText[]>;
  /** The newest entries that are not known yet, the newest first. */
  followAudit(following: AuditFollowing): Promise<readonly AuditText[]>;
}

/** A record that a store lacks, or its removal. */
export interface MissingRecord {
  readonly id: string;
  readonly version: number;
  /** Undefined: it was taken away. */
  readonly record: SharedRecord | undefined;
}

/** Records that somebody puts back. */
export interface Restoration {
  /** By version, so that nothing stands in the store before what it names. */
  readonly missing: readonly MissingRecord[];
  /** Up to this version, the caller has forgotten what was taken away. */
  readonly floor: number;
}

/** How a store that may lose records gets them back from replicas that know them. */
export interface RecordRecovery {
  /**
   * Puts back what the store has not, or only in an older version. The store is not whole from now
   * on, until it is sealed.
   */
  restore(
    kind: RecordKind,
    restoration: Restoration,
  ): Promise<{ readonly state: string; readonly restored: readonly SharedRecord[] }>;
  /**
   * Puts back entries of the audit log, the oldest first; all are numbered anew then. Answers how
   * many were missing.
   *
   * @param newestCount of the store's entries, how many may be among those that are put back
   */
  restoreAudit(entries: readonly AuditText[], newestCount: number): Promise<number>;
  /**
   * Says that the store has all that the caller knows. Answers its next state; undefined: it is not
   * in the one that the caller knows. Versions go on above those of any store that was lost.
   */
  seal(state: string): Promise<string | undefined>;
}

/** Whether the store has all that its replicas know: one with another state is empty or filled. */
export function isWhole(state: string): boolean {
  return state !== "" && !state.startsWith("~");
}
