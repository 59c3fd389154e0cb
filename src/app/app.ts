import { createServer as createNetServer, type Server } from "node:net";
import type { Clock, Random } from "../core/clock.js";
import { isServiceError } from "../core/errors.js";
import { systemClock, systemRandom } from "./clock.js";
import type { Config } from "./config.js";
import { type Core, createCore } from "./core.js";
import { exitCodes, StartFailure } from "./failure.js";
import { joinFleet } from "./fleet.js";
import { type ListenAddress, listen } from "./listen.js";
import { type Logger, silentLogger } from "./logger.js";
import { PolicyReloader } from "./policy-reloader.js";
import { openStore } from "./store.js";

/** The running service. */
export interface App {
  readonly grpcAddress: ListenAddress;
  readonly httpAddress: ListenAddress;
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
}

/** The most connections at a time, by port. A fleet's Envoys have one each worker. */
const grpcConnectionsMax = 10_000;
const httpConnectionsMax = 1_000;

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
  for (const notice of config.notices) logger.warn({ event: "configNotice" }, notice);
  const policies = await loadPolicy(config, { clock, logger });
  const processCounts = { bugCount: 0, badValueCount: 0 };
  const onBadBuckets = (count: number): void => {
    processCounts.badValueCount += count;
  };
  const opened = await openStore({ config, clock, random, logger, onBadBuckets });
  const fleet = joinFleet(opened, { config, clock, random, logger });
  const { replicaCount } = fleet;
  const core = createCore({
    config,
    clock,
    random,
    logger,
    policies,
    opened,
    processCounts,
    replicaCount,
  });
  const closeStore = async (): Promise<void> => {
    core.close();
    await fleet.leave();
    await opened.store.close();
  };
  const parts = { core, config, clock, logger, policies, closeStore };
  try {
    return await serve(parts);
  } catch (thrown) {
    await closeStore();
    if (!isServiceError(thrown)) throw thrown;
    throw new StartFailure(exitCodes.failure, thrown.message, { cause: thrown });
  }
}

async function loadPolicy(
  config: Config,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<PolicyReloader> {
  const { policyPath: path, watchedDirectories } = config;
  const policies = new PolicyReloader({ path, watchedDirectories, clock, logger });
  const look = await policies.look();
  if (look.kind !== "refused") return policies;
  if (look.cause === "invalid") throw new StartFailure(exitCodes.invalidPolicy, look.report);
  const remedy = "Name a file or directory with --policy or HEADGATE_POLICY.";
  throw new StartFailure(exitCodes.failure, `There is no policy: ${look.report}. ${remedy}`);
}

interface Serving {
  readonly core: Core;
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly policies: PolicyReloader;
  readonly closeStore: () => Promise<void>;
}

async function serve(parts: Serving): Promise<App> {
  const { core, config, logger, policies } = parts;
  const grpcServer = createNetServer({ noDelay: true }, (socket) => core.transport.accept(socket));
  const grpcAddress = await listen(grpcServer, {
    host: config.grpcHost,
    port: config.grpcPort,
    hostSetting: "GRPC_HOST",
    portSetting: "GRPC_PORT",
    connectionsMax: grpcConnectionsMax,
  });
  const httpAddress = await listen(core.httpServer, {
    host: config.host,
    port: config.port,
    hostSetting: "HOST",
    portSetting: "PORT",
    connectionsMax: httpConnectionsMax,
  }).catch((thrown: unknown) => {
    grpcServer.close();
    throw thrown;
  });
  core.health.serve();
  policies.watch();
  logger.info({ event: "serving", grpc: grpcAddress, http: httpAddress }, "Serving.");
  let closing: Promise<boolean> | undefined;
  const close = (drainDelayMs = config.drainDelayMs): Promise<boolean> => {
    closing ??= stop(parts, { grpcServer, drainDelayMs });
    return closing;
  };
  return { grpcAddress, httpAddress, close };
}

async function stop(
  parts: Serving,
  { grpcServer, drainDelayMs }: { readonly grpcServer: Server; readonly drainDelayMs: number },
): Promise<boolean> {
  const { core, config, clock, logger, policies, closeStore } = parts;
  const { drainGraceMs } = config;
  core.health.stopServing();
  logger.info(
    { event: "draining", drainDelayMs, drainGraceMs },
    "Stopping: health says so, and calls are still answered.",
  );
  await sleep(clock, drainDelayMs);
  policies.close();
  grpcServer.close();
  await core.transport.announceClose(announceMsMax);
  const ended = await Promise.all([
    core.transport.close(drainGraceMs),
    closeHttp(core, { clock, graceMs: drainGraceMs }),
  ]);
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
