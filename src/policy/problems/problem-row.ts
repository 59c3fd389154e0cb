/** Title of one kind of mistake, and what the user can do about it. */
export interface ProblemRow {
  readonly title: string;
  readonly remedy: string;
  /** Absent: an error. `either`: depends on the case. */
  readonly severity?: "warning" | "either";
}
