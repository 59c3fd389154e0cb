/** Counts of failed and dropped data. Plain integers, read when metrics are scraped. */
export interface ExportCounts {
  /** Messages that no collector accepted. */
  failedCount: number;
  /** Log lines that were dropped because the queue was full. */
  droppedCount: number;
}

/** Counters and callback of a part of the SDK. */
export interface ExportParts {
  readonly counts: ExportCounts;
  /** @param reason a status, or a system error's code; never a text of the collector */
  readonly onFailed: (reason: string) => void;
}

/** The event of a failure. Its lines about the log export itself are not sent. */
export const failedEvent = "otlpExportFailed";
