import { watchLoop } from "../../decide/admission/loop-watch.js";
import { DecisionSampler } from "../../decide/inspect/decision-sampler.js";
import { DecisionCounters } from "../../decide/rate-limit/counters.js";
import { Decider } from "../../decide/rate-limit/decider.js";
import { Pressure, type PressureEvent } from "../../decide/rate-limit/pressure.js";
import type { RefusalLog } from "../../decide/rate-limit/refusal-log.js";
import { shadowObserver } from "../../decide/shadow/shadow.js";
import { ShadowLedger } from "../../fleet/claims/shadow-ledger.js";
import { Lender, type LendingEvent } from "../../fleet/regions/lender.js";
import { cacheBounds } from "../base/cache-bounds.js";
import { CpuWatch } from "../base/cpu-watch.js";
import type { Logger } from "../base/logger.js";
import { containerBytesMax, watchMemory } from "../base/memory-watch.js";
import { OpenStack } from "../base/open-stack.js";
import { sha256 } from "../base/sha256.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { createDeciderLog, createRefusalLog, refusalLogMetric } from "../metrics/decision-log.js";
import { decisionMetrics, storeMetrics } from "../metrics/decision-metrics.js";
import { policyOperationsMetrics } from "../metrics/policy-metrics.js";
import { regionMetrics } from "../metrics/region-metrics.js";
import { switchesOf } from "../options/decision-options.js";
import { openLocalStore } from "../store/store.js";
import { remedyOf } from "../store/store-remedies.js";
import { PolicyShadow, type PolicyShadowParts } from "./policy-shadow.js";

/** The decider of rate limits, and the observers of its decisions. */
export interface Decisions {
  readonly decider: Decider;
  readonly counters: DecisionCounters;
  readonly pressure: Pressure;
  /** What this replica sees of its calls. Contains callers' values. */
  readonly seen: DecisionSampler;
  /** The shadow policy. */
  readonly shadow: PolicyShadow;
  /** Undefined if refusals are not logged. */
  readonly refusalLog: RefusalLog | undefined;
  /** Borrows from other regions. Undefined: there are none. */
  readonly lender: Lender | undefined;
  /** Stops all background work. */
  close(): Promise<void>;
}

type DecisionsParts = Pick<Foundation, "policies" | "opened" | "operator"> & {
  readonly fleet: Fleet;
};

/** Opens decisions. */
export function openDecisions(runtime: Runtime, parts: DecisionsParts): Decisions {
  const { config, clock, logger, metrics, loopActivity } = runtime;
  const { policies, opened, operator, fleet } = parts;
  const stack = new OpenStack();
  const counters = new DecisionCounters();
  const pressure = createPressure(runtime, parts);
  const seen = new DecisionSampler({ ...runtime, ...cacheBounds(config) });
  const isBusy = (): boolean => decider.isDegraded || decider.overloadCause !== undefined;
  const refusalLog = createRefusalLog(config, logger);
  const cpu = stack.keep(new CpuWatch(runtime));
  const lender = openLending(runtime, parts);
  if (lender !== undefined) stack.keep(lender);
  const shadow = stack.keep(createShadow(runtime, parts, { isBusy, region: lender?.share }));
  const decider: Decider = new Decider({
    policies: policies.feed,
    overrides: operator.overrides,
    store: opened.store,
    createLocalStore: () => openLocalStore(config, runtime),
    clock,
    counters,
    pressure,
    storeBudgetMs: config.storeBudgetMs,
    newKeysPerSecondMax: config.newKeysPerSecondMax,
    switches: switchesOf(config),
    nearLimitRatio: config.nearLimitRatio,
    digest: sha256,
    keyRecordsBytesMax: cacheBounds(config).keyRecordsBytesMax,
    replicaCount: fleet.replicaCount,
    regions: lender,
    observers: [shadowObserver(shadow), seen],
    refusalLog,
    onEvent: createDeciderLog({ clock, logger, cpu }),
  });
  const onEvent = (event: PressureEvent): void => decider.noteEvent(event);
  const bytesMax = config.memoryBytesMax || containerBytesMax();
  const isIdle = (): boolean => loopActivity.isIdle();
  stack.keep(loopActivity);
  stack.keep({ close: watchLoop({ clock, pressure, onEvent, isIdle }) });
  stack.keep({ close: watchMemory({ clock, pressure, bytesMax, isIdle }) });
  const decisions = { decider, counters, pressure, seen, shadow, refusalLog, lender };
  addMetrics(metrics, parts, decisions);
  return { ...decisions, close: () => stack.close() };
}

