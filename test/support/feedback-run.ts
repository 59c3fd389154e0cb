import { defaultLayerTtlMs } from "../../src/core/feedback/feedback-settings.js";
import { Envoy } from "./envoy.js";
import type { EnvoyOptions, Json } from "./envoy-config.js";
import { joinedTo } from "./envoy-control.js";
import { freePort } from "./free-port.js";
import { HeadgateProcess } from "./headgate-process.js";
import { type LoadAnswer, type OpenLoopOrder, runOpenLoop } from "./open-loop-load.js";
import { startRedis } from "./redis.js";
import type { RedisServer } from "./redis-server.js";
import { type SaturableUpstream, startSaturableUpstream } from "./saturable-upstream.js";
import type { Stage } from "./stage.js";

/** A fleet: Envoys in front of one upstream, each joined to a Headgate of its own. */
export interface FeedbackFleet {
  readonly redis: RedisServer;
  readonly headgates: readonly HeadgateProcess[];
  readonly envoys: readonly Envoy[];
  readonly upstream: SaturableUpstream;
  /** One more Envoy comes. */
  addEnvoy(): Promise<Envoy>;
  /** The most that one Envoy lets in now, as its breaker has it. */
  maxRequestsOf(envoy: Envoy): Promise<number>;
}

/** Requests that an Envoy lets in by itself, which would drown the upstream. */
export const configuredMaxRequests = 200;

/** @param initialLimit what the fleet lets in before anything is learned */
const policyOf = (initialLimit: number): string => `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: feedback}
spec:
  services:
    - name: upstream
      concurrency:
        law: gradient
        limits: {initial: ${initialLimit}, min: 2, max: 400}
        sources: [envoyMetrics]
        feedback: [circuitBreakers]
`;

/** Breakers of one Envoy, with all bounds but this one far away. */
export function breakers(maxRequests: number): Json {
  return {
    circuit_breakers: {
      thresholds: [
        {
          max_requests: maxRequests,
          max_connections: 10_000,
          max_pending_requests: 10_000,
          track_remaining: true,
        },
      ],
    },
  };
}

/** What to start. */
export interface FeedbackFleetOrder {
  readonly envoyCount: number;
  /** Workers of the upstream, of 50 ms each. */
  readonly workerCount: number;
  /** How long Envoys keep what nobody renews, in milliseconds. Default: as users have it. */
  readonly layerTtlMs?: number;
  /** What it lets in before anything is learned. Default 20, which loads reach. */
  readonly initialLimit?: number;
}

/** Starts one. */
export async function startFeedbackFleet(
  stage: Stage,
  order: FeedbackFleetOrder,
): Promise<FeedbackFleet> {
  const { envoyCount, workerCount, layerTtlMs = defaultLayerTtlMs, initialLimit = 20 } = order;
  const policy = policyOf(initialLimit);
  const [upstream, redis] = await Promise.all([
    startFeedbackUpstream(stage, workerCount),
    startRedis(stage),
  ]);
  const ports = [await freePort(), await freePort()];
  const headgates = await Promise.all(
    ports.map((port) => {
      const env = {
        REDIS_TYPE: "single",
        REDIS_URL: `redis://127.0.0.1:${redis.port}`,
        HEADGATE_CONTROL_ADDR: `127.0.0.1:${port}`,
        HEADGATE_LAYER_TTL_MS: String(layerTtlMs),
      };
      return HeadgateProcess.start(stage, { policy, env });
    }),
  );
  const envoys: Envoy[] = [];
  const addEnvoy = async (): Promise<Envoy> => {
    const place = envoys.length;
    const envoy = await startFeedbackEnvoy(stage, upstream, {
      upstreamCluster: breakers(configuredMaxRequests),
      ...joinedTo({ port: ports[place % ports.length] ?? 0, nodeId: `edge-${place + 1}` }),
    });
    envoys.push(envoy);
    return envoy;
  };
  for (let i = 0; i < envoyCount; i += 1) await addEnvoy();
  return { redis, headgates, envoys, upstream, addEnvoy, maxRequestsOf };
}

/** Exponential times of 50 ms in the mean. */
export function startFeedbackUpstream(
  stage: Stage,
  workerCount: number,
): Promise<SaturableUpstream> {
  return startSaturableUpstream(stage, {
    workerCount,
    meanServiceMs: 50,
    seed: 7,
    reportsLoad: false,
  });
}

/** An Envoy before it that asks nobody, but for what is given. */
export function startFeedbackEnvoy(
  stage: Stage,
  upstream: SaturableUpstream,
  given: Partial<EnvoyOptions>,
): Promise<Envoy> {
  const options = { upstreamPort: upstream.port, headgatePorts: [], rateLimits: [] };
  return Envoy.start(stage, { ...options, ...given });
}

/** The most that one Envoy lets in now, as its breaker has it. */
async function maxRequestsOf(envoy: Envoy): Promise<number> {
  const prefix = "cluster.upstream";
  const left = await envoy.stat(`${prefix}.circuit_breakers.default.remaining_rq`);
  return left + (await envoy.stat(`${prefix}.upstream_rq_active`));
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
