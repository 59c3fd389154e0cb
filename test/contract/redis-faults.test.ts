import { createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { isServiceError } from "../../src/core/base/errors.js";
import type { Charge } from "../../src/core/limits/bucket.js";
import { batchesInFlightMax } from "../../src/store/redis/connections.js";
import { reconnectMsMin } from "../../src/store/redis/redis-connection.js";
import { once, testCharge, testKey } from "../support/charges.js";
import { enginesFor } from "../support/engines.js";
import { realClock } from "../support/real-clock.js";
import { startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

// Each has a server of its own, and waits for it more than it works: they run side by side.
const stage = useStage("file");

async function openStore(...args: Parameters<typeof openTestStore>): Promise<TestRedisStore> {
  const opened = await openTestStore(...args);
  stage.atEnd(() => opened.store.close());
  return opened;
}

describe.concurrent.each(enginesFor.behaviour)("RedisLimitStore on %s that fails", (engine) => {
  const startServer = (): Promise<RedisServer> => startRedis(stage, { engine });

  it("fails at once after a crash, and is well again when the server is", async () => {
    const server = await startServer();
    const { store, events } = await openStore(server);
    await server.kill();
    await waitFor("the loss is seen", () => kinds(events).includes("redisLost"));
    expect(await codeOf(store, soon())).toBe("STORE_UNAVAILABLE");
    await server.restart();
    await waitFor("it is well again", async () => (await codeOf(store, soon())) === "none");
    events.length = 0;
    await server.kill();
    await waitFor("it counts attempts from one again", () =>
      events.some((e) => e.kind === "redisRetrying" && e.role === "decision" && e.attempt === 1),
    );
  });

  it("fails what is in flight at once when its connection is lost", async () => {
    const server = await startServer();
    const { store } = await openStore(server);
    server.pause();
    const calls = Array.from({ length: batchesInFlightMax }, () => codeOf(store, soon()));
    await server.kill();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["STORE_UNAVAILABLE"]));
    await server.restart();
    await waitFor("it is well again", async () => (await codeOf(store, soon())) === "none");
  });

  it("comes up without a server, and finds it when it starts", async () => {
    const server = await startServer();
    await server.kill();
    const { store, events } = await openStore(server, { isVerified: false });
    await waitFor(
      "it retries",
      () => kinds(events).filter((k) => k === "redisRetrying").length > 6,
    );
    expect(await codeOf(store, soon())).toBe("STORE_UNAVAILABLE");
    await server.restart();
    await store.verify(soon());
  });

  it("answers at the deadline when the server stands still, and drops the connection", async () => {
    const server = await startServer();
    const { store, events } = await openStore(server);
    server.pause();
    const answer = codeOf(store, realClock.monotonicMs() + 30);
    // Timers fire in their order, also where the machine has no time for either.
    expect(await within("it is answered", 130, answer)).toBe("STORE_TIMEOUT");
    // The kernel still accepts connections for it, so attempts reach the silent handshake and end
    // there.
    await waitFor("the silent connection is dropped", () => kinds(events).includes("redisLost"));
    await waitFor(
      "attempts end and follow each other",
      () => events.filter((e) => e.kind === "redisRetrying" && e.role === "decision").length >= 3,
    );
    server.resume();
    await waitFor("it is well again", async () => (await codeOf(store, soon())) === "none");
  });

  it("keeps a bounded number of batches in flight, and fails further ones at once", async () => {
    const server = await startServer();
    const { store } = await openStore(server);
    server.pause();
    // Long enough to send them all where the machine has no time.
    const deadlineMs = realClock.monotonicMs() + 500;
    const codes = await Promise.all(
      Array.from({ length: batchesInFlightMax + 3 }, () => codeOf(store, deadlineMs)),
    );
    expect(codes.filter((code) => code === "STORE_TIMEOUT")).toHaveLength(batchesInFlightMax);
    expect(codes.slice(-3)).toEqual(Array(3).fill("STORE_UNAVAILABLE"));
    // Late replies are still owed, so nothing more is sent until they come or the connection goes.
    expect(await codeOf(store, realClock.monotonicMs() + 500)).toBe("STORE_UNAVAILABLE");
    server.resume();
    await waitFor("it is well again", async () => (await codeOf(store, soon())) === "none");
  });

  it("ignores a late reply, and never asks twice", async () => {
    const server = await startServer();
    const { store } = await openStore(server);
    server.pause();
    expect(await codeOf(store, realClock.monotonicMs() + 20, "late")).toBe("STORE_TIMEOUT");
    server.resume();
    const peeked = await store.peek(testKey("late"), soon());
    expect(peeked?.bucket.level).toBe(1_048_576);
  });

  it("sends nothing when the deadline has passed already", async () => {
    const server = await startServer();
    const { store } = await openStore(server);
    expect(await codeOf(store, realClock.monotonicMs() - 1, "past")).toBe("STORE_TIMEOUT");
    expect(await store.peek(testKey("past"), soon())).toBeUndefined();
  });

  it("rejects what is in flight with STORE_CLOSED at close()", async () => {
    const server = await startServer();
    const { store } = await openStore(server);
    server.pause();
    const calls = [codeOf(store, soon()), store.peek(testKey("k"), soon()).catch(toCode)];
    await store.close();
    expect(await Promise.all(calls)).toEqual(["STORE_CLOSED", "STORE_CLOSED"]);
    server.resume();
  });
});

