import { Envoy } from "./envoy.js";
import type { Json } from "./envoy-config.js";
import { joinedTo } from "./envoy-control.js";
import { freePort } from "./free-port.js";
import { HeadgateProcess } from "./headgate-process.js";
import { ratesOver } from "./load-summary.js";
import { type LoadAnswer, type OpenLoopOrder, runOpenLoop } from "./open-loop-load.js";
import { RedisServer } from "./redis-server.js";
import { type SaturableUpstream, startSaturableUpstream } from "./saturable-upstream.js";
import type { Stage } from "./stage.js";
import { plotSvg } from "./svg-plot.js";

/** A fleet: Envoys in front of one upstream, each joined to a Headgate of its own. */
export interface FeedbackFleet {
  readonly redis: RedisServer;
  readonly headgates: readonly HeadgateProcess[];
  readonly envoys: readonly Envoy[];
  readonly upstream: SaturableUpstream;
  /** The most that one Envoy lets in now, as its breaker has it. */
  maxRequestsOf(envoy: Envoy): Promise<number>;
}

/** Requests that an Envoy lets in by itself, which would drown the upstream. */
export const configuredMaxRequests = 200;

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: feedback}
spec:
  services:
    - name: upstream
      concurrency:
        law: gradient
        limits: {initial: 20, min: 2, max: 400}
        sources: [envoyMetrics]
        feedback: [circuitBreakers]
`;

const breakers: Json = {
  circuit_breakers: {
    thresholds: [
      {
        max_requests: configuredMaxRequests,
        max_connections: 10_000,
        max_pending_requests: 10_000,
        track_remaining: true,
      },
    ],
  },
};

/** Starts one whose upstream has so many workers of 50 ms. */
export async function startFeedbackFleet(
  stage: Stage,
  { envoyCount, workerCount }: { readonly envoyCount: number; readonly workerCount: number },
): Promise<FeedbackFleet> {
  const upstream = await startSaturableUpstream(stage, {
    workerCount,
    meanServiceMs: 50,
    seed: 7,
    reportsLoad: false,
  });
  const redis = await RedisServer.start({ engine: "redis" });
  stage.atEnd(() => redis.stop());
  const headgates: HeadgateProcess[] = [];
  const ports: number[] = [];
  for (let i = 0; i < 2; i += 1) {
    const port = await freePort();
    const env = {
      REDIS_TYPE: "single",
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      HEADGATE_CONTROL_ADDR: `127.0.0.1:${port}`,
    };
    headgates.push(await HeadgateProcess.start(stage, { policy, env }));
    ports.push(port);
  }
  const envoys: Envoy[] = [];
  for (let i = 0; i < envoyCount; i += 1) {
    envoys.push(
      await Envoy.start(stage, {
        upstreamPort: upstream.port,
        headgatePorts: [],
        rateLimits: [],
        upstreamCluster: breakers,
        ...joinedTo({ port: ports[i % ports.length] ?? 0, nodeId: `edge-${i + 1}` }),
      }),
    );
  }
  const maxRequestsOf = async (envoy: Envoy): Promise<number> => {
    const prefix = "cluster.upstream";
    const left = await envoy.stat(`${prefix}.circuit_breakers.default.remaining_rq`);
    return left + (await envoy.stat(`${prefix}.upstream_rq_active`));
  };
  return { redis, headgates, envoys, upstream, maxRequestsOf };
}

/** Load from 200 callers, evenly over these Envoys unless one stands more often. */
export function feedbackLoad(
  envoys: readonly Envoy[],
  order: Pick<OpenLoopOrder, "perSecond" | "durationMs">,
): Promise<readonly LoadAnswer[]> {
  return runOpenLoop({
    ...order,
    ports: envoys.map(({ port }) => port),
    deadlineMs: 1_000,
    classes: [{ name: "all", share: 1, headers: {} }],
    callerCount: 200,
    seed: 7,
  });
}

/** Served in time, and what could have been, over the time of a run. */
export function drawFeedback(
  title: string,
  run: {
    readonly answers: readonly LoadAnswer[];
    readonly durationMs: number;
    /** Requests a second that the upstream can serve, from when on in seconds. */
    readonly capacities: readonly (readonly [number, number])[];
    /** The sum of what Envoys let in, over time. */
    readonly limits: readonly (readonly [number, number])[];
  },
): string {
  const span = { stepMs: 250, untilMs: run.durationMs };
  return plotSvg(title, [
    {
      title: "requests a second",
      xLabel: "seconds",
      yLabel: "a second",
      series: [
        { name: "capacity", color: "#888", isBound: true, points: run.capacities },
        {
          name: "served in time",
          color: "#2a7f3f",
          points: ratesOver(run.answers, span, ({ status }) => status === 200),
        },
        {
          name: "refused by Envoy",
          color: "#c77700",
          points: ratesOver(run.answers, span, ({ status }) => status >= 400),
        },
        {
          name: "no answer in time",
          color: "#b3261e",
          points: ratesOver(run.answers, span, ({ status }) => status === 0),
        },
      ],
    },
    {
      title: "what all Envoys let in at once",
      xLabel: "seconds",
      yLabel: "requests",
      series: [{ name: "sum of shares", color: "#1f5fa8", points: run.limits }],
    },
  ]);
}
