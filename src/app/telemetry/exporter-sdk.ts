import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { OtlpProtocol } from "../config/otlp-choice.js";
import type { ServiceIdentity } from "../config/tracing-choice.js";

/** Settings that all exports have. */
export interface ExportSettings {
  readonly protocol: OtlpProtocol;
  readonly identity: ServiceIdentity;
}

/** An exporter of the SDK. */
interface Exporter<Items> {
  export(items: Items, done: (result: ExportResult) => void): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * Reports the outcome of each message, which the SDK itself does not report.
 *
 * @param onDone undefined: it was accepted; otherwise the reason why not
 */
export function observed<Items>(
  exporter: Exporter<Items>,
  onDone: (items: Items, failure: string | undefined) => void,
): Exporter<Items> {
  return {
    export: (items, done) => {
      exporter.export(items, (result) => {
        const isTaken = result.code === ExportResultCode.SUCCESS;
        onDone(items, isTaken ? undefined : reasonOf(result.error));
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

/** Returns only the code: message and data of an error may be the collector's text. */
function reasonOf(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "number") return `status ${code}`;
  if (typeof code === "string" && /^[A-Z_]{1,40}$/.test(code)) return code;
  return "no answer in time, or none that can be read";
}
