import type { Clock, Random } from "../core/base/clock.js";
import { isServiceError } from "../core/base/errors.js";
import { openAdmin } from "./admin/admin.js";
import type { AdminPort } from "./admin/admin-port.js";
import { type Core, createCore } from "./admin/core.js";
import { boundHttpByAddress, createRefusedReport } from "./base/address-bound.js";
import { systemClock, systemRandom } from "./base/clock.js";
import { exitCodes, StartFailure } from "./base/failure.js";
import { type ListenAddress, listen } from "./base/listen.js";
import { type Logger, silentLogger } from "./base/logger.js";
import type { Config } from "./config/config.js";
import { type ControlPort, openControlPort } from "./fleet/control-port.js";
import { joinFleet } from "./fleet/fleet.js";
import { newProcessCounts, type ProcessCounts } from "./metrics/metrics.js";
import { type OperatorRecords, openOperatorRecords } from "./operator/operator-records.js";
import { followStore, isHealthyWith, type OpenPolicies, openPolicies } from "./policy/policies.js";
import { type ParsesPolicies, parsePolicyInWorker } from "./policy/policy-parsing.js";
import { type AdminAccess, openAdminAccess } from "./ports/admin-access.js";
import { AdminCallLog } from "./ports/admin-call-log.js";
import { type GrpcAddress, type GrpcListener, listenForGrpc } from "./ports/grpc-listener.js";
import { openStatsListeners, type StatsListeners } from "./ports/stats-listeners.js";
import { heldUntil, type OpenStore, openStore } from "./store/store.js";
import { type OpenTls, openTls } from "./tls/tls.js";
import { openTracing } from "./tracing/tracing.js";

/** The running service. */
export interface App {
  readonly grpcAddress: GrpcAddress;
  readonly httpAddress: ListenAddress;
  /** Absent where there is no control port, or it is taken. */
  readonly controlAddress?: ListenAddress;
  /** Absent where there is no admin port, or it is taken. */
  readonly adminAddress?: ListenAddress;
  /** Absent where there is no debug port, or it is taken. */
  readonly debugAddress?: ListenAddress;
  /** Absent without HEADGATE_MONITORING_ADDR. */
  readonly monitoringAddress?: ListenAddress;
  /** Absent without USE_PROMETHEUS. */
  readonly prometheusAddress?: ListenAddress;
  /**
   * Stops: not serving at once, then the drain delay, then no new calls, then the grace for those
   * in flight. Resolves with whether all ended by themselves; a second call joins the first.
   *
   * @param drainDelayMs in place of the configured delay
   */
  close(drainDelayMs?: number): Promise<boolean>;
}

/** What may be given from outside; the defaults are the real ones, and a silent log. */
export interface AppParts {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly logger?: Logger;
  /** Reads policies. Default: a worker thread, so that a long one holds up no call. */
  readonly parser?: ParsesPolicies;
}

/** The most HTTP connections at a time. */
const httpConnectionsMax = 1_000;

/** The most of one address: a proxy in front of callers of `POST /json` has a pool of them. */
const httpPerAddressMax = 500;

/** The most connections of one address to the monitoring port: probes and scrapers have a few. */
const monitoringPerAddressMax = 100;

/** How long clients have to learn that we stop. */
const announceMsMax = 1_000;

/**
 * Starts the service: policy, store, listeners, and only then serving.
 *
 * @throws StartFailure with a text for people and an exit code; nothing is left running then
 */
