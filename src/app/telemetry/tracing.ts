import type { Clock } from "../../core/base/clock.js";
import type { DecisionTracer } from "../../rpc/grpc/decision-trace.js";
import type { Logger } from "../base/logger.js";
import type { TracingChoice } from "../config/tracing-choice.js";
import { createBySettings, endWithin } from "./otlp-export.js";

/** A tracer that can be closed. */
export interface OpenTracing {
  readonly tracer: DecisionTracer;
  /** Sends what is left, within `closeMsMax`. Never rejects. */
  close(): Promise<void>;
}

interface TracingParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Identifier of this replica, if the choice has none. */
  readonly replica: string;
}

/**
 * Opens a tracer. The libraries are loaded here, so that processes without tracing spend neither
 * memory nor time on them.
 *
 * @throws StartFailure for settings of OpenTelemetry that its libraries refuse
 */
export async function openTracing(
  choice: TracingChoice,
  { clock, logger, replica: serviceInstanceId }: TracingParts,
): Promise<OpenTracing> {
  const { createTracing } = await import("./tracing-sdk.js");
  const { protocol, serviceName } = choice;
  const tracing = createBySettings(() => createTracing({ serviceInstanceId, ...choice }));
  logger.info({ event: "tracing", protocol, serviceName }, "Tracing of decisions is on.");
  return { tracer: tracing.tracer, close: () => endWithin(clock, tracing) };
}
