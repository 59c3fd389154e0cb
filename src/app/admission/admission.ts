import type { Clock, Random } from "../../core/base/clock.js";
import { Admission, type AdmissionEvent } from "../../decide/admission/admission.js";
import type { Decider } from "../../decide/rate-limit/decider.js";
import type { Pressure } from "../../decide/rate-limit/pressure.js";
import type { RefusalLog } from "../../decide/rate-limit/refusal-log.js";
import { PermitShares, type PermitSharesEvent } from "../../fleet/claims/permit-shares.js";
import { sha256 } from "../base/digest.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import type { FleetLoopApp } from "../fleet/fleet-loop.js";
import type { ChangedGates } from "../fleet/fleet-maker.js";
import type { PolicyFeed } from "../policy/active-policy.js";
import type { OpenStore } from "../store/store.js";
import { remedyOf } from "../store/store-remedies.js";
import { SignalSources } from "./signal-sources.js";

/** What admission is opened with. */
export interface AdmissionAppParts {
  readonly config: Pick<
    Config,
    "keyPrefix" | "permitLeaseMsMax" | "permitsPeerPercentMax" | "signals" | "timings"
  >;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly policies: PolicyFeed;
  readonly opened: OpenStore;
  readonly decider: Decider;
  readonly pressure: Pressure;
  readonly replicaCount: () => number;
  readonly loop: Pick<FleetLoopApp, "verdict" | "read">;
  /** What operators have changed about gates; absent: nothing, ever. */
  readonly gates?: Pick<ChangedGates, "settingsOf">;
  /** Undefined: no refusal is told in the log. */
  readonly refusalLog?: RefusalLog | undefined;
}

/** Admission as this process runs it. */
export interface OpenAdmission {
  readonly admission: Admission;
  /** Who asks for readings of signals. */
  readonly signals: SignalSources;
  /**
   * Resolves when each limit that is shared, and each signal, has been asked for once, whether well
   * or not; what takes long is not waited for.
   */
  readonly settled: () => Promise<void>;
  /** Gives shares back, as far as anybody can hear it, and ends what runs by itself. */
  readonly close: () => Promise<void>;
}

/** Opens admission; with a store of its own a process shares nothing, and limits are its own. */
export function openAdmission(parts: AdmissionAppParts): OpenAdmission {
  const { clock, random, logger, policies, opened, decider, pressure, loop } = parts;
  const shares = opened.kind === "redis" ? openShares(opened, parts) : undefined;
  const admission = new Admission({
    policies,
    clock,
    random,
    decider,
    shares,
    permitLeaseMsMax: parts.config.permitLeaseMsMax,
    permitsPeerPercentMax: parts.config.permitsPeerPercentMax,
    fleetGate: (service) => loop.verdict(service),
    refusalLog: parts.refusalLog,
    gateSettings: (service, own) => parts.gates?.settingsOf(service, own) ?? own,
    digest: (text) => sha256(text),
    isOverloaded: () => pressure.isShedding,
    isLate: (nowMs) => pressure.isLate(nowMs),
    onEvent: (event) => logAdmission(event, logger),
  });
  if (shares === undefined) logLimitsPerProcess(admission, logger);
  const signals = new SignalSources({
    clock,
    random,
    logger,
    policies,
    choice: parts.config.signals,
    // The background connection repeats a failed call, which does a reading no harm.
    connection: opened.kind === "redis" ? opened.connections.background : undefined,
    onUpdate: (service, update) => {
      admission.read(service, update);
      if (update.rest !== undefined) loop.read(service, update.rest);
    },
  });
  return {
    admission,
    signals,
    settled: async () => {
      await Promise.all([shares?.settled(), signals.settled()]);
    },
    close: async () => {
      signals.close();
      admission.close();
      await shares?.stop();
    },
  };
}

function openShares(
  opened: Extract<OpenStore, { kind: "redis" }>,
  { config, clock, random, logger, replicaCount }: AdmissionAppParts,
): PermitShares {
  return new PermitShares({
    connection: opened.connections.fleet,
    clock,
    random,
    keyPrefix: config.keyPrefix,
    heartbeatMs: config.timings.permitHeartbeatMs,
    leaseMs: config.timings.permitLeaseMs,
    replicaCount,
    onEvent: (event) => logShares(event, logger),
  });
}

function logLimitsPerProcess(admission: Admission, logger: Logger): void {
  const services = [...admission.services()].filter((service) => service.isLimited);
  if (services.length === 0) return;
  logger.warn(
    { event: "permitsPerProcess", services: services.map(({ name }) => name) },
    "Without a shared store each process admits up to the whole limit of a service by itself.",
  );
}

function logShares(event: PermitSharesEvent, logger: Logger): void {
  if (event.kind === "sharesFound") {
    logger.info({ event: event.kind }, "Limits of services are shared by need again.");
    return;
  }
  logger.warn(
    { event: event.kind, code: event.code, remedy: remedyOf(event.code) },
    "Shares of services' limits are not renewed: each replica takes an equal part meanwhile.",
  );
}

function logAdmission(event: AdmissionEvent, logger: Logger): void {
  const { kind, service } = event;
  if (kind === "gateChanged") {
    logGate(event, logger);
  } else if (kind === "capacityChanged") {
    logCapacity(event, logger);
  } else {
    const { key, count, longestMs } = event;
    logger.debug(
      { event: kind, service, key, count, longestMs: Math.round(longestMs) },
      "Requests waited for a permit for more than 100 ms in the last second.",
    );
  }
}

function logGate(
  { kind, service, state }: Extract<AdmissionEvent, { kind: "gateChanged" }>,
  logger: Logger,
): void {
  const line = { event: kind, service, state };
  if (state === "closed") logger.warn(line, "A service's gate closed: its queue is too long.");
  else if (state === "open") logger.info(line, "A service's gate is open again.");
  else logger.info(line, "A service's gate lets a part of its requests through.");
}

/** Each change, and the decreases once more for whoever reads warnings alone. */
function logCapacity(
  { kind, service, key, from, to, reading }: Extract<AdmissionEvent, { kind: "capacityChanged" }>,
  logger: Logger,
): void {
  const line = { service, key, from, to };
  const why = typeof reading === "number" ? `reading ${reading}` : "no reading";
  logger.info(
    { event: kind, ...line, reading },
    `Adjusted capacity from ${from} to ${to} (${why}).`,
  );
  if (to >= from) return;
  logger.warn(
    { event: "capacityDecreased", ...line, by: from - to },
    `Decreased capacity from ${from} to ${to} (-${from - to} permits).`,
  );
}
