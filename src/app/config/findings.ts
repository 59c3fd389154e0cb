/** Findings about combinations of valid settings. No text contains a value. */
export interface ConfigFindings {
  /** Problems that prevent the start. */
  readonly problems: string[];
  /** Notices to the user about accepted settings. */
  readonly notices: string[];
}
