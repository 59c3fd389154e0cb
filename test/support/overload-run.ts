import { watchCrowding } from "./crowding.js";
import { Envoy } from "./envoy.js";
import { type EnvoyOptions, httpFilter, type Json } from "./envoy-config.js";
import { joinedTo } from "./envoy-control.js";
import { breakers, configuredMaxRequests } from "./feedback-run.js";
import { freePort } from "./free-port.js";
import { generatedLocalReplies } from "./generated-envoy.js";
import { HeadgateProcess } from "./headgate-process.js";
import { type LoadSummary, summarizeLoad } from "./load-summary.js";
import { type LoadClass, runOpenLoop } from "./open-loop-load.js";
import { drawOverload } from "./overload-picture.js";
import { sampleDuring } from "./sample-during.js";
import {
  type SaturableStats,
  type SaturableUpstream,
  startSaturableUpstream,
} from "./saturable-upstream.js";
import type { Stage } from "./stage.js";

/** What stands between callers and the upstream. */
export type Protection =
  | "none"
  | "staticBreaker"
  | "adaptiveConcurrency"
  | "admissionControl"
  /** With numbers chosen for this upstream. */
  | "headgate"
  /** With nothing but a name: `admission: {}`. */
  | "headgateDefaults"
  /** The same with a queue. */
  | "headgateQueue"
  /** Breakers of two Envoys that the loop sets, and nothing else; four requests in five at one. */
  | "loopOnly";

/** Whether callers repeat what failed, and how an Envoy at their side does it. */
export type Retries = "none" | "budget" | "istio";

/** One overload. */
export interface OverloadOrder {
  readonly protection: Protection;
  /** Load in multiples of the upstream's capacity. */
  readonly multiple: number;
  readonly durationMs: number;
  /** Mean of exponential times; ten workers serve 10,000 divided by it a second. */
  readonly meanServiceMs: number;
  readonly retries?: Retries;
  readonly seed?: number;
  /** Share of requests that are critical. Default: as many as a fifth of the capacity. */
  readonly criticalShare?: number;
  /** Shares of the other classes. Default: a third of the rest each */
  readonly otherShares?: OtherShares;
  /** How long callers wait. Default: 2 s */
  readonly deadlineMs?: number;
  /** When half of the workers go. Default: never */
  readonly halvedMs?: number;
  /** How long a law may learn before anything counts, in milliseconds. Default: 3 s */
  readonly learningMs?: number;
}

/** What part of all requests is of a class below critical. */
export interface OtherShares {
  readonly high: number;
  readonly normal: number;
  readonly low: number;
}

/** What came of it. */
export interface OverloadResult {
  readonly order: OverloadOrder;
  readonly summary: LoadSummary;
  /** From the third second on, as long as a law may still learn; undefined: it may not. */
  readonly early: LoadSummary | undefined;
  /** From five seconds after the loss of half of the workers on; undefined: nothing was lost. */
  readonly afterwards: LoadSummary | undefined;
  readonly upstream: SaturableStats;
  /** Share of the time in which this machine had more work than cores. */
  readonly crowdedRatio: number;
  /** Attempts that reached the upstream for each request that did. */
  readonly attemptsPerRequest: number;
  /** A picture of it. */
  readonly svg: string;
}

/** Requests that the upstream works on at once. */
const workerCount = 10;
/** Laws and filters may learn this long before anything counts. */
const warmUpMs = 3_000;
/** How long callers wait where an order says nothing else. */
const usualDeadlineMs = 2_000;

/** Laws may take so long to follow. */
const followMs = 5_000;

/** Runs it with programs of their own for everything: upstream, Envoys, Headgate, load. */
export async function runOverload(stage: Stage, order: OverloadOrder): Promise<OverloadResult> {
  const { durationMs, seed = 1, halvedMs } = order;
  const { upstream, headgate, ports } = await startOverload(stage, order);
  const crowded = watchCrowding();
  const load = runOpenLoop({
    ports,
    perSecond: upstream.capacityPerSecond * order.multiple,
    durationMs,
    deadlineMs: order.deadlineMs ?? usualDeadlineMs,
    callerCount: 200,
    seed,
    classes: classesOf(order),
  });
  const halving = halvedMs === undefined ? undefined : halveAt(upstream, halvedMs);
  const [inFlight, limits] = await Promise.all([
    sampleDuring(load, async () => (await upstream.stats()).inFlightCount),
    headgate && sampleDuring(load, () => headgate.metric(limitMetric(order)), limitSampleMs),
  ]);
  const answers = await load;
  await halving;
  const { capacityPerSecond } = upstream;
  const stats = await upstream.stats();
  const { learningMs = warmUpMs } = order;
  const whole = { capacityPerSecond, workerCount };
  const span = { ...whole, fromMs: learningMs, untilMs: halvedMs ?? durationMs };
  const early = { ...whole, fromMs: warmUpMs, untilMs: learningMs };
  const after = halvedMs !== undefined && {
    fromMs: halvedMs + followMs,
    untilMs: durationMs,
    capacityPerSecond: capacityPerSecond / 2,
    workerCount: workerCount / 2,
  };
  return {
    order,
    summary: summarizeLoad(answers, span),
    early: learningMs > warmUpMs ? summarizeLoad(answers, early) : undefined,
    afterwards: after === false ? undefined : summarizeLoad(answers, after),
    upstream: stats,
    crowdedRatio: crowded(),
    attemptsPerRequest: stats.attemptCount / Math.max(1, stats.requestCount),
    svg: drawOverload({
      title: titleOf(order),
      durationMs,
      halvedMs,
      workerCount,
      answers,
      inFlight,
      limits: limits ?? [],
      capacityPerSecond,
    }),
  };
}

