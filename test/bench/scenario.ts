import { create, toBinary } from "@bufbuild/protobuf";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import type { LoadPace } from "./load.js";
import type { LoadCalls } from "./load-client.js";
import type { Row } from "./row.js";
import { measureLoad } from "./run-load.js";
import type { BenchServer } from "./servers.js";

/** One row of the bench. */
export interface Scenario {
  readonly name: string;
  readonly calls: LoadCalls;
  /** The Redis whose CPU counts too. */
  readonly redisPid?: number;
  readonly start: () => Promise<BenchServer>;
  readonly load: ScenarioLoad;
  /** Calls before the first that counts, at least. Default: as many as fit two seconds. */
  readonly warmUpCalls?: number;
}

/** How a server is loaded. */
export interface ScenarioLoad {
  readonly connectionCount: number;
  readonly pace: LoadPace;
}

/** The load of most rows. */
export const defaultLoad: ScenarioLoad = {
  connectionCount: 4,
  pace: { kind: "closed", inFlightPerConnection: 50 },
};

const warmUpMs = 2_000;

/** Starts the scenario's server, warms it up, measures it under load, and stops it. */
export async function measure(scenario: Scenario, measureMs: number): Promise<Row> {
  const server = await scenario.start();
  const { calls, load, redisPid, warmUpCalls = 0 } = scenario;
  try {
    const warmUp = { warmUpMs, warmUpCalls };
    const order = { port: server.port, calls, ...load, ...warmUp, durationMs: measureMs };
    const pids = redisPid === undefined ? [server.pid] : [server.pid, redisPid];
    const { report, cpuUs, loadCpuUs } = await measureLoad(order, pids);
    const { callCount, failedCount, deniedCount, elapsedMs, p50Ms, p99Ms } = report;
    const [serverUs = 0, redisUs] = cpuUs;
    return {
      name: scenario.name,
      callsPerSecond: (callCount / elapsedMs) * 1_000,
      cpuUsPerCall: serverUs / callCount,
      ...(redisUs === undefined ? {} : { redisCpuUsPerCall: redisUs / callCount }),
      loadCpuUsPerCall: loadCpuUs / callCount,
      p50Ms,
      p99Ms,
      failedCount,
      deniedCount,
    };
  } finally {
    await server.stop();
  }
}

/** Questions about so many keys, evenly, one descriptor each. */
export function rateLimitCalls(keyCount: number): LoadCalls {
  const messages = Array.from({ length: keyCount }, (_, i) => {
    const entries = [{ key: "user", value: `user-${i}` }];
    const request = create(RateLimitRequestSchema, { domain: "bench", descriptors: [{ entries }] });
    return Buffer.from(toBinary(RateLimitRequestSchema, request)).toString("base64");
  });
  const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
  return { kind: "unary", path, messages };
}
