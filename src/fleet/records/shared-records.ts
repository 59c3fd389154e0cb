import type { JsonObject } from "../../core/base/json.js";
import type {
  AuditText,
  ChangeOutcome,
  RecordChange,
  RecordKind,
  SharedRecord,
} from "../../store/coordination/record-store.js";

/** One entry of the audit log. */
export interface AuditRecord extends Omit<AuditText, "text"> {
  readonly value: JsonObject;
}

/**
 * Versioned records that all replicas of a store share, with an audit log of their changes. A
 * change reaches the other replicas within a second. Records are kept in the store of the limits
 * and in each replica's memory, and replicas restore them if the store loses them. With the
 * in-memory store, they live as long as the process.
 */
export interface SharedRecords {
  /** All records of a kind, as this replica knows them now. */
  list(kind: RecordKind): ReadonlyMap<string, SharedRecord>;
  /**
   * Changes a record and writes its audit entry, atomically. When the promise resolves, this
   * replica knows the change.
   *
   * @throws ServiceError STORE_ codes; it is then unknown whether the record was changed
   */
  change(change: RecordChange): Promise<ChangeOutcome>;
  /**
   * Writes an audit entry for an action that changes no record.
   *
   * @throws ServiceError STORE_ codes; it is then unknown whether the entry was written
   */
  note(audit: JsonObject): Promise<void>;
  /**
   * Returns the audit log, newest entries first.
   *
   * @param before entries with a smaller number only; Infinity: from the newest
   * @param countMax 1 to 1,000
   * @throws ServiceError STORE_ codes
   */
  audit(before: number, countMax: number): Promise<readonly AuditRecord[]>;
  /**
   * Resolves when everything is known that was stored when this was opened, or that others have
   * restored into an empty store. Never resolves if that fails.
   */
  known(): Promise<void>;
  /** Calls back after records of a kind have changed. The returned function unsubscribes. */
  onChange(listener: (kind: RecordKind) => void): () => void;
  /** Stops reading. */
  close(): void;
}
