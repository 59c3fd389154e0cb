import type { Clock, Random } from "../../core/base/clock.js";
import type { DecisionTracer } from "../../rpc/grpc/decision-trace.js";
import type { Logger } from "../base/logger.js";
import type { TracingChoice } from "../config/tracing-choice.js";

/** A tracer, and its end. */
export interface OpenTracing {
  readonly tracer: DecisionTracer;
  /** Sends what is left, within `closeMsMax`; never rejects. */
  close(): Promise<void>;
}

interface TracingParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** How long the last spans may take, in milliseconds. */
export const closeMsMax = 5_000;

/**
 * Opens a tracer. The libraries are loaded here and now: whoever does not trace pays neither their
 * memory nor their time.
 */
export async function openTracing(
  choice: TracingChoice,
  { clock, random, logger }: TracingParts,
): Promise<OpenTracing> {
  const { createTracing } = await import("./tracing-sdk.js");
  const { protocol, serviceName } = choice;
  const instanceId = choice.serviceInstanceId ?? random.id();
  const tracing = createTracing({ ...choice, serviceInstanceId: instanceId });
  logger.info({ event: "tracing", protocol, serviceName }, "Tracing of decisions is on.");
  return {
    tracer: tracing.tracer,
    close: () =>
      new Promise((resolve) => {
        const cancel = clock.schedule(closeMsMax, resolve);
        // A collector that is away must not hold up the end, and nobody else would hear of it.
        const end = (): void => {
          cancel();
          resolve();
        };
        tracing.close().then(end, end);
      }),
  };
}
