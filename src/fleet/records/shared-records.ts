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
