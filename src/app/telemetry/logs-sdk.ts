import { type AnyValueMap, SeverityNumber } from "@opentelemetry/api-logs";
import { OTLPLogExporter as GrpcExporter } from "@opentelemetry/exporter-logs-otlp-grpc";
import { OTLPLogExporter as JsonExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPLogExporter as ProtobufExporter } from "@opentelemetry/exporter-logs-otlp-proto";
import {
  BatchLogRecordProcessor,
  LoggerProvider,
  type ReadableLogRecord,
} from "@opentelemetry/sdk-logs";
import { readVersion } from "../base/version.js";
import { type ExportParts, failedEvent } from "./export-parts.js";
import { type ExportSettings, observed } from "./exporter-sdk.js";
import { resourceOf } from "./resource-sdk.js";

/** Maximum number of log lines that wait or are being sent. More are dropped and counted. */
export const queuedLinesMax = 2_048;

/** Maximum length of a text in an exported line, in characters. The rest is cut. */
const textLengthMax = 8_192;

const exporters = {
  "http/protobuf": ProtobufExporter,
  "http/json": JsonExporter,
  grpc: GrpcExporter,
} as const;

const severities: ReadonlyMap<string, SeverityNumber> = new Map([
  ["trace", SeverityNumber.TRACE],
  ["debug", SeverityNumber.DEBUG],
  ["info", SeverityNumber.INFO],
  ["warn", SeverityNumber.WARN],
  ["error", SeverityNumber.ERROR],
  ["fatal", SeverityNumber.FATAL],
]);

/** Sends lines in batches, one second after the first line, and the rest when it is closed. */
export function createLogExport(
  { protocol, identity }: ExportSettings,
  { counts, onFailed }: ExportParts,
): {
  /** @param line JSON, as it was written: it no longer contains secrets */
  readonly take: (line: string) => void;
  close(): Promise<void>;
} {
  let queuedCount = 0;
  const exporter = observed<ReadableLogRecord[]>(new exporters[protocol](), (sent, failure) => {
    queuedCount -= sent.length;
    if (failure !== undefined) onFailed(failure);
  });
  const provider = new LoggerProvider({
    resource: resourceOf(identity),
    logRecordLimits: { attributeValueLengthLimit: textLengthMax },
    // This processor never drops lines itself, which would not be reported.
    processors: [new BatchLogRecordProcessor({ exporter, maxQueueSize: queuedLinesMax })],
  });
  const logger = provider.getLogger("headgate", readVersion());
  const take = (line: string): void => {
    if (queuedCount >= queuedLinesMax) {
      counts.droppedCount += 1;
      return;
    }
    const written: AnyValueMap = JSON.parse(line);
    const { level, event, "@timestamp": time, "@message": body, ...attributes } = written;
    // A line about lines that could not be sent would add to them.
    if (event === failedEvent && attributes["signal"] === "logs") return;
    queuedCount += 1;
    logger.emit({
      timestamp: new Date(String(time)),
      severityNumber: severities.get(String(level)) ?? SeverityNumber.UNSPECIFIED,
      severityText: String(level),
      eventName: String(event),
      body: String(body).slice(0, textLengthMax),
      attributes,
    });
  };
  return { take, close: () => provider.shutdown() };
}
