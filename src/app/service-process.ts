import { systemClock, systemRandom } from "../host/clock.js";
import { type App, startApp } from "./app.js";
import { bugTrace, exitCodes, StartFailure } from "./base/failure.js";
import type { Logger, ProcessLogger } from "./base/logger.js";
import { ownMemory } from "./base/memory-watch.js";
import type { Config } from "./config/config.js";
import { type OpenExport, openLogExport } from "./telemetry/otlp-export.js";

/** Signals that stop the service. Source: envoyproxy/ratelimit drains on the same three. */
const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * Whether V8 keeps the garbage of the start, a third of the heap, while the process idles, as that
 * of Node 22 and later does. It is collected before calls come, because that would delay them.
 */
const leavesGarbage = Number.parseInt(process.versions.v8, 10) >= 12;

interface ServiceProcessParts {
  readonly logger: ProcessLogger;
  /** Writes a text for people that does not fit the log. */
  readonly complain: (text: string) => void;
}

/**
 * Runs the service until a signal stops it, and returns the exit code. The first signal drains, the
 * second one ends the process at once.
 */
export async function runServiceProcess(
  config: Config,
  { logger, complain }: ServiceProcessParts,
): Promise<number> {
  exitOnBug(logger);
  // Until a port listens, nothing else keeps the process alive during waits.
  const alive = setInterval(() => {}, 60_000);
  const replica = systemRandom.id();
  let logExport: OpenExport | undefined;
  try {
    logExport = await openLogExport(config.otlp, { clock: systemClock, logger, replica });
    const signal = nextSignal(logger);
    const beforeServing = leavesGarbage ? ownMemory.collect : undefined;
    const started = startApp(config, { logger, replica, logExport, beforeServing });
    const first = await Promise.race([started, signal]);
    if (typeof first === "string") {
      // The service stops before it serves: no caller waits for a response, so nothing is drained.
      void started.catch(() => {});
      return exitCodes.ok;
    }
    return await closeAfter(signal, first);
  } catch (thrown) {
    if (!(thrown instanceof StartFailure)) throw thrown;
    complain(thrown.message);
    return thrown.exitCode;
  } finally {
    await logExport?.close();
    clearInterval(alive);
  }
}

async function closeAfter(signal: Promise<string>, app: App): Promise<number> {
  // Ctrl-C comes from a person at a terminal, who waits; no load balancer is watching then.
  const isClean = (await signal) === "SIGINT" ? await app.close(0) : await app.close();
  return isClean ? exitCodes.ok : exitCodes.failure;
}

/** Resolves with the first signal. A second one ends the process without waiting for anything. */
function nextSignal(logger: Logger): Promise<string> {
  return new Promise((resolve) => {
    let isStopping = false;
    for (const signal of stopSignals) {
      process.on(signal, () => {
        if (isStopping) {
          logger.warn({ event: "stoppedAtOnce", signal }, "Second signal: stopping at once.");
          process.exit(exitCodes.failure);
        }
        isStopping = true;
        logger.info({ event: "signal", signal }, "Received a signal to stop.");
        resolve(signal);
      });
    }
  });
}

/** Ends the process on an uncaught error: it is a bug, and the state that it left is unknown. */
function exitOnBug(logger: Logger): void {
  const exit = (thrown: unknown): void => {
    logger.error({ event: "crash", ...bugTrace(thrown) }, "Internal error; the process ends.");
    process.exit(exitCodes.failure);
  };
  process.on("uncaughtException", exit);
  process.on("unhandledRejection", exit);
}
