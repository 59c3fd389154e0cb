import { Admission, type AdmissionEvent } from "../../decide/admission/admission.js";
import type { ServiceAdmission } from "../../decide/admission/service-admission.js";
import { PermitShares, type PermitSharesEvent } from "../../fleet/claims/permit-shares.js";
import type { PermitStore } from "../../store/coordination/permit-store.js";
import type { Logger } from "../base/logger.js";
import type { MetricGroup } from "../base/metrics.js";
import { sha256 } from "../base/sha256.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { admissionMetrics } from "../metrics/admission-metrics.js";
import { remedyOf } from "../store/store-remedies.js";
import type { OpenBudgets } from "./budgets.js";
import { HostWatch } from "./host-watch.js";
import { type PolledSource, SignalSources } from "./signal-sources.js";

interface OpenAdmissionParts extends Pick<Foundation, "policies" | "opened"> {
  readonly fleet: Fleet;
  readonly decisions: Decisions;
  readonly budgets: OpenBudgets;
}

/** Time for which readings of the host are valid without newer ones, in milliseconds. */
const hostHoldMs = 3_000;

/** Admission of this process. */
export interface OpenAdmission {
  readonly admission: Admission;
  readonly signals: Pick<SignalSources, "polled">;
  /** Gives shares back if the store is reachable, and stops all background work. */
  close(): Promise<void>;
}

/**
 * Opens admission. A process with its own store shares nothing, and has its own limits. Resolves
 * when each shared limit and each signal has been read once, successfully or not. A slow one is not
 * waited for.
 */
export async function openAdmission(
  runtime: Runtime,
  { policies, opened, fleet, decisions, budgets }: OpenAdmissionParts,
): Promise<OpenAdmission> {
  const { clock, random, logger, config, metrics } = runtime;
  const { decider, pressure, refusalLog } = decisions;
  const { loop, gates } = fleet;
  const { coordination } = opened;
  const shares = coordination.isShared
    ? openShares(runtime, coordination.permits, fleet)
    : undefined;
  const admission = new Admission({
    policies: policies.feed,
    clock,
    random,
    decider,
    shares,
    permitLeaseMsMax: config.permitLeaseMsMax,
    permitsPeerPercentMax: config.permitsPeerPercentMax,
    fleetGate: (service) => loop.verdict(service),
    refusalLog,
    gateSettings: (service, own) => gates.settingsOf(service, own),
    budgetsOf: (service) => budgets.budgets.of(service),
    ...(budgets.sharedKeys === undefined ? {} : { sharedKeys: budgets.sharedKeys }),
    digest: (text) => sha256(text),
    isOverloaded: () => pressure.isShedding,
    isLate: (nowMs) => pressure.isLate(nowMs),
    onEvent: (event) => logAdmission(event, logger),
  });
  loop.watch(admission);
  if (shares === undefined) logLimitsPerProcess(admission, logger);
  const host = new HostWatch({
    clock,
    policies: policies.feed,
    root: config.hostRoot,
    onRead: (readings) => admission.readHost(readings, hostHoldMs),
  });
  const signals = new SignalSources({
    clock,
    random,
    logger,
    policies: policies.feed,
    choice: config.signals,
    store: coordination.numbers,
    shared: coordination.isShared ? coordination.signals : undefined,
    host,
    onUpdate: (service, update) => {
      admission.read(service, update);
      if (update.rest !== undefined) loop.read(service, update.rest);
    },
  });
  const services = (): Iterable<ServiceAdmission> => admission.services();
  const unknownCount = (): number => admission.unknownCount;
  metrics.add(
    admissionMetrics({ services, unknownCount, nowMs: () => clock.monotonicMs() }),
    signalMetrics({ sources: () => signals.polled(), services }),
  );
  await Promise.all([shares?.settled(), signals.settled()]);
  return {
    admission,
    signals,
    close: async () => {
      signals.close();
      host.close();
      admission.close();
      await shares?.stop();
    },
  };
}

function openShares(
  { config, clock, random, logger }: Runtime,
  store: PermitStore,
  { replicaCount }: Fleet,
): PermitShares {
  return new PermitShares({
    store,
    clock,
    random,
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
    "There is no shared store: each process admits up to the whole limit of a service.",
  );
}

function logShares(event: PermitSharesEvent, logger: Logger): void {
  if (event.kind === "sharesFound") {
    logger.info({ event: event.kind }, "Shares of service limits follow the demand again.");
    return;
  }
  logger.warn(
    { event: event.kind, code: event.code, remedy: remedyOf(event.code) },
    "Shares of service limits cannot be renewed: each replica takes an equal share.",
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
  else logger.info(line, "A service's gate is half open: it admits some of its requests.");
}

/** Logs each change, and decreases once more for those who read only warnings. */
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

interface SignalMetricsParts {
  readonly sources: () => Iterable<PolledSource>;
  readonly services: () => Iterable<ServiceAdmission>;
}

/** Returns the metrics of signals, by kind. */
export function signalMetrics({ sources, services }: SignalMetricsParts): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_signal_reading",
        help: "The last reading of a signal, by key; `other`: the largest of unnamed keys.",
        labelNames: ["service", "key"],
        read: (add) => {
          for (const { name: service, pools } of services()) {
            for (const [key, reading] of pools.readings()) add(reading, { service, key });
          }
        },
      },
      {
        name: "headgate_signal_age_seconds",
        help: "Seconds since a signal's source last answered, or since polling began.",
        labelNames: ["service"],
        read: (add) => {
          for (const { service, poller } of sources()) add(poller.ageMs() / 1_000, { service });
        },
      },
      {
        name: "headgate_signal_missing",
        help: "1 while a signal has no valid reading; its limit is then set by whenMissing.",
        labelNames: ["service"],
        read: (add) => {
          for (const { service, poller } of sources()) add(poller.isMissing ? 1 : 0, { service });
        },
      },
    ],
    counters: [
      {
        name: "headgate_signal_polls_total",
        help: "Polls of signal sources, by kind of source and outcome.",
        labelNames: ["service", "source", "outcome"],
        read: (add) => {
          for (const { service, kind: source, poller } of sources()) {
            for (const [code, count] of poller.countByOutcome) {
              add(count, { service, source, outcome: code.toLowerCase() });
            }
          }
        },
      },
    ],
  };
}
