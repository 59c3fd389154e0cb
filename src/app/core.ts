import type { Server as HttpServer } from "node:http";
import type { Clock, Random } from "../core/clock.js";
import { DecisionCounters } from "../decide/counters.js";
import { Decider, type DeciderEvent } from "../decide/decider.js";
import { watchLoop } from "../decide/loop-watch.js";
import { Pressure } from "../decide/pressure.js";
import type { DecisionTracer } from "../rpc/decision-trace.js";
import { createHealthService, Health } from "../rpc/health.js";
import { createRateLimitService } from "../rpc/rls.js";
import { ResponseExtras } from "../rpc/rls-extras.js";
import type { Transport } from "../wire/transport.js";
import type { Config } from "./config.js";
import { extrasOf, switchesOf } from "./decision-options.js";
import { sha256 } from "./digest.js";
import { bugTrace } from "./failure.js";
import { createHttpServer } from "./http.js";
import { LaneCounts } from "./lane-metrics.js";
import type { Logger } from "./logger.js";
import { createMetrics, type Metrics, type ProcessCounts } from "./metrics.js";
import type { OpenPolicies } from "./policies.js";
import type { StatsSources } from "./stats.js";
import { type OpenStore, openLocalStore } from "./store.js";
import { remedyOf } from "./store-remedies.js";
import type { TlsStatus } from "./tls.js";
import { createTransport } from "./transport.js";
import { readVersion } from "./version.js";

/** What a core is made of. */
export interface CoreParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly policies: OpenPolicies;
  readonly opened: OpenStore;
  readonly processCounts: ProcessCounts;
  readonly replicaCount: () => number;
  /** Absent where decisions are not traced. */
  readonly tracer?: DecisionTracer;
  /** Absent where gRPC is served in plaintext. */
  readonly tlsStatus?: () => TlsStatus;
}

/** The service's parts, connected, listening on nothing yet. */
export interface Core {
  readonly health: Health;
  readonly transport: Transport;
  readonly httpServer: HttpServer;
  readonly metrics: Metrics;
  /** What statistics by the names of envoyproxy/ratelimit are read from. */
  readonly statsSources: StatsSources;
  readonly onBug: (thrown: unknown) => void;
  /** Ends what runs by itself. */
  readonly close: () => void;
}

/** Connects policy, store, decisions, services and metrics. */
export function createCore(parts: CoreParts): Core {
  const { config, clock, random, logger, policies, opened, processCounts, replicaCount } = parts;
  const counters = new DecisionCounters();
  const pressure = createPressure(parts);
  const decider = new Decider({
    policies: policies.feed,
    store: opened.store,
    createLocalStore: () => openLocalStore(config, { clock, random }),
    clock,
    counters,
    pressure,
    storeBudgetMs: config.storeBudgetMs,
    newKeysPerSecondMax: config.newKeysPerSecondMax,
    switches: switchesOf(config),
    nearLimitRatio: config.nearLimitRatio,
    digest: sha256,
    replicaCount,
    onEvent: (event) => logDeciderEvent(event, logger),
  });
  const close = watchLoop({ clock, pressure, onEvent: (event) => decider.noteEvent(event) });
  const onBug = createBugReport(parts);
  const laneCounts = new LaneCounts();
  const metrics = createMetrics({
    counters,
    processCounts,
    policies: policies.feed,
    isDegraded: () => decider.isDegraded,
    overloadCause: () => decider.overloadCause,
    inFlightCount: () => pressure.inFlightCount,
    replicaCount,
    memoryKeyCount: () => (opened.kind === "memory" ? opened.store.keyCount : undefined),
    ...(parts.tlsStatus === undefined ? {} : { tlsStatus: parts.tlsStatus }),
    ...(config.transport === "lane" ? { laneCounts } : {}),
    ...(policies.xdsStatus === undefined ? {} : { xdsStatus: policies.xdsStatus }),
    storeKind: opened.kind,
    version: readVersion(),
  });
  const health = new Health();
  const extras = new ResponseExtras(extrasOf(config));
  const storeKind = opened.kind;
  const transport = createTransport(config, {
    services: [
      createRateLimitService({ decider, clock, random, counters, extras, tracer: parts.tracer }),
      createHealthService(health),
    ],
    clock,
    random,
    laneCounts,
    onBug,
    isLate: () => pressure.isLate(clock.monotonicMs()),
    onDropped: () => counters.countFailure("DEADLINE_PASSED"),
  });
  const isStoreAway = (): boolean => opened.kind === "redis" && opened.isAway();
  const httpParts = {
    extras,
    decider,
    counters,
    health,
    metrics,
    policies: policies.feed,
    storeKind,
    isStoreAway,
    onBug,
  };
  const redisPools = () => (opened.kind === "redis" ? opened.pools() : []);
  const statsSources = { counters, policies: policies.feed, redisPools };
  const httpServer = createHttpServer(httpParts);
  return { health, transport, httpServer, metrics, statsSources, onBug, close };
}

function createPressure({ config, opened }: CoreParts): Pressure {
  const { loopDelayMsMax, requestsInFlightMax } = config;
  // An embedded store answers as fast as any fallback: to pass it by would only cost exactness.
  const asksStoreWhenLate = opened.kind === "memory";
  return new Pressure({ loopDelayMsMax, requestsInFlightMax, asksStoreWhenLate });
}

/** Least time between two reports of bugs: a caller that found one may repeat it at full speed. */
const bugReportMsMin = 1_000;

/** Counts every bug and logs where it happened, within `bugReportMsMin` once. */
function createBugReport({ clock, logger, processCounts }: CoreParts): (thrown: unknown) => void {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return (thrown) => {
    processCounts.bugCount += 1;
    const nowMs = clock.monotonicMs();
    if (nowMs < quietUntilMs) return;
    quietUntilMs = nowMs + bugReportMsMin;
    logger.error({ event: "bug", ...bugTrace(thrown) }, "A call failed by a fault of ours.");
  };
}

/** Changes are logged, single failures only counted: an outage has thousands of them. */
function logDeciderEvent(event: DeciderEvent, logger: Logger): void {
  if (event.kind === "circuitOpened") {
    logger.warn(
      { event: event.kind, code: event.code, remedy: remedyOf(event.code) },
      "The store fails: limits answer by their on_store_failure, and single probes look for it.",
    );
  } else if (event.kind === "circuitClosed") {
    logger.info({ event: event.kind }, "The store answers again and decides.");
  } else if (event.kind === "overloadBegan") {
    logger.warn(
      { event: event.kind, cause: event.cause },
      "More work than can be done in time: limits answer by their on_store_failure meanwhile.",
    );
  } else if (event.kind === "overloadEnded") {
    logger.info({ event: event.kind }, "No overload for 10 s.");
  }
}
