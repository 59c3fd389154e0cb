/** What is found of settings that are each right by themselves; no text echoes a value. */
export interface ConfigFindings {
  /** What ends the start. */
  readonly problems: string[];
  /** What the user should know about settings that were accepted. */
  readonly notices: string[];
}
