import { connect, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import type { ChildProgram } from "../support/child-program.js";
import { freePort } from "../support/free-port.js";
import { grpcHealth } from "../support/grpc-health.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { startRedis } from "../support/redis.js";
import { outcomeOf, RlsClient } from "../support/rls-client.js";
import { type Stage, useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("test");

const policy = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1000}
`;

const question = { descriptors: [["user=caller-73"]] };

/** No load balancer is in front of these, so nobody has to notice that they stop. */
const quickDrain = { HEADGATE_DRAIN_DELAY_MS: "0" };

function client(of: Stage, headgate: HeadgateProcess): RlsClient {
  const made = new RlsClient(headgate.grpcPort);
  of.atEnd(() => made.close());
  return made;
}

function ended(program: ChildProgram) {
  return within("the process ends", 20_000, program.exited);
}

/** Starts one that is expected to end by itself. */
async function startAndEnd(options: {
  readonly text?: string;
  readonly env?: Readonly<Record<string, string>>;
}) {
  const { text = policy, env = {} } = options;
  const headgate = await HeadgateProcess.prepare(stage, { policy: text, env });
  const program = headgate.spawn();
  const exit = await ended(program);
  return { exit, output: program.output, headgate };
}

describe("headgate serve", () => {
  it("answers over gRPC and HTTP, lives through garbage, and drains after SIGTERM", async () => {
    const drainDelayMs = 500;
    const env = { HEADGATE_DRAIN_DELAY_MS: String(drainDelayMs) };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    const caller = client(stage, headgate);
    expect(outcomeOf(await caller.ask(question))).toBe("OK");
    const descriptors = [{ entries: [{ key: "user", value: "caller-73" }] }];
    expect((await headgate.postJson({ domain: "edge", descriptors })).status).toBe(200);

    for (let i = 0; i < 50; i += 1) await caller.ask({ ...question, timeoutMs: 1 });
    for (const port of [headgate.grpcPort, headgate.httpPort]) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(Buffer.alloc(4_096, 0xff));
      await within("the connection is closed", 10_000, gone(socket));
    }
    expect(outcomeOf(await caller.sendBytes(Uint8Array.of(0x0a, 0x7f)))).toBe("INVALID_ARGUMENT");
    expect(outcomeOf(await caller.ask(question))).toBe("OK");
    expect(await headgate.metric("headgate_internal_errors_total")).toBe(0);

    const signalledMs = performance.now();
    expect(await headgate.terminate()).toEqual({ code: 0 });
    expect(performance.now() - signalledMs).toBeGreaterThanOrEqual(drainDelayMs);
    expect(headgate.process.output).not.toContain("caller-73");
  });

  it("ends with 0 after SIGINT, without the drain delay", async () => {
    const env = { HEADGATE_DRAIN_DELAY_MS: "600000" };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    headgate.process.signal("SIGINT");
    expect(await ended(headgate.process)).toEqual({ code: 0 });
  });

  it("says NOT_SERVING at once and still answers; a second signal ends it with 1", async () => {
    const env = { HEADGATE_DRAIN_DELAY_MS: "600000" };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    const caller = client(stage, headgate);
    await caller.ask(question);
    headgate.process.signal("SIGTERM");
    await waitFor("health fails", async () => (await headgate.get("/healthcheck")).status === 500);
    expect(await grpcHealth(headgate.grpcPort, "ratelimit")).toBe("NOT_SERVING");
    expect((await headgate.get("/readyz")).status).toBe(503);
    expect((await headgate.get("/livez")).status).toBe(200);
    expect(outcomeOf(await caller.ask(question))).toBe("OK");
    headgate.process.signal("SIGTERM");
    expect(await ended(headgate.process)).toEqual({ code: 1 });
  });

  it("cuts what is still open when the grace is over, and ends with 1", async () => {
    const env = { ...quickDrain, HEADGATE_DRAIN_GRACE_MS: "200" };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    // A body that never ends keeps its call in flight.
    const socket = connect(headgate.httpPort, "127.0.0.1");
    stage.atEnd(() => socket.destroy());
    socket.on("error", () => {});
    socket.write("POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{");
    await new Promise((resolve) => socket.once("ready", resolve));
    // The server reads in order, so by this answer it has met the other call.
    await headgate.get("/livez");
    expect(await headgate.terminate()).toEqual({ code: 1 });
    expect(headgate.process.output).toContain("stoppedByForce");
  });
});

function gone(socket: ReturnType<typeof connect>): Promise<void> {
  socket.resume();
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

describe("a start that goes wrong", () => {
  it("ends with 3 and the places in an invalid policy", async () => {
    const { exit, output, headgate } = await startAndEnd({ text: policy.replace("hour", "hor") });
    expect(exit).toEqual({ code: 3 });
    expect(output).toContain(`${headgate.policyPath}:4:24: HG142`);
  });

  it("ends with 2 and every wrong setting", async () => {
    const { exit, output } = await startAndEnd({
      env: { LOG_LEVEL: "loud", HEADGATE_REPLICA: "2", BACKEND_TYPE: "memcache" },
    });
    expect(exit).toEqual({ code: 2 });
    expect(output).toContain("LOG_LEVEL must be one of");
    expect(output).toContain("did you mean HEADGATE_REPLICAS?");
    expect(output).toMatch(/BACKEND_TYPE .*memcache.*BACKEND_TYPE=redis.*REDIS_URL/);
  });

  it("ends with 1 and names the setting of a taken port", async () => {
    const taken = createServer();
    const port = await freePort();
    await new Promise<void>((resolve) => taken.listen(port, "127.0.0.1", resolve));
    stage.atEnd(() => taken.close());
    const env = { GRPC_PORT: String(port) };
    const { code, output } = await HostedHeadgate.startFailure(stage, { policy, env });
    expect([code, output]).toEqual([
      1,
      expect.stringContaining(`Port ${port} (GRPC_PORT) is in use`),
    ]);
  });

  it("ends with 0 when a signal comes before it serves", async () => {
    const redis = await startRedis(stage);
    redis.pause();
    const env = { REDIS_URL: `127.0.0.1:${redis.port}` };
    const headgate = await HeadgateProcess.prepare(stage, { policy, env });
    const program = headgate.spawn();
    await waitFor("the policy is loaded", () => program.output.includes("policyLoaded"), {
      withinMs: 60_000,
    });
    program.signal("SIGTERM");
    expect(await ended(program)).toEqual({ code: 0 });
    expect(program.output).not.toContain('"serving"');
    redis.resume();
  });
});

describe("Redis with a password", () => {
  const right = "right@pass/word-73";
  const wrong = "wrong@pass/word-73";
  const args = ["--requirepass", right];

  it("that is wrong ends the start with 1, wherever it stands, and never shows", async () => {
    const redis = await startRedis(stage, { args, password: right });
    const place = `127.0.0.1:${redis.port}`;
    const inUrl = { REDIS_URL: `redis://:${wrong}@${place}` };
    const [started, ...hosted] = await Promise.all([
      startAndEnd({ env: { REDIS_URL: place, REDIS_AUTH: wrong } }),
      HostedHeadgate.startFailure(stage, { policy, env: inUrl }),
      HostedHeadgate.startFailure(stage, { policy, env: { REDIS_URL: place } }),
    ]);
    expect(started.exit).toEqual({ code: 1 });
    expect(hosted.map(({ code }) => code)).toEqual([1, 1]);
    for (const { output } of [started, ...hosted]) {
      expect(output).toContain(`Redis at redis://${place}/0 refuses the connection.`);
      expect(output).toContain("REDIS_AUTH");
      expect(output).not.toContain("word-73");
    }
  });

  it("that is right serves, and never shows, not even when Redis goes away", async () => {
    const redis = await startRedis(stage, { args, password: right });
    const env = {
      ...quickDrain,
      REDIS_URL: `127.0.0.1:${redis.port}`,
      REDIS_AUTH: right,
      LOG_LEVEL: "trace",
    };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    const caller = client(stage, headgate);
    expect(outcomeOf(await caller.ask(question))).toBe("OK");
    expect(await headgate.metric("headgate_fallback_decisions_total")).toBe(0);
    await redis.kill();
    expect(outcomeOf(await caller.ask(question))).toBe("OK");
    expect(await headgate.metric("headgate_fallback_decisions_total")).toBe(1);
    headgate.process.signal("SIGHUP");
    expect(await ended(headgate.process)).toEqual({ code: 0 });
    const { output } = headgate.process;
    expect(output).toContain("redisLost");
    expect(output).not.toContain("word-73");
    expect(output).not.toContain("caller-73");
  });
});