function addMetrics(
  metrics: Runtime["metrics"],
  { policies, opened, fleet }: DecisionsParts,
  { decider, counters, pressure, shadow, refusalLog }: Omit<Decisions, "close">,
): void {
  metrics.add(
    decisionMetrics({
      counters,
      policies: policies.feed,
      overloadCause: () => decider.overloadCause,
      inFlightCount: () => pressure.inFlightCount,
    }),
    storeMetrics({
      counters,
      isDegraded: () => decider.isDegraded,
      replicaCount: fleet.replicaCount,
      memoryKeyCount: () => opened.keyCount?.(),
      storeKind: opened.kind,
    }),
    policyOperationsMetrics({ policies, gates: fleet.gates, shadow }),
  );
  if (refusalLog !== undefined) metrics.add({ counters: [refusalLogMetric(refusalLog)] });
}

function createPressure({ config }: Runtime, { opened }: DecisionsParts): Pressure {
  const { loopDelayMsMax, requestsInFlightMax } = config;
  // An embedded store answers as fast as any fallback: bypassing it would only cost exactness.
  const asksStoreWhenLate = !opened.coordination.isShared;
  const { requestsInFlightBytesMax } = cacheBounds(config);
  return new Pressure({
    loopDelayMsMax,
    requestsInFlightMax,
    requestsInFlightBytesMax,
    asksStoreWhenLate,
  });
}

function createShadow(
  runtime: Runtime,
  { policies, opened, operator }: DecisionsParts,
  own: Pick<PolicyShadowParts, "isBusy" | "region">,
): PolicyShadow {
  const { config, random } = runtime;
  return new PolicyShadow({
    ...runtime,
    records: operator.records,
    overrides: operator.overrides,
    ledger: new ShadowLedger({ store: opened.coordination.ledger, random }),
    policies: policies.feed,
    openSpace: opened.openSpace,
    liveNameOf: (key) => opened.store.shorten?.(key) ?? key,
    parse: policies.parse,
    storeBudgetMs: config.storeBudgetMs,
    newKeysPerSecondMax: config.newKeysPerSecondMax,
    switches: switchesOf(config),
    digest: sha256,
    ...own,
  });
}

/** Lends limits with `spread: global` between regions. Undefined: there are none. */
function openLending(
  { config, clock, random, logger, metrics }: Runtime,
  { opened, fleet }: Pick<Foundation, "opened"> & { readonly fleet: Fleet },
): Lender | undefined {
  const { regions } = config;
  if (regions === undefined) return undefined;
  const { own: region, names } = regions;
  const lender = new Lender({
    region,
    store: opened.store,
    peers: opened.peers,
    clock,
    random,
    replicaCount: fleet.replicaCount,
    onEvent: (event) => logLending(event, logger),
  });
  metrics.add(regionMetrics(lender));
  const sentence = `Limits with spread: global are divided among ${names.length} regions.`;
  logger.info({ event: "regionsOpened", region, regions: names.join(",") }, sentence);
  return lender;
}

function logLending(event: LendingEvent, logger: Logger): void {
  const { kind, ...facts } = event;
  const line = { event: kind, ...facts };
  switch (event.kind) {
    case "regionLost":
      logger.warn(
        { ...line, remedy: "Check its store, and the network between the regions." },
        "Nothing can be borrowed from a region; this one enforces its own part of global limits.",
      );
      return;
    case "regionFound":
      logger.info(line, "Limits are borrowed from a region again.");
      return;
    case "creditsLost":
      logger.warn(
        { ...line, remedy: remedyOf(event.code) },
        "The store did not confirm borrowed hits, which are lost; nothing is borrowed meanwhile.",
      );
      return;
    case "creditsFound":
      logger.info(line, "The store confirms borrowed hits again.");
  }
}
