import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis, type RedisOptions } from "ioredis";
import { describe, expect, it } from "vitest";
import { startTestApp, type TestApp } from "../support/app.js";
import { TestAuthority } from "../support/certificates.js";
import type { Env } from "../support/configured-store.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { redisCli } from "../support/redis-cli.js";
import { encodeCommand, RawRespClient } from "../support/resp-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = "domain: shop\ndescriptors: []\n";

interface RespApp extends TestApp {
  readonly port: number;
}

async function startRespApp(env: Env = {}): Promise<RespApp> {
  const started = await startTestApp(stage, policy, { HEADGATE_RESP_ADDR: "127.0.0.1:0", ...env });
  const port = started.app.respAddress?.port;
  if (port === undefined) throw new Error("there is no such port");
  return { ...started, port };
}

type ClientOptions = Pick<
  RedisOptions,
  "protocol" | "password" | "tls" | "retryStrategy" | "maxRetriesPerRequest"
>;

/** A client as its library makes it, ready check and all. */
function clientOf(port: number, options: ClientOptions = {}): Redis {
  const client = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: 0, ...options });
  // What fails says so itself.
  client.on("error", () => {});
  stage.atEnd(() => client.disconnect());
  return client;
}

async function throttle(client: Redis, key: string, ...numbers: number[]): Promise<unknown> {
  return client.call("CL.THROTTLE", key, ...numbers.map(String));
}

