import type { Server as HttpServer } from "node:http";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { LogInterval } from "../../core/base/log-interval.js";
import type { Admission } from "../../decide/admission/admission.js";
import { ExchangeCounts } from "../../decide/admission/exchange-counts.js";
import { watchLoop } from "../../decide/admission/loop-watch.js";
import { DecisionSampler } from "../../decide/inspect/decision-sampler.js";
import type { QuotaRegistry } from "../../decide/quota/quota-registry.js";
import { DecisionCounters } from "../../decide/rate-limit/counters.js";
import { Decider } from "../../decide/rate-limit/decider.js";
import { Pressure, type PressureEvent } from "../../decide/rate-limit/pressure.js";
import type { RefusalLog } from "../../decide/rate-limit/refusal-log.js";
import { shadowObserver } from "../../decide/shadow/shadow.js";
import { ControlPlane } from "../../rpc/control/control-plane.js";
import { pushTimesFor } from "../../rpc/control/layer-pusher.js";
import {
  createExternalProcessorService,
  type ExternalProcessorParts,
} from "../../rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../rpc/ext-proc/ext-proc-codec.js";
import type { DecisionTracer } from "../../rpc/grpc/decision-trace.js";
import { createHealthService, Health } from "../../rpc/grpc/health.js";
import { createRateLimitService, type RateLimitServiceParts } from "../../rpc/rls/rls.js";
import { ResponseExtras } from "../../rpc/rls/rls-extras.js";
import type { ServiceHandlers } from "../../wire/grpc/service.js";
import type { Transport } from "../../wire/grpc/transport.js";
import { openAdmission } from "../admission/admission.js";
import type { SignalSources } from "../admission/signal-sources.js";
import { cacheBounds } from "../base/cache-bounds.js";
import { CpuWatch } from "../base/cpu-watch.js";
import { sha256 } from "../base/digest.js";
import { bugTrace } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { containerBytesMax, watchMemory } from "../base/memory-watch.js";
import { readVersion } from "../base/version.js";
import type { Config } from "../config/config.js";
import { createRefusalReport } from "../fleet/control-port.js";
import { FleetLoopApp } from "../fleet/fleet-loop.js";
import { AdminCounts } from "../metrics/admin-metrics.js";
import { createDeciderLog } from "../metrics/decider-log.js";
import { createRefusalLog } from "../metrics/denial-log-metrics.js";
import { createMetrics, type Metrics, type ProcessCounts } from "../metrics/metrics.js";
import { NativeTransportCounts } from "../metrics/native-transport-metrics.js";
import type { StatsSources } from "../metrics/stats.js";
import type { OperatorRecords } from "../operator/operator-records.js";
import { openPolicyOperations, type PolicyOperations } from "../operator/policy-admin-open.js";
import { openQuotas } from "../operator/quotas.js";
import { extrasOf, switchesOf } from "../options/decision-options.js";
import type { OpenPolicies } from "../policy/policies.js";
import type { ParsesPolicies } from "../policy/policy-parsing.js";
import { createHttpServer, createMonitoringServer, type HttpParts } from "../ports/http.js";
import { createTransport } from "../ports/transport.js";
import { type OpenStore, openLocalStore } from "../store/store.js";
import type { TlsStatus } from "../tls/tls.js";

