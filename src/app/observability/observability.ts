import { AdminCallLog } from "../access/admin-call-log.js";
import { boundHttpByAddress } from "../base/address-bound.js";
import { openAll } from "../base/open-stack.js";
import type { OpenControlPlane } from "../control/control-plane.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { createMonitoringServer, type HttpParts } from "../ports/http.js";
import { exportMetrics, openMetricExport } from "../telemetry/otlp-export.js";
import { type OpenTracing, openTracing } from "../telemetry/tracing.js";
import { openStatsListeners, type StatsListeners } from "./stats-listeners.js";

/** Access of people and monitoring systems to this process, besides the HTTP port. */
export interface Observability {
  /** Undefined if decisions are not traced. */
  readonly tracing: OpenTracing | undefined;
  /** Log of calls. */
  readonly calls: AdminCallLog;
  readonly listeners: StatsListeners;
  /** Sends what is left to StatsD and to the collector of traces. */
  close(): Promise<void>;
}

interface ObservabilityParts extends Pick<Foundation, "policies" | "opened" | "access"> {
  readonly decisions: Decisions;
  readonly fleet: Fleet;
  readonly controlPlane: OpenControlPlane;
  readonly http: HttpParts;
}

/** Maximum connections of one address to the monitoring port: probes and scrapers need few. */
const monitoringPerAddressMax = 100;

/**
 * Opens traces, statistics and the ports that show them.
 *
 * @throws ServiceError LISTEN_FAILED; nothing is left open then
 */
export function openObservability(
  runtime: Runtime,
  { policies, opened, access, decisions, fleet, controlPlane, http }: ObservabilityParts,
): Promise<Observability> {
  const { metrics, clock, logger, refusedAt } = runtime;
  return openAll(async (stack) => {
    const calls = stack.keep(new AdminCallLog(clock, logger));
    const { tracing, metricExport } = stack.keep(await openTelemetry(runtime));
    metrics.add(exportMetrics({ metrics: metricExport, logs: runtime.logExport }));
    const monitoringServer = createMonitoringServer(http);
    boundHttpByAddress(monitoringServer, {
      perAddressMax: monitoringPerAddressMax,
      onRefused: refusedAt("monitoring"),
    });
    const { counters } = decisions;
    const { loop } = fleet;
    const listeners = stack.keep(
      await openStatsListeners({
        ...runtime,
        access,
        calls,
        monitoringServer,
        sources: { counters, policies: policies.feed, storePools: opened.pools },
        fleet: {
          plane: controlPlane.plane,
          loop: () => loop.status,
          lender: decisions.lender,
          nowMs: () => clock.monotonicMs(),
        },
      }),
    );
    return { tracing, calls, listeners, close: () => stack.close() };
  });
}

/** Opens exports to collectors while subsystems are open. The exports end at the same time. */
function openTelemetry(runtime: Runtime) {
  const { config } = runtime;
  return openAll(async (stack) => {
    const tracing = config.tracing && stack.keep(await openTracing(config.tracing, runtime));
    const metricExport = await openMetricExport(config.otlp, runtime);
    const close = async (): Promise<void> => {
      await Promise.all([tracing?.close(), metricExport?.close()]);
    };
    return { tracing, metricExport, close };
  });
}