export async function startApp(config: Config, given: AppParts = {}): Promise<App> {
  const clock = given.clock ?? systemClock;
  const random = given.random ?? systemRandom;
  const logger = given.logger ?? silentLogger;
  const parser = given.parser ?? parsePolicyInWorker;
  for (const notice of config.notices) logger.warn({ event: "configNotice" }, notice);
  if (config.openPorts !== undefined) logger.warn({ event: "openPorts" }, config.openPorts);
  const tls = config.tls && (await openTls(config.tls, { clock, logger }));
  const { admin: choice } = config;
  const access = choice && (await openAdminAccess({ choice, clock, logger }));
  const calls = new AdminCallLog(clock, logger);
  const first = await openPolicies(config, { clock, random, logger, parser });
  const processCounts = newProcessCounts();
  const onBadBuckets = (count: number): void => {
    processCounts.badValueCount += count;
  };
  const common = { config, clock, random, logger };
  const shared = await openStore({ ...common, onBadBuckets });
  const replica = random.id();
  const operator = openOperatorRecords({ ...common, opened: shared, replica });
  const { records } = operator;
  const policies = await followStore(first, { records, clock, logger, parser }).catch(
    async (thrown: unknown) => {
      operator.close();
      await shared.store.close();
      throw thrown;
    },
  );
  // By an older policy than the others nobody decides on the buckets that all of them share.
  const opened = policies.isKnown === undefined ? shared : heldUntil(shared, policies.isKnown);
  const fleet = joinFleet(opened, common);
  const { replicaCount, liveCount } = fleet;
  const tracing = config.tracing && (await openTracing(config.tracing, { clock, random, logger }));
  const core = createCore({
    ...common,
    parser,
    policies,
    opened,
    operator,
    replica,
    processCounts,
    replicaCount,
    ...(tls === undefined ? {} : { tlsStatus: () => tls.status }),
    ...(tracing === undefined ? {} : { tracer: tracing.tracer }),
  });
  const closeStore = async (): Promise<void> => {
    await core.close();
    await tracing?.close();
    operator.close();
    access?.close();
    calls.close();
    await fleet.leave();
    await opened.store.close();
  };
  const whole = { ...common, parser, policies, opened, operator, access };
  const parts = { ...whole, core, closeStore, tls, liveCount, replicaCount, processCounts, calls };
  try {
    await core.settled();
    return await serve(parts);
  } catch (thrown) {
    await closeStore();
    if (!isServiceError(thrown)) throw thrown;
    throw new StartFailure(exitCodes.failure, thrown.message, { cause: thrown });
  }
}

interface Serving {
  readonly core: Core;
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly parser: ParsesPolicies;
  readonly policies: OpenPolicies;
  readonly opened: OpenStore;
  readonly operator: OperatorRecords;
  readonly replicaCount: () => number;
  readonly liveCount: () => number;
  readonly processCounts: ProcessCounts;
  /** Absent where there is no admin API. */
  readonly access: AdminAccess | undefined;
  readonly calls: AdminCallLog;
  readonly closeStore: () => Promise<void>;
  /** Undefined where gRPC is served in plaintext. */
  readonly tls: OpenTls | undefined;
}

async function serve(parts: Serving): Promise<App> {
  const { core, config, logger, policies, tls, processCounts } = parts;
  const refusedAt = createRefusedReport(processCounts.refusedConnections, parts);
  const onRefused = refusedAt("grpc");
  const grpc = await listenForGrpc({ config, transport: core.transport, tls, onRefused });
  boundHttpByAddress(core.httpServer, {
    perAddressMax: httpPerAddressMax,
    onRefused: refusedAt("http"),
  });
  boundHttpByAddress(core.monitoringServer, {
    perAddressMax: monitoringPerAddressMax,
    onRefused: refusedAt("monitoring"),
  });
  const httpAddress = await listen(core.httpServer, {
    host: config.host,
    port: config.port,
    hostSetting: "HOST",
    portSetting: "PORT",
    connectionsMax: httpConnectionsMax,
  }).catch((thrown: unknown) => {
    grpc.close();
    throw thrown;
  });
  const listeners = await openStats(parts).catch((thrown: unknown) => {
    grpc.close();
    core.httpServer.close();
    throw thrown;
  });
  const control = await openControl(parts, refusedAt("control"));
  const admin = await openAdmin(parts);
  const stopFollowing = followPolicy(parts);
  policies.watch();
  const places = { grpc: grpc.address, http: httpAddress };
  if (core.health.isServing) logger.info({ event: "serving", ...places }, "Serving.");
  else logger.info({ event: "waiting", ...places }, "Listening, and waiting for a policy.");
  let closing: Promise<boolean> | undefined;
  const close = (drainDelayMs = config.drainDelayMs): Promise<boolean> => {
    stopFollowing();
    closing ??= stop(parts, { grpc, control, admin, listeners, drainDelayMs });
    return closing;
  };
  const { address: controlAddress } = control;
  const { address: adminAddress } = admin;
  const { debugAddress, monitoringAddress, prometheusAddress } = listeners;
  return {
    grpcAddress: grpc.address,
    httpAddress,
    ...(controlAddress === undefined ? {} : { controlAddress }),
    ...(adminAddress === undefined ? {} : { adminAddress }),
    ...(debugAddress === undefined ? {} : { debugAddress }),
    ...(monitoringAddress === undefined ? {} : { monitoringAddress }),
    ...(prometheusAddress === undefined ? {} : { prometheusAddress }),
    close,
  };
}