/** What a core is made of. */
export interface CoreParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly parser: ParsesPolicies;
  readonly policies: OpenPolicies;
  readonly opened: OpenStore;
  /** What operators have changed. */
  readonly operator: OperatorRecords;
  /** What this replica is called in the audit log. */
  readonly replica: string;
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
  /** What Envoys are given of quotas. */
  readonly quotas: QuotaRegistry;
  /** What the fleet decides together. */
  readonly loop: FleetLoopApp;
  readonly httpServer: HttpServer;
  /** Listens where HEADGATE_MONITORING_ADDR says, if it does. */
  readonly monitoringServer: HttpServer;
  readonly metrics: Metrics;
  /** What this replica sees of its calls; callers' values are in it. */
  readonly seen: DecisionSampler;
  readonly decider: Decider;
  readonly counters: DecisionCounters;
  readonly admission: Admission;
  /** How calls of the admin API ended. */
  readonly adminCounts: AdminCounts;
  /** What this replica is called in the audit log. */
  readonly replica: string;
  /** What operators change about policies and gates. */
  readonly operations: PolicyOperations;
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
  const seen = new DecisionSampler({ ...parts, ...cacheBounds() });
  const operations = openPolicyOperations({
    ...parts,
    isBusy: () => decider.isDegraded || decider.overloadCause !== undefined,
  });
  const { gates, shadow } = operations;
  const refusalLog = createRefusalLog(parts.config, parts.logger);
  const told = { seen, shadow, refusalLog, cpu: new CpuWatch(parts) };
  const decider: Decider = createDecider(parts, { counters, pressure, ...told });
  const exchanges = new ExchangeCounts();
  const nativeCounts = new NativeTransportCounts();
  const onBug = createBugReport(parts);
  const loop = new FleetLoopApp({ ...parts, policies: policies.feed, gates, onBug });
  const looked = { policies: policies.feed, decider, pressure, loop, gates, refusalLog };
  const opening = openAdmission({ ...parts, ...looked });
  loop.watch(opening.admission);
  const extras = new ResponseExtras(extrasOf(parts.config));
  const health = new Health();
  const quotas = openQuotas({ ...parts, policies: policies.feed, counters, onBug });
  const control = createControlPlane(parts, quotas);
  const served = { exchanges, nativeCounts, extras, health, control, quotas };
  const made = { counters, pressure, decider, ...served };
  const { admission, signals } = opening;
  const adminCounts = new AdminCounts();
  const watched = { admission, signals, loop, operations, adminCounts, refusalLog };
  const shared = { ...made, ...watched, onBug };
  const metrics = createCoreMetrics(parts, shared);
  const httpParts: HttpParts = {
    ...shared,
    clock: parts.clock,
    hasJson: parts.config.httpJson && parts.config.tls?.clientAuthority === undefined,
    metrics,
    policies: policies.feed,
    storeKind: opened.kind,
    isStoreAway: () => opened.kind === "redis" && opened.isAway(),
  };
  const redisPools = () => (opened.kind === "redis" ? opened.pools() : []);
  const stopWatches = watchPressure(parts, { pressure, decider, cpu: told.cpu });
  return {
    health,
    transport: createCoreTransport(parts, shared),
    control,
    quotas,
    loop,
    httpServer: createHttpServer(httpParts),
    monitoringServer: createMonitoringServer(httpParts),
    metrics,
    seen,
    decider,
    counters,
    admission,
    adminCounts,
    replica: parts.replica,
    operations,
    statsSources: { counters, policies: policies.feed, redisPools },
    onBug,
    settled: opening.settled,
    close: () => {
      stopWatches();
      quotas.close();
      operations.close();
      return Promise.all([opening.close(), loop.close()]).then(() => {});
    },
  };
}

/** What the gRPC port serves, but for reflection. */
export function createDecisionServices(
  parts: RateLimitServiceParts & ExternalProcessorParts & Pick<Core, "health">,
): readonly ServiceHandlers[] {
  return [
    createRateLimitService(parts),
    createExternalProcessorService(parts),
    createHealthService(parts.health),
  ];
}

/** What several parts of the core look at. */
interface Shared {
  readonly counters: DecisionCounters;
  readonly pressure: Pressure;
  readonly decider: Decider;
  readonly admission: Admission;
  readonly signals: SignalSources;
  readonly exchanges: ExchangeCounts;
  readonly nativeCounts: NativeTransportCounts;
  readonly extras: ResponseExtras;
  readonly health: Health;
  readonly control: ControlPlane;
  readonly quotas: QuotaRegistry;
  readonly loop: FleetLoopApp;
  readonly operations: PolicyOperations;
  readonly adminCounts: AdminCounts;
  readonly refusalLog: RefusalLog | undefined;
  readonly onBug: (thrown: unknown) => void;
}

/** What counts decisions, and looks at them. */
interface Watched extends Pick<Shared, "counters" | "pressure">, Pick<Core, "seen"> {
  readonly shadow: PolicyOperations["shadow"];
  readonly cpu: CpuWatch;
  readonly refusalLog: RefusalLog | undefined;
}

function createDecider(
  { config, clock, random, logger, policies, opened, operator, replicaCount }: CoreParts,
  { counters, pressure, cpu, seen, shadow, refusalLog }: Watched,
): Decider {
  return new Decider({
    policies: policies.feed,
    overrides: operator.overrides,
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
    keyRecordsBytesMax: cacheBounds().keyRecordsBytesMax,
    replicaCount,
    observers: [shadowObserver(shadow), seen],
    refusalLog,
    onEvent: createDeciderLog({ clock, logger, cpu }),
  });
}

