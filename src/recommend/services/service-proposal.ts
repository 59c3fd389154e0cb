import type { ProxyPolicy } from "../../policy/proxies/proxies.js";
import { memoryBytesMax } from "../../policy/proxies/proxy-overload.js";
import { queueSizeMax, waitMsMax } from "../../policy/services/admission-blocks.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { formatDuration } from "../../policy/text/duration.js";
import { thresholdMax } from "../../policy/upstream/circuit-breakers.js";
import { outlierDetection } from "../../policy/upstream/outlier-detection.js";
import { findKnee, type KneeVerdict } from "./knee-fit.js";
import { kneeMissing, kneeRange, kneeReasons, rounded } from "./knee-words.js";
import type { EnvoyPeaks, LatencyQuantiles, ServiceObservations } from "./service-observations.js";
import type { ServiceRecommendation, ServiceSetting } from "./service-recommendation.js";
import { staticLimit } from "./static-limit.js";

/** Current settings of a service in the policy. */
export type CurrentService = Pick<
  ServicePolicy,
  "admission" | "circuitBreakers" | "outlierDetection"
>;

/** Proposes settings for a service, or reports why it does not. */
export function recommendService(
  observations: ServiceObservations,
  current: CurrentService,
): ServiceRecommendation {
  const verdict = findKnee(observations.curve);
  const limit = observations.limit ?? current.admission?.maxInFlight;
  const parts: Parts = {
    observations,
    current,
    verdict,
    unloaded: observations.quantiles(
      verdict.kind === "seen" ? Math.max(1, verdict.fit.knee) : Number.POSITIVE_INFINITY,
    ),
  };
  const proposed = [limits(parts), deadlines(parts), breakers(parts), outliers(parts)];
  return {
    observations,
    verdict,
    settings: proposed.flatMap(({ settings }) => settings),
    reasons: kneeReasons(verdict),
    missing: [
      ...kneeMissing(verdict, { ...observations, limit }),
      ...proposed.flatMap(({ missing }) => missing),
      ...observations.notes,
    ],
  };
}

interface Parts {
  readonly observations: ServiceObservations;
  readonly current: CurrentService;
  readonly verdict: KneeVerdict;
  /** Latencies without waiting requests, as far as known. */
  readonly unloaded: LatencyQuantiles | undefined;
}

interface Proposed {
  readonly settings: readonly ServiceSetting[];
  readonly missing: readonly string[];
}

const nothing: Proposed = { settings: [], missing: [] };

/** Proposes `maxInFlight` and the matching queue. */
function limits({ verdict, current: { admission }, unloaded }: Parts): Proposed {
  if (verdict.kind !== "seen") return nothing;
  const { knee, kneeMin, kneeMax, model, perSecondMax } = verdict.fit;
  // Beyond a peak, each additional request reduces throughput.
  const hasPeak =
    model === "usl" && verdict.fit.latencyMs(2 * knee) > 2 * verdict.fit.latencyMs(knee);
  const limit = hasPeak ? Math.max(1, Math.round(knee)) : staticLimit(knee);
  const use = admission?.maxInFlight === undefined ? "optional" : "write";
  const learned = `learns the limit; ${kneeRange(kneeMin, kneeMax)} requests in flight`;
  const own: ServiceSetting = {
    path: "admission",
    value: "{}",
    was: undefined,
    why: `${learned} fill the service`,
    use: "write",
  };
  const settings: ServiceSetting[] = [
    ...(admission === undefined ? [own] : []),
    {
      path: "admission.maxInFlight",
      value: limit,
      was: admission?.maxInFlight,
      why: hasPeak
        ? `throughput peaks at ${rounded(knee)} in flight`
        : `knee at ${rounded(knee)} in flight, and a queue to keep it busy`,
      use,
    },
  ];
  if (unloaded === undefined) return { settings, missing: [quantilesMissing] };
  const waitMs = Math.min(waitMsMax, Math.max(1, Math.ceil(unloaded.p99)));
  const size = Math.min(queueSizeMax, Math.max(1, Math.ceil((perSecondMax * waitMs) / 1_000)));
  settings.push(
    {
      path: "admission.queue.maxWait",
      value: duration(waitMs),
      was: admission?.queue && duration(admission.queue.waitMsMax),
      why: "99 % of responses take no longer while nobody waits",
      use,
    },
    {
      path: "admission.queue.size",
      value: size,
      was: admission?.queue?.sizeMax,
      why: `Little's law: ${rounded(perSecondMax)} per second x ${duration(waitMs)}`,
      use,
    },
  );
  return { settings, missing: [] };
}

const quantilesMissing =
  "The source has no latency quantiles: deadline and queue.maxWait need an access log, or a " +
  "histogram of Envoy in Prometheus.";

function deadlines({ current: { admission }, unloaded }: Parts): Proposed {
  if (unloaded === undefined) return nothing;
  const leastMs = Math.min(waitMsMax, Math.max(1, Math.floor(unloaded.p50)));
  const now = admission?.deadline?.minRemainingMs ?? defaultMinRemainingMs;
  if (leastMs <= now) return nothing;
  const why = "half of the responses take longer, even while nobody waits";
  const value = duration(leastMs);
  const path = "admission.deadline.minRemaining";
  // If the policy has no admission yet, its defaults come first.
  const use = admission === undefined ? "optional" : "write";
  return { settings: [{ path, value, was: duration(now), why, use }], missing: [] };
}

/** Default of `deadline.minRemaining`. */
const defaultMinRemainingMs = 5;

