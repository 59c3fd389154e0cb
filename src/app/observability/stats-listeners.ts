import type { Server } from "node:http";
import { mayAct } from "../../core/base/access-list.js";
import type { Clock } from "../../core/base/clock.js";
import { isServiceError } from "../../core/base/errors.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { AdminAccess } from "../access/admin-access.js";
import type { AdminCallLog } from "../access/admin-call-log.js";
import { type ListenAddress, listen } from "../base/listen.js";
import type { Logger } from "../base/logger.js";
import type { RenderedMetrics } from "../base/metrics.js";
import { type OpenStack, openAll } from "../base/open-stack.js";
import type { Config } from "../config/config.js";
import { isLoopbackHost } from "../config/safe-url.js";
import type { ScrapePortChoice } from "../config/stats-choice.js";
import { createReferenceMetrics } from "../metrics/reference-metrics.js";
import type { StatsSources } from "../metrics/stats.js";
import { StatsdReporter } from "../metrics/statsd.js";
import type { FleetPageParts } from "./debug-fleet.js";
import { createDebugServer, type MayProfile } from "./debug-http.js";
import { createGetServer, textPage } from "./get-server.js";

/** Ports for monitoring, besides the HTTP port. */
export interface StatsListeners {
  /** Undefined if there is no debug port. */
  readonly debugAddress: ListenAddress | undefined;
  /** Undefined without HEADGATE_MONITORING_ADDR. */
  readonly monitoringAddress: ListenAddress | undefined;
  /** Undefined if the series of envoyproxy/ratelimit are not served. */
  readonly prometheusAddress: ListenAddress | undefined;
  /** Sends what is left to StatsD and closes the ports, within ten seconds. */
  close(): Promise<void>;
}

interface StatsListenersParts {
  readonly config: Pick<
    Config,
    "stats" | "debugHost" | "debugPort" | "debugProfiles" | "monitoringAddress"
  >;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sources: StatsSources;
  readonly fleet: FleetPageParts;
  readonly monitoringServer: Server;
  readonly metrics: RenderedMetrics;
  /** Identifies operators. Undefined: there are none. */
  readonly access: AdminAccess | undefined;
  readonly calls: AdminCallLog;
  readonly onBug: (thrown: unknown) => void;
}

/** Maximum number of connections of a debug port, and of a port for scrapers. */
const connectionsMax = 100;

/** Maximum of the monitoring port, where scrapers must not keep probes out. */
const monitoringConnectionsMax = 1_000;

/**
 * Serves and sends statistics as configured. If the debug port is taken, only a warning is logged,
 * because the port is new to users who never asked for it.
 *
 * @throws ServiceError LISTEN_FAILED for HEADGATE_MONITORING_ADDR and PROMETHEUS_ADDR; nothing is
 *   left open then
 */
export function openStatsListeners(parts: StatsListenersParts): Promise<StatsListeners> {
  const { prometheus, statsd: choice } = parts.config.stats;
  return openAll(async (stack) => {
    const monitoringAddress = await openMonitoring(parts, stack);
    const prometheusAddress = prometheus && (await openPrometheus(prometheus, parts, stack));
    const debugAddress = await openDebug(parts, stack);
    const statsd = choice && new StatsdReporter({ ...parts, choice });
    statsd?.start();
    stack.keep({ close: () => statsd?.stop() });
    return { debugAddress, monitoringAddress, prometheusAddress, close: () => stack.close() };
  });
}

async function openMonitoring(
  { config, logger, monitoringServer: server }: StatsListenersParts,
  stack: OpenStack,
): Promise<ListenAddress | undefined> {
  const { monitoringAddress: place } = config;
  if (place === undefined) return undefined;
  const name = "HEADGATE_MONITORING_ADDR";
  const settings = { hostSetting: name, portSetting: name };
  const connectionsMax = monitoringConnectionsMax;
  const address = await listen(server, { ...place, ...settings, connectionsMax });
  keepServer(stack, server);
  logger.info({ event: "monitoringListening", address }, "Serving probes and metrics.");
  return address;
}

async function openPrometheus(
  { address, path, isMilliseconds, tags }: ScrapePortChoice,
  { sources, metrics: own, onBug, logger }: StatsListenersParts,
  stack: OpenStack,
): Promise<ListenAddress> {
  const metrics = createReferenceMetrics(sources, own, { isMilliseconds, tags });
  const server = createGetServer(async (ask) => {
    if (ask.path !== path) return textPage(httpStatuses.notFound, `Not found. Available: ${path}.`);
    return {
      status: httpStatuses.ok,
      contentType: metrics.contentType,
      body: await metrics.render(),
    };
  }, onBug);
  const settings = { hostSetting: "PROMETHEUS_ADDR", portSetting: "PROMETHEUS_ADDR" };
  const opened = await listen(server, { ...address, ...settings, connectionsMax });
  keepServer(stack, server);
  logger.info({ event: "prometheusListening", address: opened, path }, "Serving statistics.");
  return opened;
}

async function openDebug(
  parts: StatsListenersParts,
  stack: OpenStack,
): Promise<ListenAddress | undefined> {
  const { config, clock, logger, sources, fleet, onBug } = parts;
  const { debugHost: host, debugPort: port } = config;
  if (host === "") return undefined;
  const mayProfile = createMayProfile(parts);
  const server = createDebugServer({ sources, fleet, clock, mayProfile, onBug });
  const settings = { hostSetting: "DEBUG_HOST", portSetting: "DEBUG_PORT" };
  try {
    const address = await listen(server, { host, port, ...settings, connectionsMax });
    keepServer(stack, server);
    logger.info({ event: "debugListening", address }, "The debug port is listening.");
    if (!isLoopbackHost(host)) {
      const words =
        "The debug port can be reached from other machines: anyone who reaches it " +
        "sees the active limits.";
      logger.warn({ event: "debugExposed", address }, words);
    }
    return address;
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    const words = `The debug port is off: ${thrown.message}`;
    logger.warn({ event: "debugPortFailed", host, port }, words);
    return undefined;
  }
}

/** Allows profiles to operators of the admin API in all domains: a profile covers all domains. */
function createMayProfile({ config, access, calls }: StatsListenersParts): MayProfile | undefined {
  if (!config.debugProfiles || access === undefined) return undefined;
  return async ({ authorization, path: method }) => {
    const known = await access.authenticate({ authorization, certificateNames: [] });
    const principal = known.kind === "principal" ? known.principal : undefined;
    const logged = { method, caller: principal?.name, address: "" };
    const isAllowed = principal !== undefined && mayAct(principal, "operator", undefined);
    if (isAllowed) calls.noteLook(logged);
    else calls.noteRefused(logged, principal ? "permission_denied" : "unauthenticated");
    return isAllowed;
  };
}

function keepServer(stack: OpenStack, server: Server): void {
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  stack.keep({ close });
}