function createControlPlane(
  { config, clock, random, logger }: CoreParts,
  quotas: QuotaRegistry,
): ControlPlane {
  const { layerTtlMs, nodeRules, identityPercentMax } = config;
  return new ControlPlane({
    clock,
    random,
    times: pushTimesFor(layerTtlMs),
    quotas: { quotas, onIgnored: (cause) => quotas.noteIgnored(cause) },
    ...(nodeRules === undefined ? {} : { nodeRules }),
    identityPercentMax,
    nodesBytesMax: cacheBounds().nodesBytesMax,
    onRefused: createRefusalReport({ clock, logger }),
  });
}

function createCoreTransport(
  { config, clock, random, tracer }: CoreParts,
  { decider, admission, counters, extras, exchanges, health, nativeCounts, ...shared }: Shared,
): Transport {
  const codec = new ExtProcCodec(admission);
  const requestCache = { keptBytesMax: cacheBounds().requestCacheBytesMax };
  const rateLimiting = { decider, clock, random, counters, extras, tracer, requestCache };
  return createTransport(config, {
    services: createDecisionServices({
      ...rateLimiting,
      isShadow: switchesOf(config).isShadow,
      admission,
      codec,
      counts: exchanges,
      health,
    }),
    clock,
    random,
    nativeCounts,
    onBug: shared.onBug,
    isLate: () => shared.pressure.isLate(clock.monotonicMs()),
    onDropped: () => counters.countFailure("DEADLINE_PASSED"),
  });
}

function createCoreMetrics(
  { config, clock, policies, opened, operator, processCounts, replicaCount, tlsStatus }: CoreParts,
  { counters, decider, pressure, nativeCounts, admission, exchanges, ...shared }: Shared,
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
    ...(config.transport === "native" ? { nativeCounts } : {}),
    ...(policies.xdsStatus === undefined ? {} : { xdsStatus: policies.xdsStatus }),
    admission: {
      services: () => admission.services(),
      unknownCount: () => admission.unknownCount,
      nowMs: () => clock.monotonicMs(),
      exchanges,
    },
    signals: { sources: () => shared.signals.polled(), services: () => admission.services() },
    control: {
      plane: shared.control,
      nowMs: () => clock.monotonicMs(),
      quotas: shared.quotas,
    },
    fleet: () => shared.loop.status,
    overrides: operator.overrides,
    auditCounts: operator.auditCounts,
    ...(config.admin === undefined ? {} : { adminCounts: shared.adminCounts }),
    policyOperations: { policies, operations: shared.operations },
    refusalLog: shared.refusalLog,
    storeKind: opened.kind,
    version: readVersion(),
  });
}

function createPressure({ config, opened }: CoreParts): Pressure {
  const { loopDelayMsMax, requestsInFlightMax } = config;
  // An embedded store answers as fast as any fallback: to pass it by would only cost exactness.
  const asksStoreWhenLate = opened.kind === "memory";
  const { requestsInFlightBytesMax } = cacheBounds();
  return new Pressure({
    loopDelayMsMax,
    requestsInFlightMax,
    requestsInFlightBytesMax,
    asksStoreWhenLate,
  });
}

/** Looks at the event loop, memory and CPU, until it is cancelled. */
function watchPressure(
  { clock, config }: CoreParts,
  { pressure, decider, cpu }: Pick<Shared, "pressure" | "decider"> & Pick<Watched, "cpu">,
): Cancel {
  const onEvent = (event: PressureEvent): void => decider.noteEvent(event);
  const bytesMax = config.memoryBytesMax || containerBytesMax();
  const cancels = [
    watchLoop({ clock, pressure, onEvent }),
    watchMemory({ clock, pressure, bytesMax }),
    () => cpu.close(),
  ];
  return () => {
    for (const cancel of cancels) cancel();
  };
}

/** Least time between two reports of bugs: a caller that found one may repeat it at full speed. */
const bugReportMsMin = 1_000;

/** Counts every bug and logs where it happened, within `bugReportMsMin` once. */
function createBugReport({ clock, logger, processCounts }: CoreParts): (thrown: unknown) => void {
  const lines = new LogInterval<"bug">(bugReportMsMin);
  return (thrown) => {
    processCounts.bugCount += 1;
    if (!lines.begins("bug", clock.monotonicMs())) return;
    logger.error({ event: "bug", ...bugTrace(thrown) }, "A call failed by a fault of ours.");
  };
}
