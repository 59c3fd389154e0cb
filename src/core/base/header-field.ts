/** A header field to set. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
  /** Whether fields of that name stay beside it, as each cookie needs its own. Absent: replaced. */
  readonly isAppended?: true;
}