/** How often a limit is read, in milliseconds. */
const limitSampleMs = 500;

function limitMetric({ protection }: OverloadOrder): string {
  return protection === "loopOnly" ? "headgate_fleet_limit" : "headgate_admission_inflight_max";
}

function titleOf({ protection, multiple, retries = "none", halvedMs }: OverloadOrder): string {
  const halved = halvedMs === undefined ? "" : ", half of the workers go";
  const retry = retries === "none" ? "" : `, callers retry (${retries})`;
  return `${protection}, ${multiple} times capacity${halved}${retry}`;
}

async function halveAt(upstream: SaturableUpstream, halvedMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, halvedMs));
  await upstream.setWorkers(workerCount / 2);
}

function classesOf(order: OverloadOrder): readonly LoadClass[] {
  const criticalShare = order.criticalShare ?? 0.2 / order.multiple;
  const rest = (1 - criticalShare) / 3;
  const { high, normal, low } = order.otherShares ?? { high: rest, normal: rest, low: rest };
  return [
    { name: "critical", share: criticalShare, headers: { "x-request-priority": "critical" } },
    { name: "high", share: high, headers: { "x-request-priority": "high" } },
    { name: "normal", share: normal, headers: {} },
    { name: "low", share: low, headers: { "x-request-priority": "low" } },
  ];
}

interface StartedOverload {
  readonly upstream: SaturableUpstream;
  readonly headgate: HeadgateProcess | undefined;
  /** Where load goes, in turn. */
  readonly ports: readonly number[];
}

