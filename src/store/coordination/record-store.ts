import type { JsonObject } from "../../core/base/json.js";

/** Kinds of records that users create and all replicas share. `session`: sessions that ended. */
export const recordKinds = ["override", "gate", "policy", "session", "topUp"] as const;

/** One of `recordKinds`. */
export type RecordKind = (typeof recordKinds)[number];

/** Maximum number of records of each kind. */
export const recordsMax: Readonly<Record<RecordKind, number>> = {
  override: 100_000,
  gate: 1_000,
  policy: 50,
  session: 2_000,
  topUp: 2_000,
};

/** Maximum size of a record of each kind, as JSON in bytes of UTF-8. */
export const recordBytesMax: Readonly<Record<RecordKind, number>> = {
  override: 16_384,
  gate: 4_096,
  // A policy with all its files: a larger one would block the event loop for too long.
  policy: 1_572_864,
  session: 256,
  topUp: 16_384,
};

/** Maximum number of entries of the audit log. The oldest ones are removed. */
export const auditEntriesMax = 100_000;

/** Maximum size of an entry of the audit log, as JSON in bytes of UTF-8. */
export const auditBytesMax = 65_536;

/** Pattern of valid record ids. */
export const recordIdPattern = /^[a-z0-9][a-z0-9._:-]{0,127}$/;

/** Maximum number of removals a store remembers. A replica that missed more reads all again. */
export const goneRecordsMax = 5_000;

/** Maximum number of records in one page. */
export const pageRecordsMax = 1_000;

/** Maximum number of bytes of records, or of audit entries, in one page. */
export const pageBytesMax = 1_048_576;

/** The current state of a record. */
export interface SharedRecord {
  readonly id: string;
  /**
   * Increases with each change of any record of the kind. Starts at 1, or at the time when the
   * store was sealed, in milliseconds since 1970, so that it exceeds the versions of a lost store.
   */
  readonly version: number;
  readonly value: JsonObject;
}

/** A requested change of a record. */
export interface RecordChange {
  readonly kind: RecordKind;
  readonly id: string;
  /** Undefined: the record is removed. */
  readonly value: JsonObject | undefined;
  /** The version to replace. 0: the record must not exist. */
  readonly expectedVersion: number;
  /** The audit entry. Undefined: none, for example if the record has expired. */
  readonly audit: JsonObject | undefined;
}

/** The result of a change. */
export type ChangeOutcome =
  /** @property version of the record, or of its removal */
  | { readonly kind: "changed"; readonly version: number }
  /** @property version of the stored record; 0: there is none. Nothing was changed. */
  | { readonly kind: "conflict"; readonly version: number }
  /** The maximum number of records is reached. Nothing was changed. */
  | { readonly kind: "full" };

/** Which records a replica has seen. */
export interface SeenRecords {
  /** The state of the store that the replica knows. */
  readonly state: string;
  /** All changes of one kind up to this version are known. */
  readonly version: number;
}

/** A change, and the records that its author has seen. */
export interface StoreChange extends RecordChange {
  /** Hexadecimal. If calls may be repeated, a change with the same name is applied once. */
  readonly name: string;
  readonly seen: SeenRecords;
}

/** Changes of one kind, up to a bound. */
export type RecordsPage =
  | {
      readonly kind: "page";
      /** All changes up to this version are in this page or in earlier ones. */
      readonly version: number;
      /** Whether the reader must first forget everything that it knew. */
      readonly isAnew: boolean;
      /** The store does not remember all removals up to this version. */
      readonly floor: number;
      readonly records: readonly SharedRecord[];
      /** Removed records, and the versions of their removal. */
      readonly gone: readonly (readonly [id: string, version: number])[];
    }
  /** The store is in another state than the caller knows, or knows less than the caller. */
  | { readonly kind: "other"; readonly state: string };

/** An entry of the audit log as it is stored. */
export interface AuditText {
  /** Counts all entries ever written, from 1. */
  readonly number: number;
  /** Time of the entry on the store's clock, in milliseconds since 1970. */
  readonly epochMs: number;
  /** A JSON object. */
  readonly text: string;
}

/** A query for the entries of the audit log that follow those the caller knows. */
export interface AuditFollowing {
  /** Only entries with a larger number. */
  readonly since: number;
  /** The state of the store that the caller knows. In another state, it returns nothing. */
  readonly state: string;
  readonly countMax: number;
  readonly bytesMax: number;
}

/**
 * Records with versions, changed by compare and swap, and an audit log of the changes. The store
 * has a state: a name that differs once the store may have lost data. Methods throw ServiceError
 * with STORE_ codes; the requested change may have been made nevertheless.
 */
export interface RecordStore {
  /** Absent: the store loses no data while a replica lives that knows it. */
  readonly recovery?: RecordRecovery;
  /** Returns the state of the store; see `isWhole`. */
  state(): Promise<string>;
  /**
   * Returns the changes of a kind: at most `pageRecordsMax`, and at most `pageBytesMax` if the
   * store is remote. Undefined: there are none.
   */
  read(kind: RecordKind, seen: SeenRecords): Promise<RecordsPage | undefined>;
  /**
   * Changes a record and writes its audit entry, both or neither. Undefined: the store is not in
   * the state that the caller has seen, or knows less, and nothing was changed.
   */
  change(request: StoreChange): Promise<ChangeOutcome | undefined>;
  /** Writes an audit entry without a change. */
  note(audit: JsonObject): Promise<void>;
  /**
   * Reads the audit log, newest first, at most `pageBytesMax`.
   *
   * @param before only entries with a smaller number; Infinity: from the newest
   */
  audit(before: number, countMax: number): Promise<readonly AuditText[]>;
  /** Reads the newest entries that the caller does not know yet, newest first. */
  followAudit(following: AuditFollowing): Promise<readonly AuditText[]>;
}

/** A record that a store lacks, or its removal. */
export interface MissingRecord {
  readonly id: string;
  readonly version: number;
  /** Undefined: the record was removed. */
  readonly record: SharedRecord | undefined;
}

/** Records that a replica puts back into the store. */
export interface Restoration {
  /** In order of versions, so that no record is stored before another one that it names. */
  readonly missing: readonly MissingRecord[];
  /** The caller does not remember all removals up to this version. */
  readonly floor: number;
}

/** How a store that may lose records gets them back from replicas that know them. */
export interface RecordRecovery {
  /**
   * Puts back records that the store lacks or has only in an older version. From then on, the store
   * is not whole until it is sealed.
   */
  restore(
    kind: RecordKind,
    restoration: Restoration,
  ): Promise<{ readonly state: string; readonly restored: readonly SharedRecord[] }>;
  /**
   * Puts back entries of the audit log, given oldest first, and renumbers the entries. Returns how
   * many were missing.
   *
   * @param newestCount how many of the store's newest entries may be among those put back
   */
  restoreAudit(entries: readonly AuditText[], newestCount: number): Promise<number>;
  /**
   * Declares that the store has everything that the caller knows. Returns the store's next state;
   * undefined: it is not in the state given. Versions continue above those of any lost store.
   */
  seal(state: string): Promise<string | undefined>;
}

/** Reports whether the store has all its replicas know. Otherwise it is empty or being filled. */
export function isWhole(state: string): boolean {
  return state !== "" && !state.startsWith("~");
}
