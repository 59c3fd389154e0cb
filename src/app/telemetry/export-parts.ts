/** What became of what was sent. Plain integers, read when metrics are scraped. */
export interface ExportCounts {
  /** Messages that no collector took. */
  failedCount: number;
  /** Log lines that found the queue full. */
  droppedCount: number;
}

/** What a part of the SDK counts and tells. */
export interface ExportParts {
  readonly counts: ExportCounts;
  /** @param reason a status, or a system error's code; never a text of the collector */
  readonly onFailed: (reason: string) => void;
}

/** The event of a failure; log lines of it are not sent where they failed to be sent. */
export const failedEvent = "otlpExportFailed";
