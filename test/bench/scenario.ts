import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import type { LoadOrder, LoadReport } from "./load.js";
import { processCpuUs } from "./process-cpu.js";
import type { Row } from "./report.js";
import type { BenchServer } from "./servers.js";

/** One row of the bench. */
export interface Scenario {
  readonly name: string;
  /** Distinct keys asked for, evenly. */
  readonly keyCount: number;
  /** The Redis whose CPU counts too. */
  readonly redisPid?: number;
  readonly start: () => Promise<BenchServer>;
  /** Calls in flight on one connection alone. Default: 4 connections with 50 each. */
  readonly inFlightOnOne?: number;
}

const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const usualLoad = { connectionCount: 4, inFlightPerConnection: 50 };
const warmUpMs = 2_000;

/** Starts the scenario's server, warms it up, measures it under load, and stops it. */
export async function measure(scenario: Scenario, measureMs: number): Promise<Row> {
  const server = await scenario.start();
  try {
    const order = { port: server.port, path, ...loadOf(scenario) };
    const messages = requestMessages(scenario.keyCount);
    await load({ ...order, messages, durationMs: warmUpMs });
    const before = readCpu(server, scenario);
    const report = await load({ ...order, messages, durationMs: measureMs });
    const after = readCpu(server, scenario);
    const { callCount, failedCount, deniedCount, elapsedMs, p50Ms, p99Ms } = report;
    return {
      name: scenario.name,
      callsPerSecond: (callCount / elapsedMs) * 1_000,
      cpuUsPerCall: (after.serverUs - before.serverUs) / callCount,
      ...(scenario.redisPid === undefined
        ? {}
        : { redisCpuUsPerCall: (after.redisUs - before.redisUs) / callCount }),
      p50Ms,
      p99Ms,
      failedCount,
      deniedCount,
    };
  } finally {
    await server.stop();
  }
}

function loadOf({ inFlightOnOne }: Scenario): typeof usualLoad {
  if (inFlightOnOne === undefined) return usualLoad;
  return { connectionCount: 1, inFlightPerConnection: inFlightOnOne };
}

function readCpu(
  server: BenchServer,
  { redisPid }: Scenario,
): { readonly serverUs: number; readonly redisUs: number } {
  return {
    serverUs: processCpuUs(server.pid),
    redisUs: redisPid === undefined ? 0 : processCpuUs(redisPid),
  };
}

function requestMessages(keyCount: number): readonly string[] {
  return Array.from({ length: keyCount }, (_, i) => {
    const entries = [{ key: "user", value: `user-${i}` }];
    const request = create(RateLimitRequestSchema, { domain: "bench", descriptors: [{ entries }] });
    return Buffer.from(toBinary(RateLimitRequestSchema, request)).toString("base64");
  });
}

/** Runs the load in a process of its own, so that its work is not counted as the server's. */
function load(order: LoadOrder): Promise<LoadReport> {
  const script = fileURLToPath(new URL("./load.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script, "run"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end(JSON.stringify(order));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(JSON.parse(text) as LoadReport);
      else reject(new Error(`the load process ended with ${code}`));
    });
  });
}
