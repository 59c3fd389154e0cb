import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { ConsolePage } from "./console-page.js";
import { joinedTo } from "./envoy-control.js";
import { freePort } from "./free-port.js";
import { type Gateway, type GatewayOptions, startGateway, startHostedGateway } from "./gateway.js";
import type { HeadgateProcess, RunningHeadgate } from "./headgate-process.js";
import { HttpClient } from "./http-client.js";
import { redisEnv, startRedis } from "./redis.js";
import type { RedisServer } from "./redis-server.js";
import { startBrowser, type Theme } from "./site.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** Tokens of people, by what they may do. */
export const tokens = {
  operator: "0123456789abcdef-operator",
  reader: "0123456789abcdef-reader",
  /** Of the domain `other` alone. */
  other: "0123456789abcdef-other",
} as const;

/** A policy with something for each view; `perHour` of each user pass. */
export function consolePolicy(perHour: number): string {
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: console}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - key: user
          rate_limit: {name: pace, unit: hour, requests_per_unit: ${perHour}}
          on_store_failure: allow
        - key: path
          shadow_mode: true
          rate_limit: {name: trial, unit: minute, requests_per_unit: 5}
        - key: tenant
          rate_limit: {name: tenant-pace, unit: second, requests_per_unit: 100}
    - domain: other
      descriptors:
        - key: account
          rate_limit: {unit: second, requests_per_unit: 10}
  services:
    - name: upstream
      concurrency:
        law: fixed
        limits: {min: 1, initial: 8, max: 8}
        sources: [envoyMetrics]
        feedback: [circuitBreakers]
    - name: orders
      hosts: [orders.example, load]
      admission:
        maxInFlight: 6
        queue: {size: 50, maxWait: 2s}
        estimatedWait: {sigmoid: {midpoint: 28s, slope: 0.23}}
        gate: {openBelow: 0.6, closeAbove: 0.9}
    - name: ledger
      hosts: [ledger.example]
      admission: {maxInFlight: 10}
      concurrency: {law: signal, signal: {fixed: 7.25, target: 10, critical: 100}}
    - name: search
      hosts: [search.example]
      admission: {maxInFlight: 10}
      concurrency:
        law: signal
        signal: {redis: lag, target: 10, critical: 100, every: 200ms, staleAfter: 1s}
  quotas:
    - {name: per-tenant, domain: edge, bucket: [{header: x-tenant, as: tenant}]}
`;
}

/** Two Headgates over a Redis, an Envoy in front of a service, and a browser. */
export interface ConsoleRig<Headgate extends RunningHeadgate = RunningHeadgate> {
  readonly redis: RedisServer;
  readonly gateway: Gateway<Headgate>;
  readonly browser: Browser;
  /** Where each Headgate serves the console. */
  readonly origins: readonly string[];
  /** A page of the first Headgate's console, signed in. */
  open(who: keyof typeof tokens, theme?: Theme): Promise<ConsolePage>;
  /** Asks as a user through Envoy; the status. */
  send(user: string): Promise<number>;
}

/** What may be otherwise in it. */
export interface ConsoleRigOptions {
  readonly policy?: string;
  /** Settings of both Headgates. */
  readonly env?: Readonly<Record<string, string>>;
  readonly envoy?: GatewayOptions["envoy"];
  /** One that runs. Default: one of its own. */
  readonly browser?: Browser;
}

/** Starts all of it; it ends with the stage. */
export function startConsoleRig(stage: Stage, options?: ConsoleRigOptions): Promise<ConsoleRig> {
  return startRig(stage, options, startHostedGateway);
}

/** As `startConsoleRig`, with Headgates that can be killed. */
export function startMortalConsoleRig(stage: Stage): Promise<ConsoleRig<HeadgateProcess>> {
  return startRig(stage, {}, startGateway);
}

async function startRig<Headgate extends RunningHeadgate>(
  stage: Stage,
  { policy = consolePolicy(3), env = {}, envoy = {}, browser: shared }: ConsoleRigOptions = {},
  startRow: (stage: Stage, options: GatewayOptions) => Promise<Gateway<Headgate>>,
): Promise<ConsoleRig<Headgate>> {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const [redis, browser] = await Promise.all([startRedis(stage), shared ?? startBrowser(stage)]);
  const accessPath = join(stage.folder, "access");
  const hash = (token: string): string => createHash("sha256").update(token).digest("hex");
  const lines = [
    `operator * token-sha256:${hash(tokens.operator)} olga`,
    `reader * token-sha256:${hash(tokens.reader)} rita`,
    `operator other token-sha256:${hash(tokens.other)} otto`,
  ];
  await writeFile(accessPath, `${lines.join("\n")}\n`);
  const ports = [await freePort(), await freePort()];
  const control = await freePort();
  const envOf = (port: number) => ({
    ...redisEnv(redis.port),
    HEADGATE_ADMIN_ADDR: `127.0.0.1:${port}`,
    HEADGATE_ADMIN_ACCESS: accessPath,
    HEADGATE_ADMIN_CALLS_PER_SECOND: "500",
    HEADGATE_POLICY_SOURCE: "store",
    HEADGATE_REPLICAS: "2",
    ...env,
  });
  const [first = 0, second = 0] = ports;
  const gateway = await startRow(stage, {
    policy,
    headgateEnvs: [
      { ...envOf(first), HEADGATE_CONTROL_ADDR: `127.0.0.1:${control}` },
      envOf(second),
    ],
    descriptorKeys: [["user"], ["path"]],
    envoy: { extProc: {}, ...joinedTo({ port: control, nodeId: "edge-1" }), ...envoy },
  });
  for (const headgate of gateway.headgates) {
    await waitFor("replicas know each other", async () => {
      return (await headgate.metric("headgate_live_replicas")) === 2;
    });
  }
  // An Envoy gets its share with the first request that its statistics count.
  await waitFor("the Envoy sends its statistics", async () => {
    const [joined] = gateway.headgates;
    const labels = { stream: "metrics" };
    return (await joined.metric("headgate_control_node_streams", labels)) === 1;
  });
  const origins = ports.map((port) => `http://127.0.0.1:${port}`);
  return {
    redis,
    gateway,
    browser,
    origins,
    open: async (who, theme) => {
      const page = await ConsolePage.open(browser, origins[0] ?? "", theme);
      await page.signIn(tokens[who]);
      return page;
    },
    send: async (user) => (await gateway.send({ user })).status,
  };
}
