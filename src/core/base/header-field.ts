/** A header field to set. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
  /** Whether other fields of the same name are kept, as for cookies. Absent: they are replaced. */
  readonly isAppended?: true;
}
