/** What one kind of mistake is called, and what the user does about it. */
export interface ProblemRow {
  readonly title: string;
  readonly remedy: string;
  /** Absent: an error. `either`: by the case. */
  readonly severity?: "warning" | "either";
}