async function startOverload(stage: Stage, order: OverloadOrder): Promise<StartedOverload> {
  const { protection, meanServiceMs, retries = "none", seed = 1 } = order;
  const isLoop = protection === "loopOnly";
  const policy = policyOf(protection, meanServiceMs);
  const controlPort = isLoop ? await freePort() : 0;
  const env = isLoop ? { HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}` } : {};
  const [upstream, headgate] = await Promise.all([
    startSaturableUpstream(stage, { workerCount, meanServiceMs, seed, reportsLoad: false }),
    policy === undefined ? undefined : HeadgateProcess.start(stage, { policy, env }),
  ]);
  const common = {
    headgatePorts: [headgate?.grpcPort ?? upstream.port],
    rateLimits: [],
    connectionManager: { local_reply_config: generatedLocalReplies() },
  };
  if (isLoop) {
    const [first, second] = await Promise.all(
      [1, 2].map((place) => {
        const joined = joinedTo({ port: controlPort, nodeId: `edge-${place}` });
        const upstreamCluster = breakers(configuredMaxRequests);
        return Envoy.start(stage, {
          ...common,
          upstreamPort: upstream.port,
          upstreamCluster,
          ...joined,
        });
      }),
    );
    const [busy, quiet] = [first?.port ?? 0, second?.port ?? 0];
    return { upstream, headgate, ports: [busy, busy, busy, busy, quiet] };
  }
  const server = await Envoy.start(stage, {
    ...common,
    upstreamPort: upstream.port,
    ...protections[protection],
  });
  if (retries === "none") return { upstream, headgate, ports: [server.port] };
  const entry = await Envoy.start(stage, {
    upstreamPort: server.port,
    headgatePorts: [upstream.port],
    rateLimits: [],
    ...retryPolicies[retries],
  });
  return { upstream, headgate, ports: [entry.port] };
}

/** The policy of a protection that has one. */
function policyOf(protection: Protection, meanServiceMs: number): string | undefined {
  switch (protection) {
    case "headgate":
      return overloadPolicy(meanServiceMs);
    case "headgateDefaults":
      return servicePolicy("admission: {}");
    case "headgateQueue":
      return servicePolicy("admission: { queue: { size: 20, maxWait: 300ms } }");
    case "loopOnly":
      return loopPolicy;
    default:
      return undefined;
  }
}

/** A service whose Envoys tell and are told of its limit: all that they need is its name. */
const loopPolicy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: { name: overload }
spec:
  services:
    - name: upstream
      concurrency: { sources: [envoyMetrics], feedback: [circuitBreakers] }
`;

/** A service with classes that callers state. */
function servicePolicy(blocks: string): string {
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: { name: overload }
spec:
  services:
    - name: orders
      priority: { from: { header: x-request-priority, default: normal, trust: { anyone: true } } }
      ${blocks}
`;
}

/**
 * What a service wants that is to survive: classes that callers state, and a queue in which the
 * most urgent one is sure to see a request end: a dozen do in that time. The law is the default.
 */
function overloadPolicy(meanServiceMs: number): string {
  return servicePolicy(`admission:
        caller: { header: x-caller }
        queue: { size: 8, maxWait: ${meanServiceMs * 1.2}ms, order: priority }
      concurrency: { limits: { initial: 20, max: 200 } }`);
}

const headgateOptions: Partial<EnvoyOptions> = {
  extProc: {
    grpc_service: {
      envoy_grpc: { cluster_name: "headgate" },
      initial_metadata: [{ key: "x-headgate-service", value: "orders" }],
    },
    request_attributes: ["source.address"],
    // What Envoy refuses because the machine was busy says nothing about Headgate.
    message_timeout: "10s",
    // Nor do the shorter times that Headgate announces for requests that wait.
    max_message_timeout: "0s",
  },
};

const protections: Readonly<Record<Exclude<Protection, "loopOnly">, Partial<EnvoyOptions>>> = {
  none: {},
  staticBreaker: {
    upstreamCluster: {
      circuit_breakers: {
        thresholds: [{ max_requests: 20, max_connections: 1_000, max_pending_requests: 1_000 }],
      },
    },
  },
  adaptiveConcurrency: {
    filtersBefore: [
      httpFilter("adaptive_concurrency", "AdaptiveConcurrency", {
        gradient_controller_config: {
          sample_aggregate_percentile: { value: 90 },
          concurrency_limit_params: {
            max_concurrency_limit: 1_000,
            concurrency_update_interval: "0.1s",
          },
          min_rtt_calc_params: { interval: "60s", request_count: 50 },
        },
      }),
    ],
  },
  admissionControl: {
    filtersBefore: [
      httpFilter("admission_control", "AdmissionControl", {
        enabled: { default_value: true, runtime_key: "admission_control.enabled" },
        sampling_window: "5s",
        success_criteria: { http_criteria: { http_success_status: [{ start: 200, end: 400 }] } },
      }),
    ],
  },
  headgate: headgateOptions,
  headgateDefaults: headgateOptions,
  headgateQueue: headgateOptions,
};

const jitteredBackOff = { base_interval: "0.025s", max_interval: "0.25s" };

const previousHosts = "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate";

const retryPolicies: Readonly<Record<Exclude<Retries, "none">, Partial<EnvoyOptions>>> = {
  budget: {
    upstreamCluster: {
      circuit_breakers: {
        thresholds: [
          {
            max_requests: 100_000,
            max_connections: 100_000,
            max_pending_requests: 100_000,
            retry_budget: { budget_percent: { value: 20 }, min_retry_concurrency: 3 },
          },
        ],
      },
    },
    route: { retry_policy: { retry_on: "5xx", num_retries: 2, retry_back_off: jitteredBackOff } },
  },
  // Source: istio.io, "Traffic Management", default retry policy of VirtualService.
  istio: {
    upstreamCluster: {
      circuit_breakers: {
        thresholds: [
          { max_requests: 100_000, max_connections: 100_000, max_pending_requests: 100_000 },
        ],
      },
    },
    route: {
      retry_policy: {
        retry_on: "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes",
        num_retries: 2,
        retriable_status_codes: [503],
        retry_host_predicate: [
          {
            name: "envoy.retry_host_predicates.previous_hosts",
            typed_config: {
              "@type": `type.googleapis.com/${previousHosts}`,
            },
          } satisfies Json,
        ],
      },
    },
  },
};

/** Results as a table, one run a row: from five seconds after a loss on, where there is one. */
export function overloadTable(results: readonly OverloadResult[]): string {
  const rows = results.map(({ order, summary: before, afterwards, attemptsPerRequest }) => {
    const summary = afterwards ?? before;
    return [
      `${order.protection}${order.retries === undefined ? "" : `, ${order.retries}`}`,
      `${order.multiple}x${afterwards === undefined ? "" : ", halved"}`,
      `${(summary.goodputRatio * 100).toFixed(0)} %`,
      `${(summary.workedRatio * 100).toFixed(1)} %`,
      `${summary.servedP50Ms.toFixed(0)} ms`,
      `${summary.servedP99Ms.toFixed(0)} ms`,
      `${((summary.servedRatioByClass.get("critical") ?? 0) * 100).toFixed(1)} %`,
      String(summary.refusedCount),
      `${summary.refusedP99Ms.toFixed(1)} ms`,
      summary.refusedCount === 0
        ? "-"
        : `${((1 - summary.withoutRetryAfter.length / summary.refusedCount) * 100).toFixed(0)} %`,
      String(summary.unansweredCount),
      attemptsPerRequest.toFixed(2),
      `${(summary.lateRatio * 100).toFixed(0)} %`,
    ];
  });
  const head = [
    "protection",
    "load",
    "goodput",
    "worked",
    "p50",
    "p99",
    "critical",
    "refused",
    "their p99",
    "Retry-After",
    "unanswered",
    "attempts",
    "sent late",
  ];
  const all = [head, ...rows];
  const widths = head.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