describe.concurrent.each(enginesFor.refusals)("RedisLimitStore on %s that refuses", (engine) => {
  const startServer = (): Promise<RedisServer> => startRedis(stage, { engine });

  it("says that memory is full, writes no part of the batch, and recovers by itself", async () => {
    const server = await startServer();
    const { store } = await openStore(server);
    const control = server.client();
    await control.config("SET", "maxmemory", "1");
    expect(await codeOf(store, soon(), "full", "fuller")).toBe("STORE_OUT_OF_MEMORY");
    await expect(store.ping(soon())).rejects.toMatchObject({ code: "STORE_OUT_OF_MEMORY" });
    expect(await control.exists("headgate:full", "headgate:fuller")).toBe(0);
    await control.config("SET", "maxmemory", "0");
    expect(await codeOf(store, soon())).toBe("none");
  });

  it("says that it met a replica, and connects anew until it meets a primary", async () => {
    const server = await startServer();
    const { store, events } = await openStore(server);
    const control = server.client();
    await control.replicaof("127.0.0.1", "1");
    expect(await codeOf(store, soon())).toBe("STORE_READ_ONLY");
    await waitFor("the connection is dropped", () => kinds(events).includes("redisLost"));
    await control.replicaof("NO", "ONE");
    await waitFor("it is well again", async () => (await codeOf(store, soon())) === "none");
  });

  it("says that the server is loading, and is well the moment it has loaded", async () => {
    const server = await startServer();
    const { store } = await openStore(server);
    const control = server.client();
    // Enough for half a minute, which nobody waits for.
    await control.eval("for i = 1, 30000 do redis.call('SET', 'filler:' .. i, i) end", 0);
    await control.save();
    await server.kill();
    await server.restart(["--key-load-delay", "1000", ...eachByte]);
    await waitFor("it says so", async () => (await codeOf(store, soon())) === "STORE_LOADING");
    const loading = server.client({ enableReadyCheck: false });
    await loading.config("SET", "key-load-delay", "0");
    await waitFor("it is well again", async () => (await codeOf(store, soon())) === "none");
  });

  it("does not storm a server that has too many clients", async () => {
    const server = await startServer();
    const { store, events } = await openStore(server);
    const control = server.client();
    await control.config("SET", "maxclients", "1");
    await control.call("client", "kill", "type", "normal", "skipme", "yes");
    const retries = (): number[] =>
      events.flatMap((e) =>
        e.kind === "redisRetrying" && e.role === "decision" ? [e.delayMs] : [],
      );
    await waitFor("several attempts", () => retries().length >= 4);
    expect(Math.min(...retries())).toBeGreaterThanOrEqual(reconnectMsMin);
    expect(retries()[3]).toBeGreaterThanOrEqual(250);
    expect(await codeOf(store, soon())).toBe("STORE_UNAVAILABLE");
    await control.config("SET", "maxclients", "1000");
    await waitFor("it is well again", async () => (await codeOf(store, soon())) === "none");
  });
});

describe.concurrent("RedisConnection", () => {
  it("gives up on a server that accepts and never answers, and tries again", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.resume();
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    stage.atEnd(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => silent.close(resolve));
    });
    const address = silent.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const target = { password: "pw" };
    const { store } = await openStore({ port: address.port }, { target, isVerified: false });
    await waitFor("three connections try twice", () => sockets.length >= 6);
    expect(await codeOf(store, soon())).toBe("STORE_UNAVAILABLE");
  });
});

/** A batch over keys of two names: "none" when it was decided, else why not. */
async function codeOf(
  store: TestRedisStore["store"],
  deadlineMs: number,
  ...keys: readonly string[]
): Promise<string> {
  const charge = (key: string): Charge =>
    testCharge({ key, hits: 1_000_000, periodUs: 31_536_000_000_000, burst: 1_000_000 });
  const batch = (keys.length === 0 ? ["any"] : keys).map((key) => once(charge(key)));
  return store.take(batch, deadlineMs).then(() => "none", toCode);
}

function toCode(error: unknown): string {
  return isServiceError(error) ? error.code : "not a ServiceError";
}

function kinds(events: TestRedisStore["events"]): readonly string[] {
  return events.map((event) => event.kind);
}

/** Lets a loading server answer between any two keys. */
const eachByte = ["--loading-process-events-interval-bytes", "1024"];