/** Factor between the observed maximum and a bound that must not interfere. */
const spareRatio = 2;

function breakers({ observations: { envoy }, current: { circuitBreakers } }: Parts): Proposed {
  const settings = [
    spare(envoy.connections, {
      path: "circuitBreakers.maxConnections",
      now: circuitBreakers?.connectionsMax ?? 1_000,
      what: "connections of one proxy",
    }),
    spare(envoy.pendingRequests, {
      path: "circuitBreakers.maxPendingRequests",
      now: circuitBreakers?.pendingRequestsMax ?? 100,
      what: "requests of one proxy that wait for a connection",
    }),
  ];
  const missing =
    envoy.connections === undefined && envoy.pendingRequests === undefined
      ? [
          "circuitBreakers needs Envoy's own metrics (--prometheus); `maxRequests: auto` follows " +
            "the limit in any case.",
        ]
      : [];
  return { settings: settings.flat(), missing };
}

function spare(
  peak: number | undefined,
  { path, now, what }: { readonly path: string; readonly now: number; readonly what: string },
): readonly ServiceSetting[] {
  const value = Math.min(thresholdMax, Math.ceil(spareRatio * (peak ?? 0)));
  if (value <= now) return [];
  const why = `twice the ${rounded(peak ?? 0)} ${what} that were seen at most`;
  return [{ path, value, was: now, why, use: "write" }];
}

/** Maximum number of consecutive failures in a proposal. */
const consecutiveMax = 100;

/** If a service fails more often, individual hosts are not the cause. */
const errorRatioMax = 0.2;

const ejectionPercentMin = 10;
const secondsOfDay = 86_400;

/**
 * Proposes a number of consecutive failures that is unlikely by chance. With `requests` a day, the
 * expected number of runs of k failures is `requests * ratio ^ k`, which must be at most one.
 *
 * Example: at 10 million requests a day and 2 % errors, five are 0.03 runs a day.
 */
function outliers({ observations, current, verdict }: Parts): Proposed {
  const { errorRatio, requestCount, durationSeconds, perSecondMax } = observations;
  const now = current.outlierDetection ?? outlierDetection.defaults;
  const settings: ServiceSetting[] = [];
  const missing: string[] = [];
  if (errorRatio === undefined || requestCount === 0) {
    missing.push("outlierDetection needs the statuses of responses.");
  } else if (errorRatio > errorRatioMax) {
    const percent = Math.round(100 * errorRatio);
    missing.push(
      `${percent} % of the requests failed: no threshold of outlierDetection tells ` +
        "hosts apart in such a time. Observe one without an incident.",
    );
  } else if (errorRatio > 0) {
    const perDay = (requestCount * secondsOfDay) / Math.max(1, durationSeconds);
    const runs = Math.ceil(Math.log(Math.max(1, perDay)) / -Math.log(errorRatio));
    const value = Math.min(consecutiveMax, runs);
    const why = `${rounded(100 * errorRatio)} % errors make so many in a row once a day by chance`;
    for (const [name, was] of [
      ["consecutive5xx", now.consecutive5xx],
      ["consecutiveGatewayFailure", now.consecutiveGatewayFailures],
    ] as const) {
      const path = `outlierDetection.${name}`;
      if (value > was) settings.push({ path, value, was, why, use: "write" });
    }
  }
  if (verdict.kind !== "seen") return { settings, missing };
  const capacity = verdict.fit.perSecondMax;
  const sparePercent = Math.max(0, Math.floor(100 * (1 - perSecondMax / capacity)));
  const value = Math.max(ejectionPercentMin, sparePercent);
  if (value < now.ejectionPercentMax) {
    settings.push({
      path: "outlierDetection.maxEjectionPercent",
      value,
      was: now.ejectionPercentMax,
      why: `the peak needs ${100 - sparePercent} % of ${rounded(capacity)} per second`,
      use: "write",
    });
  }
  return { settings, missing };
}

/** Step to which memory limits are rounded up. */
const heapStepBytes = 64 * 2 ** 20;

/** Proposes settings of the overload manager, from the maximum values of any proxy. */
export function recommendOverload(
  { heapBytes, downstreamConnections }: EnvoyPeaks,
  current: ProxyPolicy["overload"],
): readonly ServiceSetting[] {
  const settings: ServiceSetting[] = [];
  const heapWas = current?.heap?.bytesMax;
  if (heapBytes !== undefined && heapBytes > 0) {
    const bounded = Math.min(memoryBytesMax, spareRatio * heapBytes);
    const steps = Math.ceil(bounded / heapStepBytes);
    const why = `twice the ${Math.ceil(heapBytes / 2 ** 20)}Mi that a proxy used at most`;
    const was = heapWas === undefined ? undefined : `${Math.round(heapWas / 2 ** 20)}Mi`;
    settings.push({
      path: "overload.maxHeap",
      value: `${64 * steps}Mi`,
      was,
      why,
      use: "optional",
    });
  }
  if (downstreamConnections !== undefined && downstreamConnections > 0) {
    settings.push({
      path: "overload.maxConnections",
      value: Math.min(thresholdMax, Math.ceil(spareRatio * downstreamConnections)),
      was: current?.connectionsMax,
      why: `twice the ${rounded(downstreamConnections)} connections that a proxy had at most`,
      use: "optional",
    });
  }
  return settings;
}

/** Returns milliseconds in the policy's notation, rounded up, above a second to 100 ms. */
function duration(ms: number): string {
  return formatDuration(ms < 1_000 ? Math.ceil(ms) : 100 * Math.ceil(ms / 100));
}
