import type { Server as HttpServer } from "node:http";
import type { Clock, Random } from "../core/clock.js";
import type { Admission } from "../decide/admission.js";
import { DecisionCounters } from "../decide/counters.js";
import { Decider, type DeciderEvent } from "../decide/decider.js";
import { ExchangeCounts } from "../decide/exchange-counts.js";
import { watchLoop } from "../decide/loop-watch.js";
import { Pressure } from "../decide/pressure.js";
import { ControlPlane } from "../rpc/control-plane.js";
import type { DecisionTracer } from "../rpc/decision-trace.js";
import { createExternalProcessorService } from "../rpc/ext-proc.js";
import { ExtProcCodec } from "../rpc/ext-proc-codec.js";
import { createHealthService, Health } from "../rpc/health.js";
import { createRateLimitService } from "../rpc/rls.js";
import { ResponseExtras } from "../rpc/rls-extras.js";
import type { Transport } from "../wire/transport.js";
import { openAdmission } from "./admission.js";
import type { Config } from "./config.js";
import { extrasOf, switchesOf } from "./decision-options.js";
import { sha256 } from "./digest.js";
import { bugTrace } from "./failure.js";
import { FleetLoopApp } from "./fleet-loop.js";
import { createHttpServer } from "./http.js";
import { LaneCounts } from "./lane-metrics.js";
import type { Logger } from "./logger.js";
import { createMetrics, type Metrics, type ProcessCounts } from "./metrics.js";
import type { OpenPolicies } from "./policies.js";
import type { SignalSources } from "./signal-sources.js";
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
  /** What Envoys tell and are told, for the control port. */
  readonly control: ControlPlane;
  /** What the fleet decides together. */
  readonly loop: FleetLoopApp;
  readonly httpServer: HttpServer;
  readonly metrics: Metrics;
  /** What statistics by the names of envoyproxy/ratelimit are read from. */
  readonly statsSources: StatsSources;
  readonly onBug: (thrown: unknown) => void;
  /** Resolves when this replica has its first shares, or nobody gave it any. */
  readonly settled: () => Promise<void>;
  /** Ends what runs by itself, and gives shares back. Never rejects. */
  readonly close: () => Promise<void>;
}

/** Connects policy, store, decisions, services and metrics. */
export function createCore(parts: CoreParts): Core {
  const { policies, opened } = parts;
  const counters = new DecisionCounters();
  const pressure = createPressure(parts);
  const decider = createDecider(parts, { counters, pressure });
  const exchanges = new ExchangeCounts();
  const laneCounts = new LaneCounts();
  const onBug = createBugReport(parts);
  const loop = new FleetLoopApp({ ...parts, policies: policies.feed, onBug });
  const opening = openAdmission({ ...parts, policies: policies.feed, decider, pressure, loop });
  loop.watch(opening.admission);
  const extras = new ResponseExtras(extrasOf(parts.config));
  const health = new Health();
  const control = new ControlPlane({ clock: parts.clock, random: parts.random });
  const made = { counters, pressure, decider, exchanges, laneCounts, extras, health, control };
  const { admission, signals } = opening;
  const shared = { ...made, admission, signals, loop, onBug };
  const metrics = createCoreMetrics(parts, shared);
  const httpServer = createHttpServer({
    ...shared,
    metrics,
    policies: policies.feed,
    storeKind: opened.kind,
    isStoreAway: () => opened.kind === "redis" && opened.isAway(),
  });
  const redisPools = () => (opened.kind === "redis" ? opened.pools() : []);
  const { clock } = parts;
  const stopWatch = watchLoop({ clock, pressure, onEvent: (event) => decider.noteEvent(event) });
  return {
    health,
    transport: createCoreTransport(parts, shared),
    control,
    loop,
    httpServer,
    metrics,
    statsSources: { counters, policies: policies.feed, redisPools },
    onBug,
    settled: opening.settled,
    close: () => {
      stopWatch();
      return Promise.all([opening.close(), loop.close()]).then(() => {});
    },
  };
}

/** What several parts of the core look at. */
interface Shared {
  readonly counters: DecisionCounters;
  readonly pressure: Pressure;
  readonly decider: Decider;
  readonly admission: Admission;
  readonly signals: SignalSources;
  readonly exchanges: ExchangeCounts;
  readonly laneCounts: LaneCounts;
  readonly extras: ResponseExtras;
  readonly health: Health;
  readonly control: ControlPlane;
  readonly loop: FleetLoopApp;
  readonly onBug: (thrown: unknown) => void;
}

function createDecider(
  { config, clock, random, logger, policies, opened, replicaCount }: CoreParts,
  { counters, pressure }: Pick<Shared, "counters" | "pressure">,
): Decider {
  return new Decider({
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
}

function createCoreTransport(
  { config, clock, random, tracer }: CoreParts,
  { decider, admission, counters, extras, exchanges, health, laneCounts, ...shared }: Shared,
): Transport {
  const codec = new ExtProcCodec(admission);
  return createTransport(config, {
    services: [
      createRateLimitService({ decider, clock, random, counters, extras, tracer }),
      createExternalProcessorService({ admission, codec, counts: exchanges }),
      createHealthService(health),
    ],
    clock,
    random,
    laneCounts,
    onBug: shared.onBug,
    isLate: () => shared.pressure.isLate(clock.monotonicMs()),
    onDropped: () => counters.countFailure("DEADLINE_PASSED"),
  });
}

function createCoreMetrics(
  { config, clock, policies, opened, processCounts, replicaCount, tlsStatus }: CoreParts,
  { counters, decider, pressure, laneCounts, admission, exchanges, ...shared }: Shared,
): Metrics {
  return createMetrics({
    counters,
    processCounts,
    policies: policies.feed,
    isDegraded: () => decider.isDegraded,
    overloadCause: () => decider.overloadCause,
    inFlightCount: () => pressure.inFlightCount,
    replicaCount,
    memoryKeyCount: () => (opened.kind === "memory" ? opened.store.keyCount : undefined),
    ...(tlsStatus === undefined ? {} : { tlsStatus }),
    ...(config.transport === "lane" ? { laneCounts } : {}),
    ...(policies.xdsStatus === undefined ? {} : { xdsStatus: policies.xdsStatus }),
    admission: {
      services: () => admission.services(),
      unknownCount: () => admission.unknownCount,
      nowMs: () => clock.monotonicMs(),
      exchanges,
    },
    signals: { sources: () => shared.signals.polled(), services: () => admission.services() },
    control: { plane: shared.control, nowMs: () => clock.monotonicMs() },
    fleet: () => shared.loop.status,
    storeKind: opened.kind,
    version: readVersion(),
  });
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
