import type { JsonObject } from "../../core/base/json.js";

/** What replicas know together because an operator said so, by kind. */
export const recordKinds = ["override", "gate", "policy"] as const;

/** One of them. */
export type RecordKind = (typeof recordKinds)[number];

/** The most records of each kind. */
export const recordsMax: Readonly<Record<RecordKind, number>> = {
  override: 100_000,
  gate: 1_000,
  policy: 50,
};

/** The longest record of each kind, as JSON in bytes of UTF-8. */
export const recordBytesMax: Readonly<Record<RecordKind, number>> = {
  override: 16_384,
  gate: 4_096,
  // A policy with all its texts: more of them would take the event loop for too long.
  policy: 1_572_864,
};

/** Entries of the audit log; the oldest ones leave. */
export const auditEntriesMax = 100_000;

/** The longest entry of the audit log, as JSON in bytes of UTF-8. */
export const auditBytesMax = 65_536;

/** What the name of a record may be. */
export const recordIdPattern = /^[a-z0-9][a-z0-9._:-]{0,127}$/;

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

/** One entry of the audit log. */
export interface AuditRecord {
  /** Counts all entries there ever were, from 1. */
  readonly number: number;
  /** By the store's clock, in milliseconds since 1970. */
  readonly epochMs: number;
  readonly value: JsonObject;
}

/**
 * Records that all replicas of a store share, each with a version, and a log of what was changed.
 * What one replica changes, the others know within a second. They live in the store that limits
 * count in and in each replica's memory: where the store loses them, replicas put them back. With
 * the embedded store they live as long as the process.
 */
export interface SharedRecords {
  /** All of a kind, as this replica knows them now. */
  list(kind: RecordKind): ReadonlyMap<string, SharedRecord>;
  /**
   * Changes a record and writes its audit entry, both or neither. This replica knows of it when the
   * answer comes.
   *
   * @throws ServiceError STORE_ codes; whether it was changed is then not known
   */
  change(change: RecordChange): Promise<ChangeOutcome>;
  /**
   * Writes an audit entry of something that is done to no record.
   *
   * @throws ServiceError STORE_ codes; whether it was written is then not known
   */
  note(audit: JsonObject): Promise<void>;
  /**
   * The audit log, the newest first.
   *
   * @param before entries with a smaller number only; Infinity: from the newest
   * @param countMax from 1 to 1,000
   * @throws ServiceError STORE_ codes
   */
  audit(before: number, countMax: number): Promise<readonly AuditRecord[]>;
  /**
   * Resolves when all is known that was stored when this was opened, or that others have put back
   * into an empty store; never where that fails.
   */
  known(): Promise<void>;
  /** Calls back after records of a kind have changed, until the answer is called. */
  onChange(listener: (kind: RecordKind) => void): () => void;
  /** Asks no more. */
  close(): void;
}
