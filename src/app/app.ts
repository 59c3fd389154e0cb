import type { Clock } from "../core/base/clock.js";
import { isServiceError } from "../core/base/errors.js";
import { loadTokenLibrary } from "./access/admin-oidc.js";
import { openAdmin } from "./admin/admin.js";
import { openAdmission } from "./admission/admission.js";
import { openBudgets } from "./admission/budgets.js";
import { exitCodes, StartFailure } from "./base/failure.js";
import type { ListenAddress } from "./base/listen.js";
import { type OpenStack, openAll } from "./base/open-stack.js";
import type { Config } from "./config/config.js";
import { openControlPlane } from "./control/control-plane.js";
import { openDecisions } from "./decisions/decisions.js";
import { openFleet } from "./fleet/fleet.js";
import { openFoundation } from "./foundation/foundation.js";
import { type AppParts, createRuntime, type Runtime } from "./foundation/runtime.js";
import { openObservability } from "./observability/observability.js";
import { isHealthyWith } from "./policy/policies.js";
import { type DecisionAddresses, openDecisionPorts } from "./ports/decision-ports.js";
import { createHttpParts } from "./ports/http.js";
import { openWaitingRooms } from "./waiting-room/waiting-rooms.js";

/** The running service. */
export interface App extends DecisionAddresses {
  /** Undefined if there is no control port, or if its port is taken. */
  readonly controlAddress: ListenAddress | undefined;
  /** Undefined if there is no admin port, or if its port is taken. */
  readonly adminAddress: ListenAddress | undefined;
  /** Address of the console. Undefined if there is no console. */
  readonly consoleAddress: ListenAddress | undefined;
  /** Undefined if there is no debug port, or if its port is taken. */
  readonly debugAddress: ListenAddress | undefined;
  /** Undefined without HEADGATE_MONITORING_ADDR. */
  readonly monitoringAddress: ListenAddress | undefined;
  /** Undefined without USE_PROMETHEUS. */
  readonly prometheusAddress: ListenAddress | undefined;
  /**
   * Reports not serving, waits for the drain delay, then takes no new calls and lets those in
   * flight end within the grace. Resolves with whether all did. A second call joins the first.
   *
   * @param drainDelayMs in place of the configured delay
   */
  close(drainDelayMs?: number): Promise<boolean>;
}

/**
 * Starts the service: its subsystems in the order of their dependencies, the decision ports last,
 * and only then reports serving. They are closed in reverse order.
 *
 * @throws StartFailure with a text for people and an exit code; nothing is left running then
 */
export async function startApp(config: Config, given: AppParts = {}): Promise<App> {
  const runtime = createRuntime(config, given);
  const { logger } = runtime;
  for (const notice of config.notices) logger.warn({ event: "configNotice" }, notice);
  if (config.openPorts !== undefined) logger.warn({ event: "openPorts" }, config.openPorts);
  try {
    return await openAll((stack) => open(runtime, stack, given.beforeServing));
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    throw new StartFailure(exitCodes.failure, thrown.message, { cause: thrown });
  }
}

async function open(
  runtime: Runtime,
  stack: OpenStack,
  beforeServing: AppParts["beforeServing"],
): Promise<App> {
  const { config, clock, logger } = runtime;
  const foundation = stack.keep(await openFoundation(runtime));
  const fleet = stack.keep(openFleet(runtime, foundation));
  const decisions = stack.keep(openDecisions(runtime, { ...foundation, fleet }));
  const budgets = stack.keep(openBudgets(runtime, { ...foundation, fleet }));
  const decided = { ...foundation, fleet, decisions, budgets };
  const admission = stack.keep(await openAdmission(runtime, decided));
  const rooms = stack.keep(await openWaitingRooms(runtime, { ...decided, admission }));
  const http = createHttpParts(runtime, foundation, decisions);
  const controlPlane = stack.keep(await openControlPlane(runtime, { ...decided, rooms }));
  const observability = stack.keep(
    await openObservability(runtime, { ...decided, controlPlane, http }),
  );
  const seen = { ...decided, admission, controlPlane, observability, rooms: rooms.controls };
  const admin = stack.keep(await openAdmin(runtime, seen));
  const { tracing, listeners } = observability;
  const ports = stack.keep(await openDecisionPorts(runtime, { ...decided, rooms, tracing, http }));
  const { policies } = foundation;
  const { health } = http;
  beforeServing?.();
  /** Reports whether calls may be sent to this replica. */
  const update = (): void => {
    if (isHealthyWith(policies.feed, config)) health.serve();
    else health.stopServing();
  };
  update();
  const stopFollowing = policies.feed.onLoaded(update);
  policies.watch();
  const { addresses } = ports;
  const places = { grpc: addresses.grpcAddress, http: addresses.httpAddress };
  if (health.isServing) logger.info({ event: "serving", ...places }, "Serving.");
  else logger.info({ event: "waiting", ...places }, "Listening; waiting for a policy.");
  void loadAhead(config);

  const stop = async (drainDelayMs: number): Promise<boolean> => {
    stopFollowing();
    health.stopServing();
    const line = { event: "draining", drainDelayMs, drainGraceMs: config.drainGraceMs };
    logger.info(line, "Stopping: health is NOT_SERVING, calls are still answered.");
    await sleep(clock, drainDelayMs);
    // Clients of all ports go elsewhere at the same time; calls in flight have the grace period.
    const others = [stack.closeNow(admin), stack.closeNow(controlPlane)];
    await Promise.all([ports.announceClose(), ...others]);
    const isClean = await stack.closeNow(ports);
    await stack.close();
    if (isClean) logger.info({ event: "stopped" }, "Stopped.");
    else
      logger.warn({ event: "stoppedByForce" }, "Stopped; calls that took too long were cancelled.");
    return isClean;
  };
  let closing: Promise<boolean> | undefined;
  return {
    ...addresses,
    controlAddress: controlPlane.address,
    adminAddress: admin.address,
    consoleAddress: config.admin?.console === undefined ? undefined : admin.address,
    debugAddress: listeners.debugAddress,
    monitoringAddress: listeners.monitoringAddress,
    prometheusAddress: listeners.prometheusAddress,
    close: (drainDelayMs = config.drainDelayMs) => {
      closing ??= stop(drainDelayMs);
      return closing;
    },
  };
}

/**
 * Loads modules that the first calls of the admin port and of `POST /json` need. Nothing is decided
 * for up to 0.1 s each: better now than during a call. A call retries a load that failed.
 */
async function loadAhead({ admin, httpJson }: Config): Promise<void> {
  const loads: (() => Promise<unknown>)[] = [];
  if (httpJson) loads.push(() => import("../rpc/rls/json.js"));
  if (admin !== undefined) {
    loads.push(
      () => import("./admin/admin-requests.js"),
      () => import("./operator/policy-changes.js"),
    );
  }
  if (admin?.oidc !== undefined) loads.push(loadTokenLibrary);
  for (const load of loads) await load().catch(() => undefined);
}

function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (delayMs === 0) resolve();
    else clock.schedule(delayMs, resolve);
  });
}