describe("the Redis protocol port", () => {
  it.each([{}, { protocol: 2 }] satisfies ClientOptions[])(
    "serves ioredis with %o, and pipelines of it",
    async (options) => {
      const { port, metric } = await startRespApp();
      const client = clientOf(port, options);
      expect(await client.ping()).toBe("PONG");
      expect(await throttle(client, "user", 1, 30, 60)).toEqual([0, 2, 1, -1, 2]);
      const pipeline = client.pipeline();
      for (let count = 0; count < 5_000; count += 1) {
        pipeline.call("CL.THROTTLE", "many", "2999", "1", "3600");
      }
      const replies = (await pipeline.exec()) ?? [];
      const limited = replies.map(([, reply]) => (reply as readonly number[])[0]);
      expect(limited).toEqual(Array.from({ length: 5_000 }, (_, i) => (i < 3_000 ? 0 : 1)));
      await expect(client.get("user")).rejects.toThrow("unknown command; this is Headgate");
      const counted = { command: "throttle", result: "limited" };
      expect(await metric("headgate_resp_commands_total", counted)).toBe(2_000);
      expect(await metric("headgate_resp_connections_open")).toBe(1);
    },
  );

  it("serves redis-cli", async () => {
    const { port } = await startRespApp({ HEADGATE_RESP_PASSWORD: "secret" });
    const run = (...words: readonly string[]): Promise<string> =>
      redisCli(port, "--pass", "secret", "--no-auth-warning", ...words);
    expect(await run("CL.THROTTLE", "user", "15", "30", "60", "1")).toBe("0\n16\n15\n-1\n2\n");
    expect(await run("-3", "CL.THROTTLE", "user", "15", "30", "60", "16")).toBe(
      "1\n16\n15\n2\n2\n",
    );
  });

  it("keeps one limit for all replicas, apart from those of policies, in batches", async () => {
    const redis = await startRedis(stage);
    const apps = [
      await startRespApp(redisEnv(redis.port)),
      await startRespApp(redisEnv(redis.port)),
    ];
    const clients = apps.map(({ port }) => clientOf(port));
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        throttle(clients[i % 2] as Redis, "user", 99, 1, 3_600),
      ),
    );
    const allowed = replies.filter((reply) => (reply as readonly number[])[0] === 0);
    expect(allowed).toHaveLength(100);
    expect(await redis.client().keys("*")).toContain("headgate:2t4:user");
    const [first] = apps;
    const batchCount = (await first?.metric("headgate_store_batches_total")) ?? 0;
    expect([batchCount > 0, batchCount < 50]).toEqual([true, true]);
  });

  it("answers by the failure mode while the store is away, and by the store again", async () => {
    const redis = await startRedis(stage);
    const mode = { HEADGATE_ON_STORE_FAILURE: "error", HEADGATE_STORE_BUDGET_MS: "200" };
    const { port, events } = await startRespApp({ ...redisEnv(redis.port), ...mode });
    const client = clientOf(port);
    expect(await throttle(client, "a-caller", 0, 1, 3_600)).toEqual([0, 1, 0, -1, 3_600]);
    redis.pause();
    await expect(throttle(client, "a-caller", 0, 1, 3_600)).rejects.toThrow(/^ERR STORE_/);
    redis.resume();
    const reply = await waitFor("the store decides", () =>
      throttle(client, "a-caller", 0, 1, 3_600).catch(() => undefined),
    );
    expect((reply as readonly number[])[0]).toBe(1);
    expect(JSON.stringify(events)).not.toContain("a-caller");
  });

  it("asks for the password, and cuts who has another one", async () => {
    const path = join(stage.folder, "password");
    await writeFile(path, "secret\n");
    const { port } = await startRespApp({ HEADGATE_RESP_PASSWORD_FILE: path });
    expect(await clientOf(port, { password: "secret" }).ping()).toBe("PONG");
    expect(await clientOf(port, { password: "secret", protocol: 2 }).ping()).toBe("PONG");
    const raw = new RawRespClient(stage, port);
    raw.socket.write(Buffer.concat([encodeCommand("PING"), encodeCommand("AUTH", "wrong")]));
    await waitFor("it is cut", () => raw.isEnded);
    expect(raw.received).toBe(
      "-NOAUTH Authentication required.\r\n-WRONGPASS invalid username-password pair\r\n",
    );
  });

  it("has the TLS of the gRPC port, without its protocol", async () => {
    const authority = new TestAuthority();
    const { certificate, key } = authority.issue({ names: ["localhost"] });
    const file = async (name: string, text: string): Promise<string> => {
      await writeFile(join(stage.folder, name), text);
      return join(stage.folder, name);
    };
    const { port } = await startRespApp({
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: await file("cert.pem", certificate),
      GRPC_SERVER_TLS_KEY: await file("key.pem", key),
      GRPC_CLIENT_TLS_CACERT: await file("ca.pem", authority.certificate),
    });
    const own = authority.issue({ names: ["client"] });
    const tls = { ca: authority.certificate, servername: "localhost" };
    const known = clientOf(port, { tls: { ...tls, cert: own.certificate, key: own.key } });
    expect(await throttle(known, "user", 0, 1, 60)).toEqual([0, 1, 0, -1, 60]);
    const unknown = clientOf(port, { tls, retryStrategy: () => undefined });
    await expect(unknown.ping()).rejects.toThrow();
  });

  it("survives clients that break the protocol, stay silent, leave or are too many", async () => {
    const { port, metric } = await startRespApp({ HEADGATE_CONNECTIONS_PER_ADDRESS_MAX: "20" });
    const noise = ["GET / HTTP/1.1\r\n\r\n", "*9999999\r\n", "\0\xff", "*1\r\n$9999999999\r\n"];
    for (const bytes of noise) {
      const raw = new RawRespClient(stage, port);
      raw.socket.write(bytes);
      await waitFor("it is cut", () => raw.isEnded);
      expect(raw.received).toMatch(/^-ERR Protocol error: [a-z ]+\r\n$/);
    }
    const silent = Array.from({ length: 30 }, () => new RawRespClient(stage, port));
    for (const { socket } of silent) socket.write("*3\r\n$11\r\nCL.THR");
    const refused = { port: "resp" };
    await waitFor("some are refused", async () => {
      return (await metric("headgate_refused_connections_total", refused)) === 10;
    });
    for (const { socket } of silent.slice(0, 25)) socket.destroy();
    for (let count = 0; count < 100; count += 1) {
      const leaving = new RawRespClient(stage, port);
      leaving.socket.write(encodeCommand("CL.THROTTLE", "user", "0", "1", "60"), () => {
        leaving.socket.resetAndDestroy();
      });
    }
    const client = clientOf(port, { maxRetriesPerRequest: 100 });
    expect(await client.ping()).toBe("PONG");
    expect(await metric("headgate_internal_errors_total")).toBe(0);
  });

  it("answers what was sent before it stops, and then ends connections", async () => {
    const { app, port } = await startRespApp();
    const raw = new RawRespClient(stage, port);
    raw.socket.write(encodeCommand("PING"));
    await waitFor("it is served", () => raw.received === "+PONG\r\n");
    expect(await app.close(0)).toBe(true);
    await waitFor("it is ended", () => raw.isEnded);
    const late = new RawRespClient(stage, port);
    await waitFor("nothing listens", () => late.isEnded);
  });

  it("answers a client that has sent all and ended, however late the store is", async () => {
    const redis = await startRedis(stage);
    const mode = { HEADGATE_ON_STORE_FAILURE: "deny", HEADGATE_STORE_BUDGET_MS: "200" };
    const { port } = await startRespApp({ ...redisEnv(redis.port), ...mode });
    redis.pause();
    const raw = new RawRespClient(stage, port);
    raw.socket.end(encodeCommand("CL.THROTTLE", "user", "0", "1", "60"));
    await waitFor("it is ended", () => raw.isEnded);
    expect(raw.received).toBe("*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n");
  });

  it("is not there unless it is asked for", async () => {
    const { app } = await startTestApp(stage, policy);
    expect(app.respAddress).toBeUndefined();
  });
});
