import { writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { RedisServer } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

async function startRedis(): Promise<RedisServer> {
  const server = await RedisServer.start({ engine: "redis" });
  stage.atEnd(() => server.stop());
  return server;
}

/** Connects, and answers what a PING is answered; `closed` where the connection ends first. */
function ping(port: number): Promise<{ readonly answer: string; readonly socket: Socket }> {
  const socket = connect(port, "127.0.0.1");
  stage.atEnd(() => socket.destroy());
  return new Promise((resolve) => {
    const end = (): void => resolve({ answer: "closed", socket });
    socket.once("error", end).once("close", end);
    socket.once("data", (bytes) => resolve({ answer: bytes.toString("latin1").trim(), socket }));
    socket.write("PING\r\n");
  });
}

describe("a generated TCP listener", () => {
  it("closes connections above its number, and takes others when some have ended", async () => {
    const redis = await startRedis();
    const port = await freePort();
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `- {name: orders, upstream: {address: 127.0.0.1, port: ${redis.port}}}`,
      proxies: `
        tcpListeners:
          - name: cache
            port: ${port}
            maxConnections: 2
            upstream: {address: 127.0.0.1, port: ${redis.port}}
      `,
    });
    const open = [await ping(port), await ping(port)];
    expect(open.map(({ answer }) => answer)).toEqual(["+PONG", "+PONG"]);
    expect((await ping(port)).answer).toBe("closed");
    expect(await envoy.stat("connection_limit.tcp_cache.limited_connections")).toBe(1);
    open[0]?.socket.destroy();
    await waitFor("another has room", async () => (await ping(port)).answer === "+PONG");
  });

  it("closes connections that come too fast for one proxy", async () => {
    const redis = await startRedis();
    const port = await freePort();
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `- {name: orders, upstream: {address: 127.0.0.1, port: ${redis.port}}}`,
      proxies: `
        tcpListeners:
          - name: cache
            port: ${port}
            connectionRate: {connections: 3, per: 1h}
            upstream: {address: 127.0.0.1, port: ${redis.port}}
      `,
    });
    const answers = [];
    for (let i = 0; i < 5; i += 1) answers.push((await ping(port)).answer);
    expect(answers).toEqual(["+PONG", "+PONG", "+PONG", "closed", "closed"]);
    expect(await envoy.stat("local_rate_limit.tcp_cache.rate_limited")).toBe(2);
  });

  it("asks Headgate for each connection, and speaks Redis", async () => {
    const redis = await startRedis();
    const port = await freePort();
    const headgate = await HostedHeadgate.prepare(stage, { policy: "" });
    const { envoy, policy } = await startGeneratedEnvoy(stage, {
      more: `
        rateLimits:
          - domain: connections
            descriptors:
              - key: listener
                value: cache 100%
                descriptors: [{key: remote_address, rate_limit: {unit: hour, requests_per_unit: 3}}]
      `,
      services: `- {name: orders, upstream: {address: 127.0.0.1, port: ${redis.port}}}`,
      proxies: `
        headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, rateLimitTimeout: 10s}
        tcpListeners:
          - name: cache
            port: ${port}
            protocol: redis
            upstream: {address: 127.0.0.1, port: ${redis.port}}
            rateLimit:
              domain: connections
              descriptors: [[{value: cache 100%, as: listener}, remote_address]]
      `,
    });
    await writeFile(headgate.policyPath, policy);
    await headgate.restart();
    const healthy = "cluster.headgate.membership_healthy";
    await waitFor("Envoy reaches Headgate", async () => (await envoy.stat(healthy)) === 1);
    const client = new Redis({ port, host: "127.0.0.1", enableReadyCheck: false });
    stage.atEnd(async () => client.disconnect());
    await client.set("a", "1");
    expect(await client.get("a")).toBe("1");
    const answers = [];
    for (let i = 0; i < 3; i += 1) answers.push((await ping(port)).answer);
    expect(answers).toEqual(["+PONG", "+PONG", "closed"]);
    const of = (outcome: string) => ({ rule: "listener_cache 100%.remote_address", outcome });
    expect(await headgate.metric("headgate_decisions_total", of("ok"))).toBe(3);
    expect(await headgate.metric("headgate_decisions_total", of("over"))).toBe(1);
    expect(await envoy.stat("ratelimit.tcp_cache.over_limit")).toBe(1);
    expect(await envoy.stat("redis.tcp_cache.downstream_rq_total")).toBeGreaterThanOrEqual(2);
  });
});
