import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { OtlpProtocol } from "../config/otlp-choice.js";
import type { ServiceIdentity } from "../config/tracing-choice.js";

/** What is common to what is sent. */
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
 * Tells what became of each message: the SDK itself tells nobody.
 *
 * @param onDone undefined: it was taken; otherwise why not
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

/** Its message and its data may be the collector's text: the code is enough. */
function reasonOf(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "number") return `status ${code}`;
  if (typeof code === "string" && /^[A-Z_]{1,40}$/.test(code)) return code;
  return "no answer in time, or none that can be read";
}
