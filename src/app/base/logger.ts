import { type DestinationStream, destination, type Logger as PinoLogger, pino } from "pino";

/** An event with a stable name and its facts. Never contains keys, values or credentials. */
export interface LogEvent {
  /** A stable name in camelCase, for searches and alerts. */
  readonly event: string;
  readonly [fact: string]: unknown;
}

/** Writes events with a sentence for people. */
export interface Logger {
  debug(event: LogEvent, sentence: string): void;
  info(event: LogEvent, sentence: string): void;
  warn(event: LogEvent, sentence: string): void;
  error(event: LogEvent, sentence: string): void;
}

/** The logger of a process. */
export interface ProcessLogger extends Logger {
  /** Also passes each line from now on to `take`, as JSON without redacted facts. */
  onLine(take: (line: string) => void): void;
}

/** Level and format of the log. */
interface LogSettings {
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "warning" | "error" | "fatal" | "panic";
  readonly logFormat: "auto" | "text" | "json";
}

/** Destination of the log. */
interface LogTarget {
  readonly isTerminal: boolean;
  /** File descriptor. */
  readonly fd: number;
}

/** A logger that writes nothing. */
export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
};

/** Facts that are redacted if an event contains them by mistake. */
const redactedFacts = ["password", "auth", "url", "token", "authorization"].flatMap((name) => [
  name,
  `*.${name}`,
]);

const levelNames: Readonly<Record<LogSettings["logLevel"], string>> = {
  trace: "trace",
  debug: "debug",
  info: "info",
  warn: "warn",
  warning: "warn",
  error: "error",
  fatal: "fatal",
  panic: "fatal",
};

/** Field names of the time and the sentence. Source: envoyproxy/ratelimit, LOG_FORMAT=json. */
const fieldNames = {
  messageKey: "@message",
  timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
} as const;

/** Creates a pino logger: one JSON object per line, or text for people on a terminal. */
export async function createLogger(config: LogSettings, target: LogTarget): Promise<ProcessLogger> {
  const isText = config.logFormat === "text" || (config.logFormat === "auto" && target.isTerminal);
  const stream = isText ? await textStream(target) : jsonStream(target);
  let takeLine: ((line: string) => void) | undefined;
  const write = (line: string): void => {
    stream.write(line);
    takeLine?.(line);
  };
  const logger: PinoLogger = pino(
    {
      level: levelNames[config.logLevel],
      base: null,
      ...fieldNames,
      formatters: { level: (level) => ({ level }) },
      redact: { paths: redactedFacts, censor: "[redacted]" },
    },
    { write },
  );
  return {
    debug: (event, sentence) => logger.debug(event, sentence),
    info: (event, sentence) => logger.info(event, sentence),
    warn: (event, sentence) => logger.warn(event, sentence),
    error: (event, sentence) => logger.error(event, sentence),
    onLine: (take) => {
      takeLine = take;
    },
  };
}

function jsonStream({ fd }: LogTarget): DestinationStream {
  const stream = destination({ fd, sync: true });
  // If the disk is full or the reader has gone, lines are lost, but the service goes on.
  stream.on("error", () => {});
  return stream;
}

/** Text logs are rare: their library is loaded only for them. */
async function textStream({ fd, isTerminal }: LogTarget): Promise<DestinationStream> {
  const { default: pretty } = await import("pino-pretty");
  const stream = pretty({
    destination: fd,
    sync: true,
    colorize: isTerminal,
    singleLine: true,
    ignore: "event",
    messageKey: "@message",
    timestampKey: "@timestamp",
    translateTime: "SYS:HH:MM:ss.l",
  });
  stream.on("error", () => {});
  return stream;
}