function openStats({
  core,
  config,
  clock,
  logger,
  access,
  calls,
}: Serving): Promise<StatsListeners> {
  const { control: plane, loop, metrics, monitoringServer, statsSources: sources, onBug } = core;
  const fleet = { plane, loop: () => loop.status, nowMs: () => clock.monotonicMs() };
  const served = { sources, fleet, metrics, monitoringServer };
  return openStatsListeners({ config, clock, logger, access, calls, onBug, ...served });
}

function openControl(
  { core, policies, ...parts }: Serving,
  onRefused: () => void,
): Promise<ControlPort> {
  const { control: plane, loop, onBug } = core;
  const feeds = { snapshots: loop, policies: policies.feed };
  return openControlPort({ ...parts, ...feeds, plane, onBug, onRefused });
}

interface Stopping {
  readonly grpc: GrpcListener;
  readonly control: ControlPort;
  readonly admin: AdminPort;
  readonly listeners: StatsListeners;
  readonly drainDelayMs: number;
}

/** Says whether to send calls here, now and after each new policy, until the answer is called. */
function followPolicy({ core, config, policies }: Serving): () => void {
  const update = (): void => {
    if (isHealthyWith(policies.feed, config)) core.health.serve();
    else core.health.stopServing();
  };
  update();
  return policies.feed.onLoaded(update);
}

async function stop(parts: Serving, stopping: Stopping): Promise<boolean> {
  const { grpc, control, admin, listeners, drainDelayMs } = stopping;
  const { core, config, clock, logger, policies, closeStore } = parts;
  const { drainGraceMs } = config;
  core.health.stopServing();
  logger.info(
    { event: "draining", drainDelayMs, drainGraceMs },
    "Stopping: health says so, and calls are still answered.",
  );
  await sleep(clock, drainDelayMs);
  policies.close();
  grpc.close();
  const announcing = core.transport.announceClose(announceMsMax);
  await Promise.all([control.close(), admin.close(), announcing]);
  const ended = await Promise.all([
    core.transport.close(drainGraceMs),
    closeHttp(core, { clock, graceMs: drainGraceMs }),
  ]);
  // After the last decision, so that the last numbers are told.
  await listeners.close();
  await closeStore();
  const isClean = ended.every((one) => one);
  if (isClean) logger.info({ event: "stopped" }, "Stopped.");
  else logger.warn({ event: "stoppedByForce" }, "Stopped; calls that took too long were cut.");
  return isClean;
}

function closeHttp(
  { httpServer }: Core,
  { clock, graceMs }: { readonly clock: Clock; readonly graceMs: number },
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(graceMs, () => {
      httpServer.closeAllConnections();
      resolve(false);
    });
    httpServer.close(() => {
      cancel();
      resolve(true);
    });
    httpServer.closeIdleConnections();
  });
}

function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (delayMs === 0) resolve();
    else clock.schedule(delayMs, resolve);
  });
}
